"""One worker process among several, as :mod:`crawler.cli.team` starts it: ``python -m crawler.cli.worker``.

It is told what to do on standard input, tells how far it is on standard output (a JSON object a line), and ends in
order when standard input ends: whoever was above it is gone, or wants it to.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from crawler.assemble import run_to_end, worker_session
from crawler.cli.base import collect_garbage_seldom, raise_file_limit, run_async, tell
from crawler.clock import SystemClock
from crawler.config import Settings
from crawler.errors import CrawlerError
from crawler.loops.crawl import Crawl
from crawler.store.interface import Store

REPORT_EVERY_S = 0.5
_SIZE = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker is to do. ``locked`` is a SQLite store whose lock the process above it has."""

    settings: Settings
    run_id: int
    clock: SystemClock
    locked: bool

    def packed(self) -> bytes:
        """As standard input has it; only from one process of ours to another."""
        data = pickle.dumps(self)
        return _SIZE.pack(len(data)) + data


def main() -> NoReturn:
    """Read a :class:`Part` and do it; the exit code is that of ``crawler run``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the one above tells us
    with os.fdopen(os.dup(0), "rb", buffering=0) as source:
        (size,) = _SIZE.unpack(source.read(_SIZE.size))
        data = b""
        while len(data) < size:
            data += source.read(size - len(data))
    try:
        sys.exit(run_async(_work(pickle.loads(data))))
    except CrawlerError as error:
        tell(str(error))
        sys.exit(error.exit_code)


async def _work(part: Part) -> int:
    raise_file_limit()
    async with worker_session(part.settings, part.run_id, part.clock, locked=part.locked) as (crawl, store):
        collect_garbage_seldom()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, crawl.stop, "stopped by SIGTERM")
        tasks = [asyncio.create_task(_until_told(crawl)), asyncio.create_task(_report(crawl, store))]
        try:
            ended_by = await run_to_end(crawl, store, part.clock, look_alone=False)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        _tell(crawl, store, ended_by)
    return 0


async def _until_told(crawl: Crawl) -> None:
    """Stop the crawl when standard input ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    crawl.stop("stopped; the same command goes on")


async def _report(crawl: Crawl, store: Store) -> None:
    while True:
        _tell(crawl, store, None)
        await asyncio.sleep(REPORT_EVERY_S)


def _tell(crawl: Crawl, store: Store, ended_by: str | None) -> None:
    report: dict[str, Any] = crawl.progress.report() | {"worker": store.worker_id, "ended_by": ended_by}
    with suppress(BrokenPipeError):  # nobody listens any more: standard input ends too
        os.write(1, json.dumps(report).encode() + b"\n")


if __name__ == "__main__":
    main()
