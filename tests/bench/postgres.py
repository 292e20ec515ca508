"""Measure one PostgreSQL server with many URLs: bytes, WAL for each page, claims and pages a second, and vacuum.

The benchmark starts a server of its own that flushes as in use, loads a store with `--urls` queued URLs, and commits
pages to it for `--seconds`, as one worker does: it claims groups, and commits a page with 32 links, a request and a
body for each URL claimed. Fetching and parsing are left out. Half of the links are new, and one in ten leads to another
group. Each URL takes some 330 octets of the disk for temporary files (`TMPDIR`), and each page 15 kB.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from crawler.frontier.decide import FetchedPage, Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import Pace
from crawler.model import Body, Link, PageFacts, Purpose, State
from crawler.reasons import Reason, ReasonCode, WaitCode, WaitReason
from crawler.store.keys import render_keys, url_number
from crawler.store.postgres.store import PostgresStore
from crawler.store.rows import ClaimLimits, CommitBatch, RequestRow
from tests.bench import stores
from tests.bench.growth import LINKS, OWN_SITE, STARTED_AT
from tests.bench.table import Row
from tests.postgres import Cluster, binaries, cluster

DELAY_S, TURN_S = 1.0, 0.5
GROUPS, URLS_PER_GROUP = 3, 10  # 30 pages a commit, as crawls have
BODY_BYTES = 8_000  # as stored
_FETCHED = Reason(ReasonCode.FETCHED, "200")


#: The sites of :mod:`tests.bench.stores`, made by the database itself.
_SITES = """
CREATE TABLE made AS SELECT n + 1 AS id, {name} AS name, {filled_at} - 3600 * random() AS at
FROM generate_series(0, {sites} - 1) AS n;
INSERT INTO robots_text (sha256, body) VALUES (sha256('{robots}'), '{robots}');
INSERT INTO politeness_group (id, name, ready_at, next_at, pause_s, wait_code, waits_for)
SELECT group_number(name), name, at, at, 1, 'delay', 'delay' FROM made;
INSERT INTO site (name, host, registered_domain, group_id, robots_id)
SELECT name, name, name, group_number(name), id FROM made ORDER BY id;
INSERT INTO robots_copy (site_id, text_id, action, status, fetched_at, valid_from, valid_until)
SELECT id, 1, 'parse', '200', at - 1, at - 1, at + {valid_s} FROM made ORDER BY id;
DROP TABLE made;
CREATE TABLE made_path (page int, hash bigint, path text);
"""
#: The URLs of some pages of all sites. All sites have the same paths, so the database needs few hashes.
_URLS = """
INSERT INTO url (id, path, state, depth, found_on, seed)
SELECT first_url_of(site) + hash, path, 'queued', least(page, 1),
  CASE WHEN page > 0 THEN first_url_of(site) + {start} END, (page = 0)::int
FROM generate_series(1::bigint, {sites}) AS site, made_path WHERE page % {rounds} = {round};
INSERT INTO frontier (site_id, due_at, depth, url_id)
SELECT site, 0, least(page, 1), first_url_of(site) + hash
FROM generate_series(1::bigint, {sites}) AS site, made_path WHERE page % {rounds} = {round};
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--urls", type=int, default=2_000_000, help="URLs queued in the store [%(default)s]")
    parser.add_argument("--per-site", type=int, default=100, metavar="URLS", help="URLs of a site [%(default)s]")
    parser.add_argument("--seconds", type=float, default=120.0, help="for how long to crawl [%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    if binaries() is None:
        raise argparse.ArgumentError(None, "postgres: PostgreSQL is not installed (apt-get install postgresql)")
    with cluster(durable=True) as server:
        return asyncio.run(_measure(server, options.urls // options.per_site, options.per_site, options.seconds))


async def _measure(server: Cluster, sites: int, per_site: int, seconds: float) -> list[Row]:
    store = await PostgresStore.open(server.make_database())
    rows: list[Row] = []
    try:
        began_at = time.monotonic()
        await _load(store, sites, per_site)
        loaded_s = time.monotonic() - began_at
        urls = await _number(store, "SELECT count(*) FROM url")
        rows.append(Row(f"load {urls:,} queued URLs", urls / loaded_s, "URLs/s", note=f"{loaded_s:.0f} s, by SQL"))
        rows += [
            Row(f"bytes a row of {table}", await _bytes(store, table) / urls, "B", note="with its indexes")
            for table in ("url", "frontier")
        ]
        rows += await _crawl(store, [per_site] * sites, seconds)
        store._db.timeout_s = None  # a run bounds each statement, but a vacuum of 20 GB takes minutes
        rows += [await _vacuum(store, table) for table in ("url", "frontier", "link", "request")]
        rows.append(Row("database", await _number(store, "SELECT pg_database_size(current_database())") / 1e6, "MB"))
    finally:
        await store.close()
    return rows


async def _vacuum(store: PostgresStore, table: str) -> Row:
    began_at = time.monotonic()
    await store._db.execute(f"VACUUM {table}")
    took_s = time.monotonic() - began_at
    return Row(f"vacuum of {table}", took_s, "s", note=f"{await _bytes(store, table) / 1e6:,.0f} MB, with its indexes")


async def _load(store: PostgresStore, sites: int, per_site: int) -> None:
    name = f"'{stores.site_name(0)}'".replace("0", "' || n || '", 1)
    made = {"name": name, "filled_at": stores.FILLED_AT, "valid_s": stores.VALID_S, "robots": stores.ROBOTS.decode()}
    await store._db.execute(_SITES.format(sites=sites, **made))
    hashes = [url_number(0, stores.path_of(page), stores.HASH_KEY) for page in range(per_site)]
    rows = [(page, each, stores.path_of(page)) for page, each in enumerate(hashes)]
    await store.insert_rows("hash_key", ("id", "key"), [(1, stores.HASH_KEY)])
    await store.insert_rows("made_path", ("page", "hash", "path"), rows)
    for turn in range(stores.ROUNDS):
        urls = _URLS.format(sites=sites, start=hashes[0], rounds=stores.ROUNDS, round=turn)
        await store._db.execute(render_keys(urls))
    await store._db.execute("DROP TABLE made_path")
    await store._db.execute("ANALYZE")


async def _crawl(store: PostgresStore, sizes: list[int], seconds: float) -> list[Row]:
    run_id = await store.start_run({}, STARTED_AT)
    chance, new, now = random.Random(7), Counter[int](), STARTED_AT
    wal_at = await _number(store, "SELECT pg_current_wal_lsn() - '0/0'")
    pages = turns = 0
    claiming_s = committing_s = 0.0
    cpu_at, began_at = _cpu_s(), time.monotonic()
    while time.monotonic() - began_at < seconds:
        took: list[float] = []
        async with _timed(took):
            claims = (await store.commit(CommitBatch(now, claim_limits=ClaimLimits(GROUPS, URLS_PER_GROUP)))).claims
        visits = [queued for claim in claims for queued in claim.urls]
        outcomes = [_page(queued, sizes, new, chance, now) for queued in visits]
        pace = Pace(now + DELAY_S, DELAY_S, 0.0, WaitReason(WaitCode.DELAY))
        batch = CommitBatch(
            now,
            outcomes=outcomes,
            requests=[_request(queued, now) for queued in visits],
            paces={claim.group: pace for claim in claims},
            released=[claim.group_id for claim in claims],
        )
        async with _timed(took):
            await store.commit(batch)
        claiming_s, committing_s = claiming_s + took[0], committing_s + took[1]
        pages, turns, now = pages + len(visits), turns + 1, now + TURN_S
    spent_s, cpu_s = time.monotonic() - began_at, _cpu_s() - cpu_at
    wal = await _number(store, "SELECT pg_current_wal_lsn() - '0/0'") - wal_at
    assert await _number(store, f"SELECT count(*) FROM request WHERE run_id = {run_id}") == pages
    links = await _number(store, "SELECT count(*) FROM link")
    return [
        Row("pages committed a second", pages / spent_s, "1/s", note=f"{pages:,} pages, {turns} claims and commits"),
        Row("URLs claimed a second", pages / claiming_s, "1/s", note=f"in {claiming_s:.0f} of {spent_s:.0f} s"),
        Row("commit of a page", committing_s / pages * 1e3, "ms", note="wall time, with offers to other groups"),
        Row("CPU of the crawler a page", cpu_s / pages * 1e3, "ms", note="its store alone"),
        Row("WAL a page", wal / pages / 1e3, "kB", note=f"of it {BODY_BYTES / 1e3:.0f} kB of body"),
        Row("bytes a link", await _bytes(store, "link") / links, "B", note="with its index"),
    ]


def _page(queued: Queued, sizes: list[int], new: Counter[int], chance: random.Random, now: float) -> Outcome:
    urls: set[str] = set()
    while len(urls) < LINKS:
        site = queued.site_id - 1 if chance.random() < OWN_SITE else chance.randrange(len(sizes))
        number = chance.randrange(sizes[site])
        if len(urls) % 2:
            number = sizes[site] + new[site]
            new[site] += 1
        urls.add(stores.site_name(site) + stores.path_of(number))
    plain = chance.randbytes(BODY_BYTES)
    body = Body(hashlib.sha256(plain).digest(), plain)
    facts = PageFacts(title="The title of a page", description="A sentence about the page and what is on it")
    page = FetchedPage(200, "text/html", now, facts, body, len(plain), None, None)
    links = tuple(Link(url, "a text that says of what it is", "", follow=True) for url in urls)
    offers = tuple(Offer(url, queued.depth + 1) for url in urls)
    return Outcome(queued, State.FETCHED, _FETCHED, page=page, links=links, offers=offers)


def _request(queued: Queued, now: float) -> RequestRow:
    path = queued.url.partition(f":{stores.PORT}")[2]
    return RequestRow(
        queued.site_id, path, Purpose.PAGE, now, now + 0.2, 200, None, BODY_BYTES, None, queued.site_id, None
    )


async def _number(store: PostgresStore, sql: str) -> int:
    ((value,),) = [row.values() for row in await store.query(sql)]
    return int(value)


def _bytes(store: PostgresStore, table: str) -> Awaitable[int]:
    return _number(store, f"SELECT pg_total_relation_size('{table}')")


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@asynccontextmanager
async def _timed(into: list[float]) -> AsyncIterator[None]:
    began_at = time.monotonic()
    yield
    into.append(time.monotonic() - began_at)
