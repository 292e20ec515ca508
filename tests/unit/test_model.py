"""The facts that pass between rules and shell."""

from __future__ import annotations

import msgspec
import pytest

from crawler.model import (
    Failed,
    Fetched,
    NotModified,
    PageFacts,
    Redirected,
    RobotsAction,
    RobotsCopy,
    State,
    header,
    header_values,
)
from crawler.reasons import ErrorKind

HEADERS = (("Set-Cookie", "a"), ("X-Robots-Tag", "noindex"), ("x-robots-tag", "nofollow"))


def test_headers_are_found_in_any_case_and_kept_in_order() -> None:
    assert header(HEADERS, "X-ROBOTS-TAG") == "noindex"
    assert list(header_values(HEADERS, "x-Robots-Tag")) == ["noindex", "nofollow"]
    assert header(HEADERS, "ETag") is None
    assert list(header_values((), "ETag")) == []


def test_facts_are_frozen() -> None:
    facts = [
        Fetched("u", 0, 1),
        NotModified("u", 0, 1),
        Redirected("u", 0, 1),
        Failed("u", 0, 1),
        PageFacts(),
        RobotsCopy(RobotsAction.FREE, "404", 0, 1),
    ]
    for fact in facts:
        assert isinstance(fact, msgspec.Struct)
        with pytest.raises(AttributeError):
            setattr(fact, fact.__struct_fields__[0], "changed")


def test_names_that_stand_in_stores_and_interfaces_stay() -> None:
    assert [*State] == ["queued", "fetched", "redirected", "excluded", "failed"]
    assert " ".join(RobotsAction) == "parse free restricted defer given_up unreachable untrusted"
    assert all(kind.value == kind.name.lower() for kind in ErrorKind)
