"""When the crawl says that it waits for another part, and when it waits no longer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from crawler.engine.part_exchange import OtherPart, PartExchange
from crawler.errors import StoreError
from crawler.frontier.parts import PartState
from tests.virtual_time import VirtualClock, run_virtual

DONE = PartState(True, False, False, 0, None, frozenset())
BUSY = DONE._replace(has_work=True)


class Part:
    """The store of a part, in a state that a test sets."""

    def __init__(self, state: PartState) -> None:
        self.state = state

    async def part_state(self) -> PartState:
        return self.state

    async def close(self) -> None:
        pass


def test_a_part_is_reported_once_it_shows_no_sign_of_life_for_a_while() -> None:
    async def main(clock: VirtualClock) -> None:
        other, told = Part(BUSY), list[str]()

        async def opened() -> Any:
            return other

        part = OtherPart(1, "part-1.db", opened, clock, told.append)
        exchange = PartExchange(cast(Any, Part(DONE)), 0, [part], clock, (None, None), patience_s=60.0)
        for received in range(20):  # each state differs from the one before: the part is at work
            other.state = BUSY._replace(received=received)
            assert await exchange.may_bring_work()
            await clock.sleep(9.9)
        assert told == []
        for _ in range(5):
            await clock.sleep(9.9)
            assert await exchange.may_bring_work()
        assert len(told) == 1, "once for the same state"
        assert told[0].startswith("part-1.db: the crawl has nothing else to do")
        await clock.sleep(9.9)
        with pytest.raises(StoreError, match="no sign of life for 1 min"):
            await exchange.may_bring_work()

    run_virtual(main)


def test_parts_without_work_are_done_when_two_rounds_have_shown_it() -> None:
    async def main(clock: VirtualClock) -> None:
        async def opened() -> Any:
            return Part(DONE)

        exchange = PartExchange(
            cast(Any, Part(DONE)), 0, [OtherPart(1, "part-1.db", opened, clock, print)], clock, (None, None), 60.0
        )
        assert [await exchange.may_bring_work() for _ in range(2)] == [True, False]

    run_virtual(main)
