"""The outbox: its contents are taken out once, a commit is requested in time, and every wait ends."""

from __future__ import annotations

import asyncio

from crawler.engine.alarm import Alarm
from crawler.engine.outbox import FULL, OVERFULL, Contents, Outbox
from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.politeness import Pace
from crawler.frontier.refusals import RefusalNews, Refusals
from crawler.model import Fetched, Kind, Purpose, RobotsAction, RobotsCopy, SiteFile, State
from crawler.store.rows import RequestRow, RobotsNews
from tests.virtual_time import VirtualClock, run_virtual

QUEUED = Queued(1, "http://a.test/", 1, 0, kind=Kind.PAGE)
OUTCOME = Outcome(QUEUED, State.FETCHED, "")
ROW = RequestRow(1, "/", Purpose.PAGE, 0.0, 1.0, 200, None, 10, None, None, None)
NEWS = RobotsNews(7, "http://a.test", RobotsCopy(RobotsAction.FREE, "404", 0.0, 10.0), None, None)


def outbox(clock: VirtualClock) -> tuple[Outbox, Alarm]:
    alarm = Alarm()
    return Outbox(clock, alarm), alarm


def test_contents_are_taken_out_once_with_the_time_of_the_first() -> None:
    async def main(clock: VirtualClock) -> None:
        box, alarm = outbox(clock)
        assert box.uncommitted_since is None
        began = clock.now()
        box.add_outcome(OUTCOME)
        await clock.sleep(3)
        box.release(5, "a.test", Pace(next_at=9.0))
        assert box.uncommitted_since == began
        assert box.released == 1
        contents = box.next_batch()
        assert (contents.outcomes, contents.released, contents.paces) == ([OUTCOME], [5], {"a.test": Pace(next_at=9.0)})
        assert (box.uncommitted_since, alarm.is_urgent) == (None, False)
        assert box.next_batch().outcomes == []

    run_virtual(main)


def test_a_full_outbox_is_urgent_and_an_overfull_one_holds_workers_until_the_commit_is_over() -> None:
    async def main(clock: VirtualClock) -> None:
        box, alarm = outbox(clock)
        for number in range(1, OVERFULL.outcomes + 1):
            box.add_outcome(OUTCOME)
            assert alarm.is_urgent == (number >= FULL.outcomes)
            assert box.has_room == (number < OVERFULL.outcomes)
        waiting = asyncio.create_task(box.wait_for_room())
        contents = box.next_batch()
        await asyncio.sleep(0)
        assert not waiting.done(), "the pages have not been handed on"
        box.finish(contents)
        await waiting

    run_virtual(main)


def test_a_longer_pause_is_committed_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        box, alarm = outbox(clock)
        box.add_request(ROW, "a.test", Pace())
        assert not alarm.is_urgent
        box.add_request(ROW, "a.test", Pace(backoff_s=60.0))
        assert alarm.is_urgent

    run_virtual(main)


def test_put_back_keeps_what_the_answers_have_told_of_sites() -> None:
    resting = RefusalNews(7, Refusals(walls=3, rest_count=1, probe=1), rests_until=99.0)
    file = SiteFile("/f", Purpose.TDMREP, 0.0, "200", b"[]", "")

    async def main(clock: VirtualClock) -> None:
        box, alarm = outbox(clock)
        box.add_refusals(RefusalNews(7, Refusals(walls=2)))
        assert not alarm.is_urgent
        box.add_refusals(resting)
        assert alarm.is_urgent, "a rest is committed at once"
        box.add_robots(NEWS, "a.test", Pace())
        box.add_file(7, file)
        box.put_back(box.next_batch())
        later = RefusalNews(8, Refusals(walls=1))
        box.add_refusals(later)
        again = box.next_batch()
        assert again.refusals == [RefusalNews(7, Refusals(walls=2)), resting, later]
        assert (again.robots, again.files) == ([NEWS], {(7, file.path): file})

    run_virtual(main)


def test_put_back_keeps_requests_and_the_latest_paces_only() -> None:
    async def main(clock: VirtualClock) -> None:
        box, _ = outbox(clock)
        box.add_outcome(OUTCOME)
        box.add_request(ROW, "a.test", Pace(next_at=1.0))
        box.add_request(ROW, "b.test", Pace(next_at=1.0))
        contents = box.next_batch()
        box.add_request(ROW, "a.test", Pace(next_at=2.0))
        box.put_back(contents)
        again: Contents = box.next_batch()
        assert (again.outcomes, len(again.requests)) == ([], 3)
        assert again.paces == {"a.test": Pace(next_at=2.0), "b.test": Pace(next_at=1.0)}

    run_virtual(main)


def test_an_answer_is_unread_again_if_the_commit_of_its_outcome_fails() -> None:
    async def main(clock: VirtualClock) -> None:
        box, _ = outbox(clock)
        answer = Fetched("http://a.test/", 0.0, 1.0, plain=b"hello")
        box.add_request(ROW, "a.test", Pace())
        box.add_unread(1, answer)
        box.add_outcome(OUTCOME)
        failed = box.next_batch()
        assert (failed.unread, failed.outcomes) == ({}, [OUTCOME])
        box.put_back(failed)
        late = box.next_batch()
        assert (late.requests, late.outcomes, late.unread) == ([ROW], [], {1: answer})

    run_virtual(main)


def test_a_robots_copy_is_urgent_and_its_number_comes_with_the_commit() -> None:
    async def main(clock: VirtualClock) -> None:
        box, alarm = outbox(clock)
        number = box.add_robots(NEWS, "a.test", Pace())
        assert alarm.is_urgent
        assert box.next_batch().robots == [NEWS]
        assert not number.done()
        box.committed({7: 42, 8: 43})
        assert await number == 42

    run_virtual(main)


def test_a_flush_waits_for_the_end_of_the_next_commit() -> None:
    async def main(clock: VirtualClock) -> None:
        box, alarm = outbox(clock)
        for lands in (True, False):
            under_way = box.next_batch()
            flushing = asyncio.create_task(box.flush())
            await asyncio.sleep(0)
            assert alarm.is_urgent
            box.finish(under_way)
            await asyncio.sleep(0)
            assert not flushing.done(), "that commit may have begun before"
            contents = box.next_batch()
            if lands:
                box.finish(contents)
            else:
                box.put_back(contents)
            await flushing

    run_virtual(main)
