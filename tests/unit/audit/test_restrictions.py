"""The times at which the operator's orders forbid requests."""

from __future__ import annotations

from math import inf

import pytest

from crawler.audit.restrictions import Period, Restrictions
from crawler.frontier.operator import Command, Order
from tests.unit.audit.audit_cases import sent


def orders(*asked: tuple[Command, str, float, float | None]) -> list[Order]:
    return [Order(n, at, command, name, None, done_at) for n, (command, name, at, done_at) in enumerate(asked, 1)]


def test_a_pause_holds_half_a_second_later_until_the_first_that_ends_it() -> None:
    found = Restrictions.from_orders(
        orders(
            (Command.RESUME, "", 5, 5),
            (Command.PAUSE, "", 10, 10.2),
            (Command.PAUSE, "", 15, 15.2),
            (Command.STOP, "", 16, 16.2),
            (Command.RESUME, "", 20, 20.2),
            (Command.RESUME, "", 25, 25.2),
            (Command.PAUSE, "", 30, None),
            (Command.RESUME, "", 40, 37.0),  # the asking clock was set forward
            (Command.PAUSE, "", 50, None),
        )
    )
    assert found.pauses == [Period(10.5, 20), Period(30.5, 37.0), Period(50.5, inf)]


def test_a_block_holds_from_when_a_crawl_heeded_it() -> None:
    found = Restrictions.from_orders(
        orders(
            (Command.UNBLOCK, "a", 1, 1),
            (Command.BLOCK, "a", 10, None),  # overtaken
            (Command.UNBLOCK, "a", 10.4, 11.2),
            (Command.BLOCK, "a", 20, 20.2),
            (Command.BLOCK, "b", 21, None),
            (Command.BLOCK, "a", 30, 30.2),
            (Command.UNBLOCK, "a", 40, None),
        )
    )
    assert found.blocks == {"a": [Period(20.2, 40)], "b": [Period(21.5, inf)]}, "no crawl has heeded that of b"
    assert not Restrictions.from_orders([]).any


@pytest.mark.parametrize(
    ("site", "name", "is_covered"),
    [
        ("http://a.test", "a.test", True),
        ("https://a.test.:8443", "a.test", True),
        ("http://[::1]:81", "::1", True),
        ("http://a.test", "http://a.test", True),
        ("http://a.test:81", "http://a.test", False),
        ("http://b.a.test", "a.test", False),
    ],
)
def test_a_block_covers_the_same_urls_as_in_a_crawl(site: str, name: str, is_covered: bool) -> None:
    held = Restrictions.from_orders(orders((Command.BLOCK, name, 10, 10.2), (Command.UNBLOCK, name, 20, 20.2)))
    broken = [at for at in (10.1, 10.2, 10.21, 15, 19.9, 20, 25) if held.violation_by(sent(at, site=site))]
    assert broken == ([10.21, 15, 19.9] if is_covered else [])
