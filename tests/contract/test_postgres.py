"""The PostgreSQL store alone: foreign or newer databases, concurrent writers, and passwords."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from crawler.clock import SystemClock, monotonic_s
from crawler.errors import ConnectionLost, LeaseLost, StatementError, StoreError, StoreVersionError, UsageError
from crawler.frontier.operator import BLOCKED, Command
from crawler.frontier.politeness import GroupBy, Pace, PolitenessSettings
from crawler.model import State
from crawler.reasons import EndCode, RunEnd, WaitCode, WaitReason
from crawler.store.location import require_postgres, shown
from crawler.store.postgres.dialect import translate
from crawler.store.postgres.store import PostgresStore
from crawler.store.rows import ClaimLimits, CommitBatch, PageGrant, PageRequest
from tests.contract.conftest import A, B, TwoWorkers, two_workers
from tests.contract.locks import until_it_waits
from tests.contract.visits import NOW, fetched, request
from tests.postgres import Cluster, binaries, cluster
from tests.proxy import Proxy


async def open_and_close(url: str, *, may_make: bool = True) -> None:
    await (await PostgresStore.open(url, may_make=may_make)).close()


async def test_a_foreign_or_missing_database_or_another_schema_is_refused(postgres: Cluster) -> None:
    url = postgres.make_database()
    with pytest.raises(UsageError, match="no crawl store"):
        await open_and_close(url, may_make=False)
    postgres.psql("CREATE TABLE accounts (money int)", database=postgres.name_in(url))
    with pytest.raises(UsageError, match="other tables"):
        await open_and_close(url)
    with pytest.raises(UsageError, match="does not exist"):
        await open_and_close(postgres.url("nowhere"))
    postgres.psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(UsageError, match=r"LATIN1.*UTF8"):
        await open_and_close(postgres.url("latin"))
    newer = postgres.make_database()
    await open_and_close(newer)
    postgres.psql("UPDATE store_version SET version = 999", database=postgres.name_in(newer))
    with pytest.raises(StoreVersionError, match="another version of the crawler"):
        await open_and_close(newer)
    postgres.psql("CREATE ROLE stranger LOGIN")
    with pytest.raises(UsageError, match=r"belongs to the role crawler.* grant-reader"):
        await open_and_close(newer.replace("crawler@", "stranger@"))


async def test_a_superuser_is_warned(postgres: Cluster) -> None:
    url = postgres.make_store()
    for role, warning in ("crawler", ""), ("postgres", "a superuser"):
        store = await PostgresStore.open(url.replace("crawler@", f"{role}@"))
        assert warning in store.warning, role
        assert bool(store.warning) is bool(warning), role
        await store.close()


async def test_an_unreachable_database_is_a_store_error_without_its_password() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as raised:
        await open_and_close("postgresql://me:hush@127.0.0.1:1/x?password=hush")
    assert "hush" not in str(raised.value)


async def test_a_remote_database_without_tls_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers the request for TLS with N, as PostgreSQL does without TLS."""
    monkeypatch.setattr("crawler.store.postgres.connection.needs_tls", lambda url, environment: True)

    async def refuse_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"N")
        assert await reader.read() == b"", "nothing is sent without TLS"
        writer.close()

    server = await asyncio.start_server(refuse_tls, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionLost, match=r"rejected SSL upgrade.*sslmode=disable"):
            await open_and_close(f"postgresql://me@127.0.0.1:{port}/x")


@pytest.mark.parametrize(
    ("db", "said"),
    [
        ("crawl.db", "crawl.db"),
        ("postgresql://me:hush@host/x", "postgresql://me@host/x"),
        ("postgresql://me:h@ush@host:5/x?password=hush&host=/tmp", "postgresql://me@host:5/x?host=/tmp"),
        ("postgresql:///x", "postgresql:///x"),
    ],
)
def test_passwords_are_not_shown(db: str, said: str) -> None:
    assert shown(db) == said


def test_a_url_of_another_database_is_refused_without_its_password() -> None:
    with pytest.raises(UsageError, match="postgresql://") as raised:
        require_postgres("mysql://me:hush@host/x")
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("sqlite", "postgres"),
    [
        ("SELECT ?, '?', \"?\" -- ?\n, ?", "SELECT $1, '?', \"?\" -- ?\n, $2"),
        ("x > ?1 AND x < ?1 + ?2", "x > $1 AND x < $1 + $2"),
        (
            "x > :least AND y < ':no' AND x < :most + :least AND z::int",
            "x > $1 AND y < ':no' AND x < $2 + $1 AND z::int",
        ),
        ("CAST(a / ? AS INTEGER)", "trunc(a / $1)::bigint"),
        ("group_concat(target)", "string_agg((target)::text, ',')"),
    ],
)
def test_sql_is_translated(sqlite: str, postgres: str) -> None:
    assert translate(sqlite).sql == postgres


async def test_an_invalid_statement_is_a_statement_error(postgres: Cluster) -> None:
    store = await PostgresStore.open(postgres.make_store())
    try:
        for sql, parameters in (("SELECT nonsense", ()), ("SELECT 1 WHERE 1 = ?", ()), ("SELECT 1", (1,))):
            with pytest.raises(StatementError):
                await store.query(sql, parameters)
        assert await store.query("SELECT 1 AS one") == [{"one": 1}]
    finally:
        await store.close()


async def run_out(url: str, worker: PostgresStore) -> None:
    """Let the lease of a worker run out."""
    other = await asyncpg.connect(url)
    await other.execute("UPDATE worker SET lease_until = clock() - 0.1 WHERE id = $1", worker.worker_id)
    await other.close()


async def test_no_group_is_with_two_workers(workers: TwoWorkers) -> None:
    first, second, now = workers
    turns = [
        store.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=1)))
        for store in (first, second)
        for _ in range(3)
    ]
    claims = [claim.group for result in await asyncio.gather(*turns) for claim in result.claims]
    assert sorted(claims) == ["a.test", "b.test"]
    assert True in (await first.others_at_work(), await second.others_at_work())


async def test_a_lease_that_ran_out_passes_its_groups_on_with_their_pause(postgres: Cluster) -> None:
    url = postgres.make_database()
    first, second, now = await two_workers(url)
    try:
        claims = (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=10)))).claims
        await run_out(url, first)
        ends_at = (await first.query("SELECT lease_until FROM workers WHERE worker = ?", (first.worker_id,)))[0]
        await second.renew(now + 10)
        assert await second.next_ready() is not None
        sql = "SELECT next_at, claimed_by FROM politeness_group WHERE name = ?"
        (row,) = await second.query(sql, (claims[0].group,))
        assert row["claimed_by"] is None
        assert row["next_at"] == pytest.approx(ends_at["lease_until"] + 2.0, abs=0.001)
        with pytest.raises(LeaseLost):
            await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=[fetched(claims[0].urls[0])]))
        assert await second.fetched_count() == 0
        await first.join_run(first.run_id, now)
        assert (await first.commit(CommitBatch(NOW * 2, claim_limits=ClaimLimits(groups=10)))).claims, (
            "it is a worker again"
        )
    finally:
        await first.close()
        await second.close()


async def test_offers_of_two_workers_at_once_are_one_url_with_the_better_depth(workers: TwoWorkers) -> None:
    first, second, now = workers
    claims = [
        (await store.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=1)))).claims[0]
        for store in (first, second)
    ]
    for number in range(20):
        links = [f"http://c.test/{number}/{n}" for n in range(30)]
        deep = fetched(claims[0].urls[0], links)
        near = fetched(claims[1].urls[0], reversed(links))
        deep = replace(deep, offers=tuple(replace(offer, depth=7) for offer in deep.offers))
        await asyncio.gather(
            first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=[deep])),
            second.commit(CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=[near])),
        )
    rows = await first.query("SELECT depth, count(*) AS n FROM urls WHERE site = 'http://c.test' GROUP BY depth")
    assert rows == [{"depth": 1, "n": 600}]
    assert await first.query("SELECT count(*) AS n FROM frontier WHERE depth = 1") == [{"n": 600}]


async def test_a_group_that_loses_its_only_url_while_another_worker_offers_one_is_ready(postgres: Cluster) -> None:
    url = postgres.make_store()
    first, second, now = await two_workers(url)
    try:
        (claim,) = (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=1)))).claims
        (other,) = {A, B} - {claim.urls[0].url}
        number = await first.find(other)
        assert number is not None
        async with first._writing():
            await first._committer.commit(CommitBatch(now, outcomes=[fetched(claim.urls[0], [other + "new"])]))
            exclusion = asyncio.create_task(second.exclude([(number, BLOCKED)]))
            await until_it_waits(exclusion, url)
        await exclusion
        assert await first.next_ready() is not None
    finally:
        await first.close()
        await second.close()


async def test_a_url_that_comes_nearer_while_its_page_is_committed_is_not_queued_again(postgres: Cluster) -> None:
    url = postgres.make_database()
    store = await PostgresStore.open(url)
    await store.start_run({}, NOW)
    await store.add_seeds([(A, None)])
    (claim,) = (await store.commit(CommitBatch(NOW, claim_limits=ClaimLimits(1)))).claims
    other = await asyncpg.connect(url)
    begun = other.transaction()
    await begun.start()
    await other.execute("DELETE FROM frontier")
    await other.execute("UPDATE url SET depth = -1")
    await other.execute(
        "INSERT INTO frontier (site_id, due_at, depth, url_id) SELECT (SELECT id FROM site), due_at, depth, id FROM url"
    )
    turn = asyncio.create_task(
        store.commit(
            CommitBatch(
                NOW, claim_limits=ClaimLimits(1), outcomes=[fetched(claim.urls[0], [])], released=[claim.group_id]
            )
        )
    )
    await until_it_waits(turn, url)
    await begun.commit()
    assert (await turn).claims == []
    assert await store.query("SELECT state FROM urls") == [{"state": State.FETCHED}]
    assert await store.query("SELECT * FROM frontier") == []
    await other.close()
    await store.close()


async def test_sites_go_into_the_groups_of_another_rule(postgres: Cluster) -> None:
    url = postgres.make_store()
    store = await PostgresStore.open(url, PolitenessSettings(group=GroupBy.DOMAIN))
    with_hosts = await PostgresStore.open(url)
    try:
        await with_hosts.add_seeds([("http://one.site.example/", None), ("http://two.site.example/", None)])
        await store.regroup()
        assert await store.query("SELECT DISTINCT politeness_group AS name FROM sites") == [{"name": "site.example"}]
    finally:
        await with_hosts.close()
        await store.close()


async def test_a_limit_on_pages_is_shared_out_to_the_page(workers: TwoWorkers) -> None:
    first, second, now = workers

    async def asks(store: PostgresStore, limit: int, kept: int, wanted: int, *, held: int = 1) -> PageGrant | None:
        pages = PageRequest(limit, kept, wanted)
        return (await store.commit(CommitBatch(now, claim_limits=ClaimLimits(0, held=held, pages=pages)))).grant

    assert await asks(first, 10, 0, 1) == await asks(second, 10, 0, 1) == PageGrant(5, 10), "equal shares"
    assert await asks(first, 10, 5, 8) == PageGrant(5, 10), "the others are reserved for the second"
    assert await asks(second, 10, 2, 2, held=0) == PageGrant(2, 10), "without a group, those in use remain"
    assert await asks(first, 10, 5, 8) == PageGrant(8, 10)
    assert await asks(second, 9, 2, 4) == PageGrant(2, 9), "what is in use remains, also under a lower limit"
    none_left = await first.commit(CommitBatch(now, claim_limits=ClaimLimits(1, pages=PageRequest(0, 0, 0))))
    assert (none_left.grant, none_left.claims) == (PageGrant(0, 0), [])


async def test_a_worker_hears_how_many_groups_are_its_share(workers: TwoWorkers) -> None:
    first, _, now = workers
    (there,) = await first.query("SELECT count(*) AS n FROM politeness_group WHERE ready_at IS NOT NULL")
    assert (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(100)))).share == -(-there["n"] // 2)


async def test_text_with_a_nul_is_kept_without_it(workers: TwoWorkers) -> None:
    first, second, now = workers
    claim = (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=1)))).claims[0]
    await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=[fetched(claim.urls[0], title="a\0b")]))
    assert await second.query("SELECT title FROM pages") == [{"title": "a\ufffdb"}]


async def test_the_crawl_is_not_over_while_a_group_is_held_or_was_just_given_back(workers: TwoWorkers) -> None:
    first, second, now = workers
    claims = (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=10)))).claims
    claims += (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=10)))).claims
    assert await second.others_at_work()
    await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), released=[claim.group_id for claim in claims]))
    assert await second.others_at_work()
    visits = [fetched(queued) for claim in claims for queued in claim.urls]
    await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=visits))
    if len(claims) < 2:
        (other,) = (await second.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=10)))).claims
        await second.commit(
            CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=[fetched(other.urls[0])], released=[other.group_id])
        )
    await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), released=[claim.group_id for claim in claims]))
    assert not await second.others_at_work()
    assert not await first.others_at_work()


@pytest.mark.parametrize(
    "write",
    [
        lambda store, number, order: store.exclude([(number, BLOCKED)]),
        lambda store, number, order: store.requeue([number]),
        lambda store, number, order: store.control.done(order, NOW),
        lambda store, number, order: store.control.orders(),
        lambda store, number, order: store.prepare(None),
        lambda store, number, order: store.query("SELECT 1"),
        lambda store, number, order: store.renew(NOW),
        lambda store, number, order: store.claim_group("http://c.test"),
    ],
    ids=["exclude", "requeue", "done", "orders", "prepare", "query", "renew", "reserve"],
)
async def test_each_operation_of_a_worker_survives_an_outage_of_the_database(
    postgres: Cluster, write: Callable[..., Awaitable[object]]
) -> None:
    url = postgres.make_database()
    with Proxy(postgres.socket) as proxy:
        through = f"postgresql://crawler@127.0.0.1:{proxy.port}/{postgres.name_in(url)}"
        store, other, _ = await two_workers(through)
        try:
            order = await store.control.give(Command.BLOCK, "a.test", SystemClock())
            number = await store.find(A)
            proxy.suffer("drop")
            await asyncio.gather(write(store, number, order), proxy.recover_when_missed())
        finally:
            proxy.recover()
            await store.close()
            await other.close()


@pytest.fixture(scope="module")
def short_lived() -> Iterator[Cluster]:
    """A server of its own, for tests that end it: with few databases it recovers at once."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with cluster() as server:
        yield server


def kill_a_backend(server: Cluster) -> None:
    """The server ends all its sessions, and recovers."""
    sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1"
    os.kill(int(server.psql(sql)), signal.SIGKILL)


def restart(server: Cluster, how: str) -> None:
    server.stop(how)
    server.start()


@pytest.mark.parametrize(
    "end",
    [
        lambda server: restart(server, "immediate"),
        lambda server: restart(server, "fast"),
        kill_a_backend,
        lambda server: server.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        ),
    ],
    ids=["crashed server", "stopped server", "killed backend", "ended sessions"],
)
async def test_a_worker_reconnects_to_a_server_that_closed_its_connections(
    short_lived: Cluster, end: Callable[[Cluster], None]
) -> None:
    url = short_lived.make_database()
    first, second, now = await two_workers(url)
    try:
        (claim, *_) = (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=1)))).claims
        other = await asyncpg.connect(url)
        await other.execute("SELECT pg_advisory_lock(4711)")
        waiting = asyncio.create_task(second.query("SELECT 1 AS one FROM pg_advisory_lock(4711)"))
        await until_it_waits(waiting, url)
        await asyncio.to_thread(end, short_lived)
        other.terminate()  # if it is not the session that was ended
        await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=[fetched(claim.urls[0])]))
        assert await waiting == [{"one": 1}]
        assert await second.fetched_count() == 1
    finally:
        await first.close()
        await second.close()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("08006", "server closed the connection unexpectedly"),
        ("57P01", "terminating connection due to administrator command"),
        ("57P02", "terminating connection because of crash of another server process"),
        ("57P03", "the database system is in recovery mode"),
    ],
)
async def test_an_error_of_a_lost_connection_is_one_although_a_server_reports_it(
    postgres: Cluster, code: str, said: str
) -> None:
    """A server in between, or one that reads foreign tables, passes the error of the other server on."""
    store = await PostgresStore.open(postgres.make_store())
    try:
        with pytest.raises(ConnectionLost, match=said):
            await store.query(f"DO $$ BEGIN RAISE EXCEPTION '{said}' USING ERRCODE = '{code}'; END $$")
    finally:
        await store.close()


async def test_a_connection_that_breaks_during_its_set_up_is_replaced(
    workers: TwoWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = workers
    prepared = []

    def prepare(connection: Any) -> None:
        prepared.append(connection)
        if len(prepared) == 1:
            raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")

    monkeypatch.setattr("crawler.store.postgres.connection._notice_silence", prepare)
    first._reader.drop()
    assert await first.query("SELECT 1 AS one") == [{"one": 1}]
    assert [connection.is_closed() for connection in prepared] == [True, False]


async def test_the_late_commit_of_a_lost_worker_is_taken_once_and_the_longer_pause_stays(
    workers: TwoWorkers,
) -> None:
    first, second, now = workers
    claims = {
        claim.group: claim
        for claim in (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=10)))).claims
    }
    claims |= {
        claim.group: claim
        for claim in (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=10)))).claims
    }
    (site_id,) = claims["a.test"].sites
    await second.end_worker(first.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), now)
    theirs = {"a.test": Pace(now + 5, 5.0), "b.test": Pace(now + 100, 100.0)}
    await second.commit(
        CommitBatch(now, claim_limits=ClaimLimits(0), requests=[request(site_id, "/theirs", now)], paces=theirs)
    )
    ours = {
        "a.test": Pace(now + 60, 60.0, 0.0, WaitReason(WaitCode.RETRY_AFTER, "429")),
        "b.test": Pace(now + 3, 3.0),
    }
    late = CommitBatch(now, claim_limits=ClaimLimits(0), requests=[request(site_id, "/ours", now - 10)], paces=ours)
    with pytest.raises(LeaseLost) as lost:
        await first.commit(late)
    assert not lost.value.committed
    await first.commit_late(late)
    first._workers.commits -= 1  # as where it was committed and the answer lost
    await first.commit_late(late)
    rows = await second.query("SELECT path, worker.requests FROM request, worker WHERE worker.id = ?", (1,))
    assert rows == [{"path": "/theirs", "requests": 1}, {"path": "/ours", "requests": 1}]
    await second.commit(CommitBatch(now, claim_limits=ClaimLimits(0), paces=theirs))
    rows = await second.query("SELECT name, pause_s, wait_code, waits_for FROM politeness_group ORDER BY name")
    assert [tuple(row.values()) for row in rows] == [
        ("a.test", 60.0, "retry_after", "Retry-After of a 429"),
        ("b.test", 100.0, "none", ""),
    ]


async def test_a_worker_that_lost_its_lease_knows_whether_its_last_batch_was_committed(workers: TwoWorkers) -> None:
    first, second, now = workers
    for by_lease in (False, True):
        await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0)))
        first._workers.commits -= 1  # its answer was lost
        if by_lease:
            await second.end_worker(first.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), now)
        with pytest.raises(LeaseLost) as lost:
            await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0)))
        assert lost.value.committed


@pytest.mark.parametrize("condition", ["disk_full", "deadlock_detected", "serialization_failure"])
async def test_a_statement_that_may_succeed_later_is_retried(postgres: Cluster, condition: str) -> None:
    store, other, _ = await two_workers(postgres.make_store(), reconnect_s=60)
    try:
        left = iter([True, True])

        async def write() -> int:
            if next(left, False):
                await store._reader.execute(f"DO $$ BEGIN RAISE {condition}; END $$")
            return 7

        assert await store._retry(write) == 7
        assert store.away_s is None
    finally:
        await store.close()
        await other.close()


async def test_patience_with_a_lost_database_is_had_once(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, now = await two_workers(postgres.make_store(), reconnect_s=0.3)
    try:
        tried = []

        async def refused() -> Any:
            tried.append(monotonic_s())
            raise ConnectionRefusedError("nobody there")

        for connection in (first._db, first._reader):
            connection.drop()
            monkeypatch.setattr(connection, "_made", refused)
        with pytest.raises(ConnectionLost):
            await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0)))
        assert len(tried) > 1
        for _ in range(2):
            tried.clear()
            with pytest.raises(ConnectionLost):
                await first.end_run(RunEnd(EndCode.FAILURE), now)
            assert len(tried) == 1
    finally:
        await first.close()
        await second.close()


async def test_a_report_may_take_longer_than_the_timeout_of_a_crawl(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = await two_workers(postgres.make_store(), reconnect_s=0.3)
    try:
        first._db.timeout_s = first._reader.timeout_s = 0.2
        counts = first._sql_of["counts"].rstrip(";\n ")
        slow = {"counts": f"SELECT n.* FROM ({counts}) AS n, pg_sleep(1)"}
        monkeypatch.setattr(first._slow, "_statements", slow)
        monkeypatch.setattr(first._read, "_statements", slow)
        assert (await first.counts()).states[State.QUEUED] == 2
        with pytest.raises(ConnectionLost):
            await first._read.fetch_one("counts")
    finally:
        await first.close()
        await second.close()
