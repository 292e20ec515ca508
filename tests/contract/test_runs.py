"""Runs of several processes: which of them are at work, and which have ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from crawler.cli.shared import store_at
from crawler.clock import SystemClock
from crawler.engine.lease import Lease
from crawler.engine.polite_client import PoliteClient
from crawler.engine.tasks import required_task
from crawler.errors import LeaseLost, StoreError
from crawler.frontier.operator import Command
from crawler.model import Failed, FetchResult, Purpose, Request
from crawler.reasons import EndCode, RunEnd
from crawler.session.crawl_session import begun, crawl_policy, crawl_session, worker_session
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.postgres.store import PostgresStore
from crawler.store.rows import Beat
from crawler.store.sql import revisits, section
from crawler.store.sql.tables import StoreStatements
from tests.contract.conftest import TwoWorkers, two_workers
from tests.contract.locks import until_it_waits
from tests.contract.test_postgres import run_out
from tests.contract.visits import NOW
from tests.postgres import Cluster
from tests.proxy import Proxy
from tests.reading import ReaderInProcess


async def test_a_supervisor_is_at_work_until_its_first_worker_is(postgres: Cluster) -> None:
    clock, url = SystemClock(), postgres.make_database()
    above, worker = await PostgresStore.open(url, clock=clock), await PostgresStore.open(url)
    try:
        run_id = await above.start_run({"workers": 2}, clock.now(), at_work=False)
        assert await worker.run_under_way(clock.now()) == (run_id, {"workers": 2})
        await worker.join_run(run_id, clock.now())
        assert [row["worker"] for row in await worker.query("SELECT worker FROM workers")] == [worker.worker_id]
        await worker.end_run(RunEnd(EndCode.DONE), clock.now())
        assert await above.run_under_way(clock.now()) is None
        await above.register_in_run(run_id, clock.now(), at_work=False)
        await above.end_run(RunEnd(EndCode.DONE), clock.now())
        assert await worker.run_under_way(clock.now()) is None
    finally:
        await above.close()
        await worker.close()


async def test_no_run_begins_while_bodies_are_deleted(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres.make_store()
    first, second = await PostgresStore.open(url), await PostgresStore.open(url)
    begun: list[asyncio.Task[None]] = []

    async def while_others_come(sql: StoreStatements) -> bool:
        is_idle = await section.are_idle(sql)
        if is_idle:
            begun.append(asyncio.create_task(second.join_run(first.run_id, NOW)))
            await until_it_waits(begun[0], url)
        return is_idle

    try:
        await first.start_run({}, NOW)
        await first.query("INSERT INTO body_to_drop VALUES (1)")
        monkeypatch.setattr(revisits, "are_idle", while_others_come)
        await first.end_run(RunEnd(EndCode.DONE), NOW)
        await begun[0]
        await first.query("INSERT INTO body_to_drop VALUES (1)")
        await first.start_run({}, NOW)  # the other one is at work: nothing is swept
        assert len(begun) == 1
    finally:
        await first.close()
        await second.close()


async def test_one_of_two_workers_that_end_at_once_ends_the_run(postgres: Cluster) -> None:
    url = postgres.make_store()
    first, second, now = await two_workers(url)
    try:
        async with first._writing():
            await first._end_run(RunEnd(EndCode.STOPPED), now)
            other = asyncio.create_task(second.end_run(RunEnd(EndCode.STOPPED), now))
            await until_it_waits(other, url)
        await other
        assert (await first.last_run() or {})["ended_by"] == "stopped; the same command continues the crawl"
    finally:
        await first.close()
        await second.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_worker_stopped_before_its_crawl_is_no_longer_at_work(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(tmp_path / "c.db") if kind == "sqlite" else request.getfixturevalue("postgres").make_database()
    settings, clock = store_at(url), SystemClock()
    async with crawl_session(settings, Seeds(["http://127.0.0.1:9/"], {}), clock=clock):
        pass
    async with begun(settings, Seeds([], {}), clock, at_work=False) as (above, _):
        with suppress(StoreError):
            async with worker_session(settings, above.run_id, clock):
                raise StoreError("its crawl could not begin")
    async with existing_store(settings) as store:
        assert await store.query("SELECT ended_by FROM worker WHERE ended_at IS NULL") == []
        why = {row["ended_by"] for row in await store.query("SELECT ended_by FROM run")}
        assert why == {"ended before it began"}


async def test_a_worker_that_joins_waits_for_an_absent_database(postgres: Cluster) -> None:
    url = postgres.make_database()
    with Proxy(postgres.socket) as proxy:
        through = f"postgresql://crawler@127.0.0.1:{proxy.port}/{postgres.name_in(url)}"
        async with begun(store_at(url), Seeds(["http://127.0.0.1:9/"], {}), SystemClock(), at_work=False) as (above, _):
            proxy.suffer("drop")
            recovering = asyncio.create_task(proxy.recover_when_missed())
            async with worker_session(store_at(through), above.run_id, SystemClock()) as (_, store):
                assert [row["id"] for row in await above.query("SELECT id FROM worker")] == [store.worker_id]
            await recovering


async def test_workers_cannot_join_an_auxiliary_run(postgres: Cluster) -> None:
    clock, url = SystemClock(), postgres.make_database()
    auxiliary, crawl = await PostgresStore.open(url, clock=clock), await PostgresStore.open(url)
    try:
        await auxiliary.start_run({"auxiliary_run": "rup"}, clock.now())
        assert await crawl.run_under_way(clock.now()) is None
        assert await crawl.last_run() is None
        run_id = await crawl.start_run({}, clock.now())
        await auxiliary.start_run({"auxiliary_run": "rup"}, clock.now())
        assert (await crawl.run_under_way(clock.now()) or (0,))[0] == run_id
        assert (await crawl.last_run() or {})["id"] == run_id
        assert (await crawl.control.give(Command.STOP, "", clock)).run_id == run_id
    finally:
        await auxiliary.close()
        await crawl.close()


async def test_a_run_begins_only_after_a_worker_stopped_within_a_commit_is_known_to_be_lost(
    postgres: Cluster,
) -> None:
    clock, url = SystemClock(), postgres.make_database()
    stopped = await PostgresStore.open(url, clock=clock)
    other = await PostgresStore.open(url)
    try:
        run_id = await stopped.start_run({}, clock.now())
        await run_out(url, stopped)
        async with stopped._writing():
            await stopped._workers.renew(None, clock.now())
            recovery = asyncio.create_task(other.recover(clock.now()))
            await until_it_waits(recovery, url)
        await recovery
        assert await other.run_under_way(clock.now()) is not None, "it was not lost: its turn was committed"
        await other.end_worker(stopped.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), clock.now())
        newer = await other.start_run({}, clock.now())
        with pytest.raises(LeaseLost):
            await stopped.renew(clock.now())
        assert (newer > run_id, await stopped.rejoin(clock.now())) == (True, False)
    finally:
        await stopped.close()
        await other.close()


async def test_a_returning_worker_continues_a_run_that_others_considered_ended(workers: TwoWorkers) -> None:
    first, second, now = workers
    await second.end_worker(first.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), now)
    await second.end_run(RunEnd(EndCode.SIGNAL, "SIGINT"), now)
    assert (await second.last_run() or {})["ended_by"] == "stopped by SIGINT; the same command continues the crawl"
    assert await first.rejoin(now)
    assert (await second.last_run() or {})["finished_at"] is None
    await first.renew(now)


async def test_heartbeats_of_processes_with_the_same_number_are_distinguished(workers: TwoWorkers) -> None:
    first, second, now = workers
    beats = [Beat(first.run_id, 7, now + n, 1000 * n, 0.0) for n in range(3)]
    for store, beat in zip((first, second, second), beats, strict=True):
        await store.control.beat(beat)
    assert sorted(await first.control.beats(), key=lambda beat: beat.seen_at) == [beats[0], beats[2]]
    await first.rejoin(now)
    await first.control.beat(beats[1])
    assert sorted(await first.control.beats(), key=lambda beat: beat.seen_at) == beats[1:]


async def test_an_auxiliary_run_that_loses_its_lease_ends_and_logs_its_requests(postgres: Cluster) -> None:
    clock = SystemClock()
    store = await PostgresStore.open(postgres.make_store(), clock=clock)

    class Lost:
        """Answers when the lease is gone."""

        async def fetch(self, request: Request) -> FetchResult:
            await store.end_worker(store.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), clock.now())
            return Failed(request.url, clock.now(), clock.now(), detail="no answer")

    try:
        await store.start_run({"auxiliary_run": "rup"}, clock.now())
        policy = crawl_policy(Settings())
        lease = Lease(store, clock, policy.fetch.total_timeout_s)
        client = PoliteClient(store, Lost(), clock, policy.politeness, policy.robots, lease, None, ReaderInProcess())
        with pytest.raises(LeaseLost):
            async with required_task(lease.keep()):
                await client.send(Request("http://a.test/rupinfo.txt", Purpose.RUP, 1000))
        assert [row["url"] for row in await store.query("SELECT url FROM requests")] == ["http://a.test/robots.txt"]
        with pytest.raises(LeaseLost):
            async with required_task(lease.keep()):
                await asyncio.sleep(60)
    finally:
        await store.close()
