"""A run whose end is in the store keeps its exit code and prints its summary, whatever fails afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.demo.pages import Page
from crawler.engine.parser_pool import ParserPool
from crawler.errors import StoreError
from crawler.run import execution
from crawler.store.sqlite.store import SqliteStore
from tests.command import LOOPBACK, here
from tests.web import LoopbackWeb


async def broken(*arguments: object, **options: object) -> None:
    raise ValueError("a bug in a step after the end")


async def full(*arguments: object, **options: object) -> None:
    raise StoreError("the disk is full")


STEPS = [
    pytest.param(execution, "describe_first_matches", broken, id="what is told"),
    pytest.param(SqliteStore, "counts", full, id="the counts"),
    pytest.param(ParserPool, "__aexit__", broken, id="the parser processes"),
    pytest.param(SqliteStore, "leave", full, id="the store"),
    pytest.param(execution, "notify", broken, id="the notification"),
]


@pytest.mark.parametrize(("owner", "step", "fails"), STEPS)
def test_a_failure_after_the_end_is_told_and_changes_no_exit_code(
    owner: object, step: str, fails: object, loopback: LoopbackWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>Start</title>")}
    monkeypatch.setattr(owner, step, fails)
    ended = here("run", loopback.url("a.test"), "--db", tmp_path / "c.db", *LOOPBACK)
    assert ended.code == 0
    assert "the run has ended, and everything is kept; a step after its end failed" in ended.err
    assert "nothing is left in the frontier" in ended.out
