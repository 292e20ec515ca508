"""Measure how the cost of a URL grows with the frontier: the CPU time to offer and to claim one.

The benchmark compares a small store with a large one. Each is used by a process of its own, so that its memory can be
measured. Their windows alternate, so other load on the machine affects both. A page has 32 distinct links: half of them
are unknown to the store, and nine in ten lead to the site of the page. The cost of pages (bodies, rows of links) is not
measured, because it does not depend on the frontier.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import Pace
from crawler.model import State
from crawler.reasons import Reason, ReasonCode, WaitCode, WaitReason
from crawler.store.rows import Claim, ClaimLimits, CommitBatch
from crawler.store.sqlite.store import SqliteStore
from tests.bench import stores
from tests.bench.table import Row

LINKS = 32
OWN_SITE = 0.9
GROUPS_PER_TURN = 100
URLS_PER_GROUP = 10  # as a crawl claims with a pause of half a second or more
PAGES_PER_TURN = 200  # the number of outcomes after which a commit is due
TURN_S = 0.5
DELAY_S = 1.0
STARTED_AT = stores.FILLED_AT + 3600

_FETCHED = Reason(ReasonCode.FETCHED, "200")


def add_options(parser: argparse.ArgumentParser) -> None:
    stores.add_options(parser)
    parser.add_argument(
        "--small", type=int, default=1_000_000, metavar="URLS", help="URLs queued in the small store [%(default)s]"
    )
    parser.add_argument(
        "--large", type=int, default=10_000_000, metavar="URLS", help="URLs queued in the large store [%(default)s]"
    )
    parser.add_argument(
        "--sites",
        type=int,
        default=100_000,
        help="sites of the large store; the small one has sites as large [%(default)s]",
    )
    parser.add_argument("--windows", type=int, default=9, help="windows to time for each store [%(default)s]")
    parser.add_argument("--turns", type=int, default=10, help="commits in a window [%(default)s]")


@dataclass(frozen=True, slots=True)
class Window:
    """The CPU time of some commits, in µs per URL, and the peak memory of the process so far."""

    offered_us: float
    claimed_us: float
    peak_mb: float


def run(options: argparse.Namespace) -> list[Row]:
    per_site = max(LINKS, options.large // options.sites)
    sizes = {urls: [per_site] * (urls // per_site) for urls in (options.small, options.large)}
    files = {urls: stores.kept(options.stores, sites) for urls, sites in sizes.items()}
    context = multiprocessing.get_context("spawn")
    pipes: dict[int, Connection] = {}
    measured: dict[int, list[Window]] = {urls: [] for urls in sizes}
    with tempfile.TemporaryDirectory(dir=options.stores) as folder:
        children = []
        for urls, path in files.items():
            pipes[urls], theirs = context.Pipe()
            store = stores.copy(path, Path(folder), path.name)
            children.append(context.Process(target=_child, args=(theirs, store, sizes[urls]), daemon=True))
            children[-1].start()
            theirs.close()  # then the end of the child is noticed here
        for window in range(options.windows + 1):
            for urls, pipe in pipes.items():
                pipe.send(options.turns)
                figures = pipe.recv()
                if window:  # the first one fills caches
                    measured[urls].append(figures)
        for pipe, child in zip(pipes.values(), children, strict=True):
            pipe.send(0)
            child.join()
    return _rows(measured[options.small], measured[options.large], options)


def _rows(small: list[Window], large: list[Window], options: argparse.Namespace) -> list[Row]:
    beside = f"{options.small:,} queued"
    rows = []
    for name, most in (("offered", 2.0), ("claimed", 1.2)):
        before, after = ([getattr(window, f"{name}_us") for window in windows] for windows in (small, large))
        ratio = median(late / early for early, late in zip(before, after, strict=True))
        rows.append(
            Row(
                f"CPU per URL {name}, {options.large:,} queued",
                median(after),
                "µs",
                peer=beside,
                peer_figure=median(before),
                ratio=ratio,
                must=f"≤ {most:g} × the small store's",
                ok=ratio <= most,
                note=f"windows {min(after):.1f} to {max(after):.1f}, small {min(before):.1f} to {max(before):.1f}",
            )
        )
    peak_mb = max(window.peak_mb for window in large)
    peer_mb = max(window.peak_mb for window in small)
    rows.append(
        Row(
            "peak memory of the store's process",
            peak_mb,
            "MB",
            None,
            beside,
            peer_mb,
            must="< 300 MB",
            ok=peak_mb < 300,
        )
    )
    return rows


# --- in the child process ---------------------------------------------------------------------


def _child(pipe: Connection, path: Path, sizes: list[int]) -> None:
    asyncio.run(_windows(pipe, path, sizes))


async def _windows(pipe: Connection, path: Path, sizes: list[int]) -> None:
    store = await SqliteStore.open(path)
    await store.start_run({}, STARTED_AT)
    load = _Load(store, sizes)
    while turns := pipe.recv():
        pipe.send(await load.window(turns))
    await store.close()


class _Load:
    """The commits of a crawl: they claim groups, offer the links of some pages, and end URLs and claims."""

    def __init__(self, store: SqliteStore, sizes: list[int]) -> None:
        self._store = store
        self._sizes = sizes
        self._new: Counter[int] = Counter()  # pages of a site that were added since the beginning
        self._chance = random.Random(7)
        self._now = STARTED_AT

    async def window(self, turns: int) -> Window:
        offered = claimed = 0
        offering_s = claiming_s = 0.0
        for _ in range(turns):
            claims, took_s = await self._turn(
                CommitBatch(self._now, claim_limits=ClaimLimits(GROUPS_PER_TURN, URLS_PER_GROUP))
            )
            claiming_s += took_s
            urls = [queued for claim in claims for queued in claim.urls]
            self._chance.shuffle(urls)
            pages = [self._page(queued) for queued in urls[:PAGES_PER_TURN]]
            _, took_s = await self._turn(CommitBatch(self._now, claim_limits=ClaimLimits(0), outcomes=pages))
            offering_s += took_s
            ended = [Outcome(queued, State.FETCHED, _FETCHED) for queued in urls[PAGES_PER_TURN:]]
            pace = Pace(self._now + DELAY_S, DELAY_S, 0.0, WaitReason(WaitCode.DELAY))
            paces, released = {claim.group: pace for claim in claims}, [claim.group_id for claim in claims]
            _, took_s = await self._turn(
                CommitBatch(self._now, claim_limits=ClaimLimits(0), outcomes=ended, paces=paces, released=released)
            )
            claiming_s += took_s
            offered += sum(len(page.offers) for page in pages)
            claimed += len(urls)
            self._now += TURN_S
        return Window(offering_s / offered * 1e6, claiming_s / claimed * 1e6, stores.peak_mb(os.getpid()))

    async def _turn(self, turn: CommitBatch) -> tuple[list[Claim], float]:
        """Commit ``turn``. Returns its claims, and the CPU time of all threads, because SQLite has a separate one."""
        before_s = time.process_time()
        result = await self._store.commit(turn)
        return result.claims, time.process_time() - before_s

    def _page(self, queued: Queued) -> Outcome:
        urls: set[str] = set()
        while len(urls) < LINKS:
            site = queued.site_id - 1 if self._chance.random() < OWN_SITE else self._chance.randrange(len(self._sizes))
            page = self._chance.randrange(self._sizes[site])
            if len(urls) % 2:
                page = self._sizes[site] + self._new[site]
                self._new[site] += 1
            urls.add(stores.site_name(site) + stores.path_of(page))
        offers = tuple(Offer(url, queued.depth + 1) for url in urls)
        return Outcome(queued, State.FETCHED, _FETCHED, offers=offers)
