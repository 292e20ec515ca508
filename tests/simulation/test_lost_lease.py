"""A live worker that loses its lease, its store or its archive: requests are logged, and pauses are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawler.demo.pages import Page, Site, plain
from crawler.engine.crawl import Crawl
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.lease import Lease
from crawler.engine.polite_client import PoliteClient
from crawler.engine.tasks import required_task
from crawler.errors import ConnectionLost, StoreError
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import FetchResult, Purpose, Recorded, Request
from crawler.reasons import EndCode, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.session.crawl_session import run_to_end
from crawler.store.sqlite.store import SqliteStore
from tests.reading import ReaderInProcess
from tests.simulation.crawls import Options, rows, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

if TYPE_CHECKING:
    from crawler.store.sections import Store

BUSY = Page("slow down", 429, (("Retry-After", "60"),))
SITES: dict[str, Site] = {
    "a.test": {
        "/robots.txt": plain(""),
        "/": Page("".join(f"<a href='/{n}'>{n}</a>" for n in range(20))),
        "/7": lambda asked: Page("x") if asked.before else BUSY,
        "*": Page("x"),
    },
    "b.test": {"/robots.txt": plain(""), "/": Page("<a href='/1'>1</a>"), "*": Page("x", delay_s=30.0)},
}
SEEDS = ["http://a.test/", "http://b.test/"]


class Robbed:
    """A fetcher whose worker loses its lease when the answer to ``/7`` arrives, with another request in flight."""

    def __init__(self, web: SimulatedWeb, clock: VirtualClock) -> None:
        self._web, self._clock = web, clock
        self.store: Store | None = None
        self.crawl: Crawl | None = None
        self.stops = False

    async def fetch(self, request: Request) -> FetchResult:
        answer = await self._web.fetch(request)
        if answer.status == 429 and self.store is not None:
            assert self.crawl is not None
            await self.store.end_worker(self.store.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), self._clock.now())
            if self.stops:
                self.crawl.stop(RunEnd(EndCode.CALLER))
        return answer


def robbed_crawl(db_path: Path, *, stops: bool) -> tuple[SimulatedWeb, RunEnd]:
    async def main(clock: VirtualClock) -> tuple[SimulatedWeb, RunEnd]:
        web = SimulatedWeb(clock, SITES)
        robbed = Robbed(web, clock)
        robbed.stops = stops
        async with session(clock, db_path, robbed, SEEDS, Options()) as (run, store):
            robbed.store, robbed.crawl = store, run
            ended_by = await run.run()
            await store.end_run(ended_by, clock.now())
        return web, ended_by

    return run_virtual(main)


def logged(db_path: Path) -> list[tuple[str, float, float]]:
    found = asyncio.run(rows(db_path, "SELECT url, started_at, finished_at FROM requests"))
    return sorted((url, round(start - EPOCH_S, 3), round(end - EPOCH_S, 3)) for url, start, end in found)


def served(web: SimulatedWeb) -> list[tuple[str, float, float]]:
    return sorted(
        (f"http://{hit.host}{hit.path}", round(hit.started_at, 3), round(hit.finished_at, 3)) for hit in web.log
    )


def test_a_lost_lease_loses_no_logged_request_and_no_pause(db_path: Path) -> None:
    web, ended_by = robbed_crawl(db_path, stops=False)
    assert ended_by == RunEnd(EndCode.DONE)
    assert logged(db_path) == served(web)
    (cut,) = [hit for hit in web.log if hit.status == 0]
    assert cut.host == "b.test", "what was in flight was cut short, and asked again"
    answered = next(hit.finished_at for hit in web.log if hit.status == 429)
    (after,) = [after for before, after in pairwise(web.web.hits("a.test")) if before.status == 429]
    assert after.started_at == pytest.approx(answered + 60, abs=0.01)


def test_a_lease_lost_during_a_stop_loses_no_logged_request_and_no_pause(db_path: Path) -> None:
    web, ended_by = robbed_crawl(db_path, stops=True)
    assert ended_by == RunEnd(EndCode.CALLER)
    assert logged(db_path) == served(web)
    (kept,) = asyncio.run(rows(db_path, "SELECT next_at, waits_for FROM politeness_group WHERE name = 'a.test'"))
    answered = next(hit.finished_at for hit in web.log if hit.status == 429)
    assert kept == (pytest.approx(EPOCH_S + answered + 60), "Retry-After of a 429")


class FullDisk:
    """An archive that fails from the first 429 on, after 60 s in which other answers arrive."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock, self._is_full = clock, False

    async def record(self, batch: Sequence[Recorded]) -> None:
        self._is_full = self._is_full or any(recorded.answer.status == 429 for recorded in batch)
        if self._is_full:
            await self._clock.sleep(60)
            raise StoreError("No space left on device")


def test_a_failing_archive_loses_no_logged_request_and_no_pause(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, SITES)
        async with session(clock, db_path, web, SEEDS, Options(), recorder=FullDisk(clock)) as (run, _):
            with pytest.raises(StoreError, match="No space"):
                await run.run()
        return web

    web = run_virtual(main)
    assert logged(db_path) == served(web)
    (kept,) = asyncio.run(rows(db_path, "SELECT next_at, waits_for FROM politeness_group WHERE name = 'a.test'"))
    answered = next(hit.finished_at for hit in web.log if hit.status == 429)
    assert kept == (pytest.approx(EPOCH_S + answered + 60), "Retry-After of a 429")


def test_a_flush_ends_although_its_commit_loses_the_lease(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> str:
        web = SimulatedWeb(clock, SITES)
        async with session(clock, db_path, web, SEEDS, Options()) as (run, store), run.obeying_operator():
            task = asyncio.create_task(run.run())
            await clock.sleep(5)
            await store.end_worker(store.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), clock.now())
            waiting = asyncio.create_task(run.outbox.flush())
            await asyncio.wait_for(waiting, 100)
            return str(await task)

    assert run_virtual(main) == "nothing is left in the frontier"


@pytest.mark.parametrize(
    ("error", "noted"), [(ConnectionLost("gone"), None), (StoreError("full"), "the store failed: full")]
)
def test_the_end_is_noted_unless_the_store_cannot_be_reached(
    error: StoreError, noted: str | None, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(clock: VirtualClock) -> None:
        async def run() -> str:
            raise error

        async with session(clock, db_path, SimulatedWeb(clock, SITES), SEEDS, Options()) as (crawl, store):
            monkeypatch.setattr(crawl, "run", run)
            with pytest.raises(type(error)):
                await run_to_end(crawl, store, clock)

    run_virtual(main)
    assert asyncio.run(rows(db_path, "SELECT ended_by FROM run")) == [(noted,)]


@pytest.mark.parametrize("begins_at", [n * 0.4 for n in range(16)])
def test_no_request_outlives_the_lease_under_which_it_was_sent(
    begins_at: float, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_s, lease_s, silent_until = 5.4, 30.0, 60.0  # the timeout is 5 s; a busy loop notices it late

    async def main(clock: VirtualClock) -> list[tuple[float, float]]:
        web = SimulatedWeb(clock, {"a.test": {"/robots.txt": plain(""), "/": Page("x", delay_s=takes_s)}}, latency_s=0)
        store = await SqliteStore.open(db_path, lease_s=lease_s)
        renew = store.renew

        async def renew_late(now: float) -> None:
            """Grant the first lease at once, and the next one when the store answers again."""
            if clock.now() > EPOCH_S:
                await clock.sleep(EPOCH_S + silent_until - clock.now())
            await renew(now)

        monkeypatch.setattr(store, "renew", renew_late)
        await store.start_run({"auxiliary_run": "rup"}, clock.now())
        lease = Lease(store, clock, 5.0, clock.now)
        policy = RobotsPolicy(RobotsSettings(), "SimulatedBot")
        pauses = PolitenessSettings(delay_s=0.6, slow_factor=0.0)
        client = PoliteClient(store, web, clock, pauses, policy, lease, None, ReaderInProcess())
        try:
            async with required_task(lease.keep()):
                await clock.sleep(begins_at)
                while clock.now() < EPOCH_S + silent_until + 10:
                    await client.send(Request("http://a.test/", Purpose.RUP, 1000))
        finally:
            await store.close()
        return [(hit.started_at, hit.finished_at) for hit in web.log if hit.path == "/"]

    requests = run_virtual(main)
    assert [end for start, end in requests if start < silent_until] == [end for start, end in requests if end < lease_s]
    assert requests[-1][0] >= silent_until, "with the next lease the requests go on"
