"""Visits in caution are processed one at a time, each named in the store until what it brought is committed."""

from __future__ import annotations

import asyncio

import pytest

from crawler.engine.alarm import Alarm
from crawler.engine.caution import NORMAL, Caution
from crawler.engine.gate import Gate
from crawler.engine.outbox import Outbox
from crawler.frontier.decide import Queued
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import Kind
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual


def url(number: int) -> Queued:
    return Queued(number, f"http://a.test/{number}", 1, 0, kind=Kind.PAGE)


class Crawling:
    """The collaborators of visits, and a driver that commits when urgent. ``log`` has what happened, in order."""

    def __init__(self, clock: VirtualClock) -> None:
        self.log: list[str] = []
        self.alarm = Alarm()
        self.outbox = Outbox(clock, self.alarm)
        self.gate = Gate(SimulatedWeb(clock, {}), clock, PolitenessSettings(), 9, self.outbox)
        self.caution = Caution(self, self.gate, self.outbox, self)

        self.reader = asyncio.Event()
        self.reader.set()

    async def ready(self) -> None:
        await self.reader.wait()

    async def mark_url(self, url_id: int | None) -> None:
        self.log.append(f"mark {url_id}")

    async def commit(self) -> None:
        while True:
            await self.alarm.wait(None)
            if self.alarm.is_urgent:
                assert self.alarm.is_awaited
                contents = self.outbox.take()
                self.log.append("commit")
                self.outbox.finish(contents)


def test_what_a_visit_brought_is_committed_under_its_mark_and_visits_do_not_overlap() -> None:
    async def main(clock: VirtualClock) -> None:
        crawling = Crawling(clock)
        driver = asyncio.create_task(crawling.commit())

        async def visit(number: int) -> None:
            async with crawling.caution.visit(url(number), in_caution=True) as visit:
                await clock.sleep(1)  # the network
                await visit.begin_processing()
                await visit.begin_processing()
                crawling.log.append(f"process {number}")
                await clock.sleep(1)
                crawling.log.append(f"done {number}")

        began = clock.now()
        await asyncio.gather(visit(1), visit(2))
        assert crawling.log == [
            line for n in (1, 2) for line in (f"mark {n}", f"process {n}", f"done {n}", "commit", "mark None")
        ]
        assert clock.now() - began == pytest.approx(3), "they wait for the network together"
        driver.cancel()

    run_virtual(main)


def test_a_url_is_marked_when_the_page_reader_is_ready() -> None:
    async def main(clock: VirtualClock) -> None:
        crawling = Crawling(clock)
        crawling.reader.clear()
        async with asyncio.TaskGroup() as tasks:
            driver = tasks.create_task(crawling.commit())

            async def visit() -> None:
                async with crawling.caution.visit(url(1), in_caution=True) as visit:
                    await visit.begin_processing()
                driver.cancel()

            tasks.create_task(visit())
            await clock.sleep(1)
            assert crawling.log == [], "a kill during the start of a process counts against no URL"
            crawling.reader.set()
        assert crawling.log == ["mark 1", "commit", "mark None"]

    run_virtual(main)


def test_the_mark_is_taken_away_while_the_network_is_waited_for() -> None:
    async def main(clock: VirtualClock) -> None:
        crawling = Crawling(clock)
        driver = asyncio.create_task(crawling.commit())
        async with crawling.caution.visit(url(1), in_caution=True) as visit:
            await visit.end_processing()
            await visit.begin_processing()
            await visit.end_processing()
            assert crawling.log == ["mark 1", "commit", "mark None"]
            await visit.begin_processing()
        assert crawling.log == ["mark 1", "commit", "mark None"] * 2
        driver.cancel()

    run_virtual(main)


def test_a_bug_takes_the_mark_away_and_a_cancellation_leaves_it() -> None:
    async def main(clock: VirtualClock) -> None:
        crawling = Crawling(clock)
        driver = asyncio.create_task(crawling.commit())

        async def fail() -> None:
            async with crawling.caution.visit(url(1), in_caution=True) as visit:
                await visit.begin_processing()
                raise ValueError("bug")

        with pytest.raises(ValueError, match="bug"):
            await fail()
        assert crawling.log == ["mark 1", "commit", "mark None"]

        async def hang() -> None:
            async with crawling.caution.visit(url(2), in_caution=True) as visit:
                await visit.begin_processing()
                await clock.sleep(99)

        hanging = asyncio.create_task(hang())
        await clock.sleep(1)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        assert crawling.log[3:] == ["mark 2"]
        async with crawling.caution.visit(url(3), in_caution=True) as visit:
            await visit.begin_processing()  # the lock is free
        driver.cancel()

    run_virtual(main)


def test_a_shutdown_ends_a_visit_that_waits_for_its_turn_or_its_commit() -> None:
    async def main(clock: VirtualClock) -> None:
        crawling = Crawling(clock)  # nothing commits

        async def visit(number: int) -> None:
            async with crawling.caution.visit(url(number), in_caution=True) as visit:
                await visit.begin_processing()

        visits = [asyncio.create_task(visit(number)) for number in (1, 2)]
        await clock.sleep(1)
        crawling.gate.close()
        await asyncio.gather(*visits, return_exceptions=True)
        assert all(task.cancelled() for task in visits)
        assert crawling.log == ["mark 1", "mark 2"], "what they brought is in the last commit"

    run_virtual(main)


def test_a_normal_visit_marks_nothing() -> None:
    async def main(clock: VirtualClock) -> None:
        crawling = Crawling(clock)
        async with crawling.caution.visit(url(1), in_caution=False) as visit:
            assert visit is NORMAL
            await visit.begin_processing()
            await visit.end_processing()
        assert not crawling.log
        assert not crawling.alarm.is_urgent

    run_virtual(main)


def test_an_answer_that_has_come_is_processed_although_the_gate_has_closed() -> None:
    """A stop of the operator dropped such a page: world 76, with kills before."""

    async def main(clock: VirtualClock) -> None:
        crawling = Crawling(clock)

        async def visit(number: int) -> None:
            async with crawling.caution.visit(url(number), in_caution=True) as visit:
                await visit.begin_processing()
                crawling.log.append(f"process {number}")
                await clock.sleep(1)
                crawling.log.append(f"done {number}")

        first = asyncio.create_task(visit(1))
        await clock.sleep(0.5)
        second = asyncio.create_task(visit(2))
        crawling.gate.close()
        await asyncio.gather(first, second, return_exceptions=True)
        assert [line for line in crawling.log if line.startswith("done")] == ["done 1", "done 2"]

    run_virtual(main)
