"""The number of open files: raised as far as it is granted, and shared among connections."""

from __future__ import annotations

import resource

import pytest

from crawler.fetch import open_files
from crawler.fetch.open_files import MOST_FILES, Share, available, raise_limit, share

UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (1024, 4096, 4096),
        (1024, 1_073_741_816, MOST_FILES),
        (256, UNLIMITED, MOST_FILES),
        (4096, 4096, None),
        (500_000, 1_000_000, None),  # the operator's own limit is not lowered
        (UNLIMITED, UNLIMITED, None),
    ],
)
def test_the_limit_is_raised_as_far_as_sensible(
    soft: int, hard: int, wanted: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    raise_limit()
    assert asked == ([] if wanted is None else [(wanted, hard)])


def test_a_limit_that_the_system_does_not_grant_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, UNLIMITED))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_limit()


@pytest.mark.parametrize(
    ("free", "shares"),
    [
        (20_000, Share(64, 1000)),
        (500, Share(64, 372)),
        (140, Share(64, 12)),
        (50, Share(25, 0)),
        (0, Share(1, 0)),
    ],
)
def test_connections_share_the_files_that_are_left(free: int, shares: Share) -> None:
    assert share(free, 64, 1000) == shares


def test_open_and_reserved_files_are_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files.os, "listdir", lambda _: ["0", "1", "2"])
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert available() == 1024 - 3 - 96
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 4096))
    assert available() == 0
