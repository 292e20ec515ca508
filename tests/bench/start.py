"""Measure how fast a crawl with a big store starts and ends.

The benchmark times the real command from its start to its first request, and from SIGTERM to its exit with requests in
flight. It starts three times on one copy of a store: for the first time, after an orderly end, and after ``kill -9``.
The server never answers, so each signal finds as many requests in flight as the crawler allows.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import stores
from tests.bench.table import Row
from tests.command import LOOPBACK, start

IN_FLIGHT = 64  # the crawler's --concurrency
PATIENCE_S = 300.0
_RUNS = (("first run", signal.SIGTERM), ("after SIGTERM", signal.SIGKILL), ("after kill -9", signal.SIGTERM))


def add_options(parser: argparse.ArgumentParser) -> None:
    stores.add_options(parser)
    parser.add_argument("--urls", type=int, default=10_000_000, help="URLs queued in the store [%(default)s]")
    parser.add_argument("--sites", type=int, default=100_000, help="sites of the store, each with a seed [%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    kept = stores.kept(options.stores, [options.urls // options.sites] * options.sites)
    with tempfile.TemporaryDirectory(dir=options.stores) as folder:
        return asyncio.run(_measure(stores.copy(kept, Path(folder), "crawl.db"), options.urls))


async def _measure(store: Path, urls: int) -> list[Row]:
    web = _SlowWeb()
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(web), "127.0.0.1", stores.PORT)
    rows = []
    async with server:
        for name, ends_by in _RUNS:
            seen = await _run(store, web, ends_by)
            rows.append(
                Row(
                    f"start to first request, {urls:,} queued, {name}",
                    seen.first_s,
                    "s",
                    must="< 2 s",
                    ok=seen.first_s < 2,
                )
            )
            if ends_by is signal.SIGTERM:
                note = f"{seen.in_flight} requests in flight"
                rows.append(
                    Row(f"SIGTERM to exit, {name}", seen.exit_s, "s", must="< 10 s", ok=seen.exit_s < 10, note=note)
                )
            rows.append(Row(f"peak memory, {name}", seen.peak_mb, "MB", must="< 300 MB", ok=seen.peak_mb < 300))
            rows.append(Row(f"CPU time of that run, {name}", seen.cpu_s, "s"))
    return rows


async def _run(store: Path, web: _SlowWeb, ends_by: signal.Signals) -> _Seen:
    """Run the command until it waits for as many answers as it may, then end it."""
    web.begin()
    started_at = time.monotonic()
    process = start("run", "--db", store, *LOOPBACK, fresh=True)
    while len(web.asked_at) < IN_FLIGHT:
        if process.poll() is not None or time.monotonic() > started_at + PATIENCE_S:
            process.kill()
            raise RuntimeError(f"the crawl did not request {IN_FLIGHT} pages: {process.communicate()}")
        await asyncio.sleep(0.01)
    in_flight, before_mb = web.in_flight, stores.peak_mb(process.pid)
    process.send_signal(ends_by)
    signalled_at = time.monotonic()
    ended_mb, used = await asyncio.to_thread(_wait, process)
    exit_s, cpu_s = time.monotonic() - signalled_at, used.ru_utime + used.ru_stime
    return _Seen(web.asked_at[0] - started_at, exit_s, in_flight, max(before_mb, ended_mb), cpu_s)


def _wait(process: subprocess.Popen[str]) -> tuple[float, resource.struct_rusage]:
    """Wait until a process has ended. Returns its peak memory in MB, and its use of resources."""
    peak_mb = 0.0
    while True:
        peak_mb = max(peak_mb, stores.peak_mb(process.pid))
        number, status, used = os.wait4(process.pid, os.WNOHANG)
        if number:
            process.returncode = os.waitstatus_to_exitcode(status)  # no later call can wait for the process
            process.communicate()
            return peak_mb, used
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class _Seen:
    first_s: float
    exit_s: float
    in_flight: int
    peak_mb: float
    cpu_s: float


@dataclass(slots=True)
class _SlowWeb:
    """The requests on all connections since the run began, by ``time.monotonic``."""

    asked_at: list[float] = field(default_factory=list)
    in_flight: int = 0

    def begin(self) -> None:
        self.asked_at.clear()


class _Connection(asyncio.Protocol):
    """Reads requests, and never answers in time."""

    def __init__(self, web: _SlowWeb) -> None:
        self._web = web
        self._asked = 0

    def data_received(self, data: bytes) -> None:
        requests = data.count(b"\r\n\r\n")
        self._asked += requests
        self._web.in_flight += requests
        self._web.asked_at += [time.monotonic()] * requests

    def connection_lost(self, error: Exception | None) -> None:
        self._web.in_flight -= self._asked
