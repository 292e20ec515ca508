"""Runs that several processes have to do with, on PostgreSQL: who is at work on them, and who is no more."""

from __future__ import annotations

import asyncio

import pytest

from crawler.assemble import manners
from crawler.clock import SystemClock
from crawler.config import Settings
from crawler.errors import LeaseLost
from crawler.frontier.operator import Command
from crawler.loops.envoy import Envoy
from crawler.loops.lease import Lease, kept
from crawler.model import Failed, FetchResult, Purpose, Request
from crawler.store.interface import Beat
from crawler.store.postgres import PostgresStore
from tests.contract.test_postgres import two_workers
from tests.postgres import Cluster


async def test_who_begins_a_run_for_others_is_at_work_until_the_first_of_them_is(postgres: Cluster) -> None:
    clock, url = SystemClock(), postgres.make_database()
    above, worker = await PostgresStore.open(url, clock=clock), await PostgresStore.open(url)
    try:
        run_id = await above.start_run({"workers": 2}, clock.now(), at_work=False)
        assert await worker.run_under_way(clock.now()) == (run_id, {"workers": 2})
        await worker.join_run(run_id, clock.now())
        assert [row["worker"] for row in await worker.query("SELECT worker FROM workers")] == [worker.worker_id]
        await worker.end_run("done", clock.now())
        assert await above.run_under_way(clock.now()) is None
        await above.take_part(run_id, clock.now(), at_work=False)
        await above.end_run("no worker came", clock.now())
        assert await worker.run_under_way(clock.now()) is None
    finally:
        await above.close()
        await worker.close()


async def test_an_errand_is_no_run_that_others_could_join(postgres: Cluster) -> None:
    clock, url = SystemClock(), postgres.make_database()
    errand, crawl = await PostgresStore.open(url, clock=clock), await PostgresStore.open(url)
    try:
        await errand.start_run({"errand": "rup"}, clock.now())
        assert await crawl.run_under_way(clock.now()) is None
        assert await crawl.last_run() is None
        run_id = await crawl.start_run({}, clock.now())
        await errand.start_run({"errand": "rup"}, clock.now())
        assert (await crawl.run_under_way(clock.now()) or (0,))[0] == run_id
        assert (await crawl.last_run() or {})["id"] == run_id
        assert (await crawl.control.give(Command.STOP, "", clock)).run_id == run_id
    finally:
        await errand.close()
        await crawl.close()


async def test_a_run_is_begun_only_when_a_worker_that_is_stopped_within_a_turn_is_known_to_be_lost(
    postgres: Cluster,
) -> None:
    clock, url = SystemClock(), postgres.make_database()
    stopped = await PostgresStore.open(url, lease_s=0.3, clock=clock)
    other = await PostgresStore.open(url, lease_s=0.3)
    try:
        run_id = await stopped.start_run({}, clock.now())
        await asyncio.sleep(0.5)
        stopped._workers.lease_s = 60.0
        async with stopped._writing():
            await stopped._workers.renew(None, clock.now())
            recovery = asyncio.create_task(other.recover(clock.now()))
            await asyncio.wait([recovery], timeout=0.5)
            assert not recovery.done()
        await recovery
        assert await other.run_under_way(clock.now()) is not None, "it was not lost: its turn was committed"
        await other.bury(stopped.worker_id, "lease ran out", clock.now())
        newer = await other.start_run({}, clock.now())
        with pytest.raises(LeaseLost):
            await stopped.renew(clock.now())
        assert (newer > run_id, await stopped.rejoin(clock.now())) == (True, False)
    finally:
        await stopped.close()
        await other.close()


async def test_who_comes_back_goes_on_with_a_run_that_the_others_thought_was_over(postgres: Cluster) -> None:
    first, second, now = await two_workers(postgres.make_database())
    try:
        await second.bury(first.worker_id, "lease ran out", now)
        await second.end_run("stopped by SIGINT", now)
        assert (await second.last_run() or {})["ended_by"] == "stopped by SIGINT"
        assert await first.rejoin(now)
        assert (await second.last_run() or {})["finished_at"] is None
        await first.renew(now)
    finally:
        await first.close()
        await second.close()


async def test_signs_of_life_of_processes_with_the_same_number_are_told_apart(postgres: Cluster) -> None:
    first, second, now = await two_workers(postgres.make_database())
    try:
        beats = [Beat(first.run_id, 7, now + n, 1000 * n, 0.0) for n in range(3)]
        for store, beat in zip((first, second, second), beats, strict=True):
            await store.control.beat(beat)
        assert sorted(await first.control.beats(), key=lambda beat: beat.seen_at) == [beats[0], beats[2]]
        await first.rejoin(now)
        await first.control.beat(beats[1])
        assert sorted(await first.control.beats(), key=lambda beat: beat.seen_at) == beats[1:]
    finally:
        await first.close()
        await second.close()


async def test_an_errand_that_loses_its_lease_is_cut_off_and_what_it_sent_is_logged(postgres: Cluster) -> None:
    clock = SystemClock()
    store = await PostgresStore.open(postgres.make_database(), clock=clock)

    class Lost:
        """Answers when the lease is gone."""

        async def fetch(self, request: Request) -> FetchResult:
            await store.bury(store.worker_id, "lease ran out", clock.now())
            return Failed(request.url, clock.now(), clock.now(), detail="no answer")

    try:
        await store.start_run({"errand": "rup"}, clock.now())
        manner = manners(Settings())
        lease = Lease(store, clock, manner.longest_request_s)
        envoy = Envoy(store, Lost(), clock, manner.politeness, manner.robots, lease)
        with pytest.raises(LeaseLost):
            async with kept(lease):
                await envoy.send(Request("http://a.test/rupinfo.txt", Purpose.RUP, 1000))
        assert [row["url"] for row in await store.query("SELECT url FROM requests")] == ["http://a.test/robots.txt"]
        with pytest.raises(LeaseLost):
            async with kept(lease):
                await asyncio.sleep(60)
    finally:
        await store.close()
