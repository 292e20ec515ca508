"""Compare the rate of requests to many sites, one of them very large, with the rate that the pauses allow.

On virtual time, the whole crawl runs in this process on a simulated web. The virtual clock stands still while the
processor works. So this part measures the loss by scheduling, and the CPU time for a second of the crawl. On real time,
the real command crawls a loopback server, with pauses that are long enough for the machine.

The pauses allow one request to a site in each period of (pause + answer time), because a pause begins at the end of an
answer.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from crawler.engine.crawl_settings import LimitSettings
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import Fetched, FetchResult, Request
from tests.bench import stores
from tests.bench.table import Row
from tests.command import LOOPBACK, finish, start
from tests.simulation.crawls import Options, crawl_for
from tests.virtual_time import VirtualClock, run_virtual

GIANT = 1_000_000
PAGES = 60  # of every other site: more than the crawl requests
WARM_UP_S = 10.0  # of virtual time: a claim has ten URLs
LATENCY_S = (0.02, 0.2)
LEAST = 0.97
_NUMBER = re.compile(rb"\r\nhost: s([0-9]+)\.", re.IGNORECASE)
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"


def add_options(parser: argparse.ArgumentParser) -> None:
    stores.add_options(parser)
    parser.add_argument(
        "--sites", type=int, default=10_000, help="sites beside the giant, on virtual time [%(default)s]"
    )
    parser.add_argument("--delay", type=float, default=1.0, help="their pause in seconds [%(default)s]")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="seconds of virtual time; the first ten do not count [%(default)s]"
    )
    parser.add_argument("--concurrency", type=int, default=2048, help="on virtual time [%(default)s]")
    parser.add_argument("--claimed", type=int, default=LimitSettings().claimed_groups, metavar="GROUPS",
        help="groups that the crawl claims at once, on virtual time [%(default)s]")  # fmt: skip
    parser.add_argument("--real", nargs="*", type=_case, default=[(2000, 10.0), (10_000, 20.0)], metavar="SITES/DELAY",
        help="on real time [2000/10 10000/20]")  # fmt: skip


def run(options: argparse.Namespace) -> list[Row]:
    rows = _virtual(options)
    for sites, delay_s in options.real:
        rows += _real(options.stores, sites, delay_s)
    return rows


def _case(text: str) -> tuple[int, float]:
    sites, _, delay_s = text.partition("/")
    return int(sites), float(delay_s)


def _sizes(sites: int) -> list[int]:
    return [GIANT] + [PAGES] * sites


def _rates(measure: str, sent: Sequence[int], allowed: Sequence[float], note: str) -> list[Row]:
    """Rows that compare the ``sent`` requests of each site with the ``allowed`` ones. The first site is the giant."""
    shares = [n / most for n, most in zip(sent, allowed, strict=True)]
    others = sum(sent[1:]) / sum(allowed[1:])
    must = f"≥ {LEAST:.0%}"
    return [
        Row(f"{measure}: rate", 100 * others, "%", must=must, ok=others >= LEAST, note=note),
        Row(f"{measure}: its slowest site", 100 * min(shares[1:]), "%"),
        Row(f"{measure}: the site of a million URLs", 100 * shares[0], "%"),
    ]


# --- virtual time -----------------------------------------------------------------------------


class _Answers:
    """A fetcher of pages without links; each site has its own answer time. Counts requests after the warm-up."""

    def __init__(self, clock: VirtualClock, sites: int) -> None:
        chance = random.Random(7)
        self.latency_s = [chance.uniform(*LATENCY_S) for _ in range(sites + 1)]
        self.sent = [0] * (sites + 1)
        self._clock = clock
        self._begin_at = clock.now() + WARM_UP_S

    async def fetch(self, request: Request) -> FetchResult:
        site = int(request.url[len("http://s") : request.url.index(".")])
        started_at = self._clock.now()
        self.sent[site] += started_at >= self._begin_at
        await self._clock.sleep(self.latency_s[site])
        return Fetched(request.url, started_at, self._clock.now(), content_type="text/html", plain=b"ok")


def _virtual(options: argparse.Namespace) -> list[Row]:
    kept = stores.kept(options.stores, _sizes(options.sites))
    settings = Options(
        limits=LimitSettings(concurrency=options.concurrency, claimed_groups=options.claimed),
        politeness=PolitenessSettings(delay_s=options.delay),
    )

    async def main(clock: VirtualClock) -> _Answers:
        answers = _Answers(clock, options.sites)
        await crawl_for(clock, store, answers, [], settings, options.seconds, crash=True)
        return answers

    with tempfile.TemporaryDirectory(dir=options.stores) as folder:
        store = stores.copy(kept, Path(folder), "crawl.db")
        before_s = time.process_time()
        answers = run_virtual(main)
        busy_s = (time.process_time() - before_s) / options.seconds
    window_s = options.seconds - WARM_UP_S
    slow_factor = settings.politeness.slow_factor
    allowed = [window_s / (took_s + max(options.delay, slow_factor * took_s)) for took_s in answers.latency_s]
    measure = f"virtual, {options.sites:,} sites, {options.delay:g} s"
    most = f"{options.claimed:,} groups claimed, {options.concurrency:,} requests in flight at most"
    note = f"{sum(answers.sent) / window_s:,.0f} requests/s, {most}"
    rows = _rates(measure, answers.sent, allowed, note)
    return [*rows, Row(f"{measure}: CPU time for a second of it", busy_s, "s", note="above 1: one core cannot do it")]


# --- real time --------------------------------------------------------------------------------


def _real(folder_of_stores: Path, sites: int, delay_s: float) -> list[Row]:
    kept = stores.kept(folder_of_stores, _sizes(sites))
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    theirs.close()  # then the end of the server is noticed here, for example if its port is in use
    pipe.recv()
    with tempfile.TemporaryDirectory(dir=folder_of_stores) as folder:
        store = stores.copy(kept, Path(folder), "crawl.db")
        process = start("run", "--db", store, "--delay", str(delay_s), *LOOPBACK, fresh=True)
        time.sleep(3 * delay_s)  # by then every site has had a request
        before: Counter[int] = _counts(pipe)
        began_at = time.monotonic()
        time.sleep(2 * delay_s)
        after = _counts(pipe)
        window_s = time.monotonic() - began_at
        peak_mb = stores.peak_mb(process.pid)
        process.send_signal(signal.SIGTERM)
        finish(process)
    server.terminate()
    server.join()
    sent = [after[site] - before[site] for site in range(sites + 1)]
    measure, note = f"real, {sites:,} sites, {delay_s:g} s", f"{sum(sent) / window_s:,.0f} requests/s"
    rows = _rates(measure, sent, [window_s / delay_s] * (sites + 1), note)
    return [*rows, Row(f"{measure}: peak memory", peak_mb, "MB", must="< 300 MB", ok=peak_mb < 300)]


def _counts(pipe: Connection) -> Counter[int]:
    pipe.send("counts")
    counts: Counter[int] = pipe.recv()
    return counts


def _serve(pipe: Connection) -> None:
    """Serve in this process: answer every request at once, and report the requests of each site through ``pipe``."""
    asyncio.run(_server(pipe))


async def _server(pipe: Connection) -> None:
    counts: Counter[int] = Counter()
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: _Connection(counts), "127.0.0.1", stores.PORT, backlog=1024):
        pipe.send("ready")
        while await asyncio.to_thread(pipe.recv):
            pipe.send(counts)


class _Connection(asyncio.Protocol):
    def __init__(self, counts: Counter[int]) -> None:
        self._counts = counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if found := _NUMBER.search(data):
            self._counts[int(found[1])] += 1
        self._transport.write(_OK)
