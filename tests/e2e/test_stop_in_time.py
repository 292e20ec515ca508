"""A signal and ``--max-time`` end a crawl in time, whatever it receives and however slow its loop and its store are."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from crawler.cli.signals import END_WITHIN_S, ForcedEnd
from crawler.clock import SystemClock
from crawler.demo.pages import Page
from crawler.engine import loop
from crawler.fetch.connection import Connection
from crawler.reasons import RunEnd
from crawler.run import execution
from crawler.store.rows import CommitBatch, CommitResult
from crawler.store.sqlite.store import SqliteStore
from tests import kill
from tests.command import HASTY, LOOPBACK, Started, finish, here, start, until
from tests.fork_server import Forked
from tests.web import LoopbackWeb

TOO_LATE = "could not end in order in time"
BEGUN = "from now on, nothing ends"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


class Dripping:
    """A server without robots.txt whose pages never end: a chunk every 10 ms."""

    def __init__(self, *, ends: bool = False) -> None:
        self._ends = ends
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.chunks = 0  # that were sent, of all pages
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            while request := stream.readline():
                while stream.readline().strip():
                    pass
                if b"/robots.txt" in request:
                    stream.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    stream.flush()
                    continue
                stream.write(HEAD)
                for _ in range(3 if self._ends else 100_000):
                    stream.write(b"1\r\nx\r\n")
                    stream.flush()
                    self.chunks += 1
                    time.sleep(0.01)
                stream.write(b"0\r\n\r\n")
                stream.flush()


@contextmanager
def dripping(*, ends: bool = False) -> Iterator[Dripping]:
    server = Dripping(ends=ends)
    try:
        yield server
    finally:
        server.close()


def short_grace() -> AbstractContextManager[object]:
    """Give requests in flight half a second to end."""
    return mock.patch.object(loop, "STOP_GRACE_S", 0.5)


def short_patience() -> AbstractContextManager[object]:
    """Give the run a second to end in order, instead of nine."""
    end_after = ForcedEnd.after

    def soon(self: ForcedEnd, seconds: float) -> None:
        end_after(self, seconds - END_WITHIN_S + 1)

    return mock.patch.object(ForcedEnd, "after", soon)


def slow(arguments: list[str], said: Path) -> None:
    """Crawl on a loop that is busy for 10 ms whenever data arrive: all the time. It has long to end in order."""
    receive, end_after = Connection.data_received, ForcedEnd.after

    def slowly(self: Connection, data: bytes) -> None:
        time.sleep(0.01)
        receive(self, data)

    def late(self: ForcedEnd, seconds: float) -> None:
        end_after(self, 30 * seconds)

    slow_end = mock.patch.object(ForcedEnd, "after", late)
    with mock.patch.object(Connection, "data_received", slowly), slow_end, short_grace():
        kill.crawl(arguments, said)


def stuck(arguments: list[str], said: Path) -> None:
    """Crawl on a loop that stays busy for ever when the first data arrive."""

    def never_ends(self: Connection, data: bytes) -> None:
        print(BEGUN, flush=True)
        while True:
            time.sleep(0.1)

    with mock.patch.object(Connection, "data_received", never_ends), short_patience():
        kill.crawl(arguments, said)


def without_store(arguments: list[str], said: Path) -> None:
    """Crawl on a store whose commits never end when something was requested."""
    commit = SqliteStore.commit

    async def never_ends(self: SqliteStore, batch: CommitBatch) -> CommitResult:
        if batch.requests:
            print(BEGUN, flush=True)
            await SystemClock().sleep(3600)
        return await commit(self, batch)

    with mock.patch.object(SqliteStore, "commit", never_ends), short_patience():
        kill.crawl(arguments, said)


def with_busy_threads(arguments: list[str], said: Path) -> None:
    """Crawl with a thread that outlasts the crawl: the event loop waits for it when it closes."""
    end_run = SqliteStore.end_run

    async def late(self: SqliteStore, end: RunEnd, now: float) -> None:
        await end_run(self, end, now)
        asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)

    with mock.patch.object(SqliteStore, "end_run", late), mock.patch.object(execution, "END_WITHIN_S", 0.5):
        kill.crawl(arguments, said)


@dataclass(frozen=True)
class Run:
    """A command that may be under way, in a process of its own."""

    process: Forked
    said: Path

    def has_begun(self) -> bool:
        """Whether that has begun which never ends."""
        return BEGUN in self.said.read_text()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int | None, str]:
        """Wait for the end; returns the exit code and the output."""
        return kill.ended(self.process, kill.PATIENCE_S), self.said.read_text()


@contextmanager
def running(how: Callable[[list[str], Path], None], server: Dripping, db: Path, *options: str) -> Iterator[Run]:
    """Start ``crawler run`` with the change that ``how`` makes to it."""
    config, said = db.parent / "hasty.toml", db.parent / "said"
    config.write_text(HASTY + 'total_timeout = "1 hour"\n')
    said.touch()
    url = f"http://a.test:{server.port}/"
    run = Run(kill.start(["run", url, "--config", str(config), *LOOPBACK, "--db", str(db), *options], said, how), said)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_slow_loop_ends_in_order(number: signal.Signals, db_path: Path) -> None:
    """Data arrive all the time, and the loop is busy with them all the time."""
    with dripping() as server, running(slow, server, db_path) as run:
        until(lambda: server.chunks >= 100, "much of the page")
        run.send(number)
        code, said = run.end()
    assert (code, TOO_LATE in said) == (3, False)
    assert f"stopped by {number.name}" in said
    assert states(db_path) == {"queued": 1}


def test_the_end_of_the_time_ends_a_slow_loop(db_path: Path) -> None:
    with dripping() as server, running(slow, server, db_path, "--max-time", "3") as run:
        code, said = run.end()
    assert (code, TOO_LATE in said) == (5, False), "no page has arrived"
    assert "--max-time is over" in said


@pytest.mark.parametrize("how", [stuck, without_store])
@pytest.mark.parametrize("options", [(), ("--max-time", "4")], ids=["signal", "time"])
def test_a_loop_or_a_store_that_does_not_answer_ends_like_a_kill(
    options: tuple[str, ...], how: Callable[[list[str], Path], None], db_path: Path
) -> None:
    with dripping(ends=True) as server:
        with running(how, server, db_path, "--json", *options) as run:
            if not options:
                until(run.has_begun, "what never ends")
                run.send(signal.SIGTERM)
            code, said = run.end()
        assert (code, TOO_LATE in said) == (3, True)
        summary = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        assert summary["ended_code"] == "forced"
        assert summary["run"]["pages"] == 0, "nothing was committed"
        assert summary["urls"] is None, "the store is not asked"
        assert states(db_path) == {"queued": 1}
        assert here("run", "--config", db_path.parent / "hasty.toml", *LOOPBACK, "--db", db_path).code == 0
    assert states(db_path) == {"fetched": 1}


def test_a_run_that_has_printed_its_end_does_not_wait_for_its_threads(db_path: Path) -> None:
    with dripping(ends=True) as server, running(with_busy_threads, server, db_path, "--json") as run:
        code, said = run.end()
    assert (code, TOO_LATE in said) == (0, False)
    assert said.count('"ended_code": "done"') == 1


def states(db: Path) -> dict[str, int]:
    """The number of URLs in each state."""
    with closing(sqlite3.connect(db)) as connection:
        return dict(connection.execute("SELECT state, count(*) FROM urls GROUP BY state"))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_nothing_is_sent_after_the_time_though_the_process_was_stopped(
    workers: str, loopback: LoopbackWeb, db_path: Path
) -> None:
    """On SQLite. A process that is continued when its time is over finds requests that are ready to go."""
    config = db_path.parent / "hasty.toml"
    config.write_text(HASTY)
    links = "".join(f"<a href=/{number}>" for number in range(1000))
    for number in range(20):
        loopback.sites[f"a{number}.test"] = {"/": Page(links), "*": Page("leaf")}
    seeds = [loopback.url(host) for host in loopback.sites]

    def begun(max_time_s: float) -> Started:
        """A crawl that has sent 40 requests; one that has ended if the machine is too busy for that."""
        loopback.web.log.clear()
        db = db_path.with_name(f"{max_time_s}.db")
        options = ("--config", config, *LOOPBACK, "--db", db, "--workers", workers, "--max-time", str(max_time_s))
        process = start("run", *seeds, *options, group=0, fresh=workers != "1")  # stand-ins alone would be stopped
        until(lambda: len(loopback.log) >= 40 or process.poll() is not None, "requests")
        return process

    max_time_s = 2
    while (process := begun(max_time_s)).poll() is not None:
        finish(process)
        max_time_s *= 4
    stopped_at = time.monotonic()
    os.killpg(process.pid, signal.SIGSTOP)
    for pid in children(process.pid):
        os.kill(pid, signal.SIGSTOP)
    until(lambda: time.monotonic() > stopped_at + max_time_s, "the end of the time")
    sent = len(loopback.log)
    for pid in children(process.pid):
        os.kill(pid, signal.SIGCONT)
    os.killpg(process.pid, signal.SIGCONT)
    finish(process)
    assert len(loopback.log) == sent


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
