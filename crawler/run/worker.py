"""One worker process among several, as :mod:`crawler.run.worker_process` makes it.

It reads its :class:`Assignment` from standard input, a socket, and reports its progress on standard output, one JSON
object a line. It ends in order on a signal, and when standard input ends: with the reason before the end, or without
one if the process above it has died.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import pickle
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from crawler.cli.logs import Forwarding, show_by
from crawler.cli.shared import STOPPED, collect_garbage_seldom, run_async
from crawler.cli.signals import Signals
from crawler.clock import SystemClock
from crawler.engine.crawl import Crawl
from crawler.engine.messages import receive, send
from crawler.engine.tasks import background_task
from crawler.errors import CrawlerError
from crawler.fetch import open_files
from crawler.reasons import EndCode, RunEnd
from crawler.session.crawl_session import run_to_end, worker_session
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings

if TYPE_CHECKING:
    from crawler.store.sections import Store

REPORT_EVERY_S = 0.5
_FILES, _MOST_FILES = b"f", 16  # files are sent with an octet


class Assignment(msgspec.Struct, frozen=True):
    """The assignment of one worker in a run: its settings, and the run that it joins."""

    settings: Settings
    run_id: int
    clock: SystemClock
    ends_at: float = math.inf  # the end of --max-time, in seconds of ``boot_s``

    def send(self, above: socket.socket, files: Sequence[int]) -> None:
        """Send this to a worker, with open files that it keeps. Pickled: only for processes of this program."""
        socket.send_fds(above, [_FILES], files)
        with above.makefile("wb") as stdin:
            send(stdin, pickle.dumps(self))


def _received() -> Assignment | None:
    """The assignment that was sent on standard input, ``None`` if that ended before. Later input is not read here."""
    try:
        with socket.socket(fileno=os.dup(0)) as stdin, stdin.makefile("rb", buffering=0) as source:
            socket.recv_fds(stdin, len(_FILES), _MOST_FILES)
            assignment: Assignment = pickle.loads(receive(source))
    except (EOFError, OSError, pickle.UnpicklingError):
        return None
    return assignment


def main() -> NoReturn:
    """Read a :class:`Assignment` and work on it. The exit codes are those of ``crawler run``."""
    assignment = _received()
    try:
        code = STOPPED if assignment is None else run_async(_work(assignment))
    except CrawlerError as error:
        _send({"failed": error.message(terminal_name)})
        code = error.exit_code
    except asyncio.CancelledError:  # ended before it had begun
        code = STOPPED
    sys.exit(code)


async def _work(assignment: Assignment) -> int:
    open_files.raise_limit()
    output = assignment.settings.output
    show_by(Forwarding(lambda record: _send({"log": record})), output.log_level, output.log_format)
    signals = Signals()
    async with (
        background_task(_until_alone(signals)),  # opening the store may take long
        worker_session(assignment.settings, assignment.run_id, assignment.clock, assignment.ends_at) as (crawl, store),
    ):
        signals.stop_from_now_on(crawl, store, gives_up=False)  # the process above gives up for all
        collect_garbage_seldom()
        async with background_task(_report(crawl, store)):
            end = await run_to_end(crawl, store, assignment.clock, finishes=False)
        _send_progress(crawl, store, end)
    return STOPPED if crawl.stopped else 0


async def _until_alone(signals: Signals) -> None:
    """Stop as on a signal when standard input says so or ends; cancel the requests in flight if it ends later."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    why = await reader.readline()
    signals.stop(RunEnd.from_json(json.loads(why)) if why else RunEnd(EndCode.STOPPED))
    if why:
        await reader.read()
        signals.end_grace()


async def _report(crawl: Crawl, store: Store) -> None:
    while True:
        _send_progress(crawl, store, None)
        await asyncio.sleep(REPORT_EVERY_S)


def _send_progress(crawl: Crawl, store: Store, end: RunEnd | None) -> None:
    ended = None if end is None else end.as_json()
    _send(crawl.progress.report() | {"worker": store.worker_id, "end": ended, "away_s": store.away_s})


def _send(news: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # the process above has died: standard input ends, too
        os.write(1, json.dumps(news).encode() + b"\n")


if __name__ == "__main__":
    main()
