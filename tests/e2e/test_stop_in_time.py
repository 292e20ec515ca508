"""A signal and ``--max-time`` end a crawl in time, whatever it receives and however slow its loop and its store are."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.command import HASTY, LOOPBACK, ROOT, finish, here, until

#: The command on a loop that is busy for a while whenever data arrive. It receives up to 32 times in one round.
BUSY = """
import time
from crawler.cli import main
from crawler.fetch.connection import Connection
receive = Connection.data_received
def slowly(self, data):
    time.sleep(BUSY_S)
    receive(self, data)
Connection.data_received = slowly
main()
"""
#: The command on a store whose commits take an hour once a page was requested.
SLOW_STORE = """
import asyncio
from crawler.cli import main
from crawler.store.sqlite.store import SqliteStore
commit = SqliteStore.commit
async def slowly(self, batch):
    if any(row.path == "/" for row in batch.requests):
        await asyncio.sleep(3600)
    return await commit(self, batch)
SqliteStore.commit = slowly
main()
"""
TOO_LATE = "could not end in order in time"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


class Dripping:
    """A server without robots.txt whose pages never end: a chunk every 10 ms."""

    def __init__(self, *, ends: bool = False) -> None:
        self._ends = ends
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.pages = 0
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
                self.pages += 1
                stream.write(HEAD)
                for _ in range(3 if self._ends else 100_000):
                    stream.write(b"1\r\nx\r\n")
                    stream.flush()
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


def run(script: str, server: Dripping, db: Path, config: Path, *options: str) -> subprocess.Popen[str]:
    """Start ``crawler run`` with the change that ``script`` makes to it."""
    config.write_text(HASTY + 'total_timeout = "1 hour"\n')
    url = f"http://a.test:{server.port}/"
    given = ["run", url, "--config", str(config), *LOOPBACK, "--db", str(db), *options]
    return subprocess.Popen(
        [sys.executable, "-c", script, *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize(("number", "busy_s"), [(signal.SIGINT, 0.01), (signal.SIGTERM, 0.01), (signal.SIGTERM, 0.5)])
def test_a_busy_loop_ends(number: signal.Signals, busy_s: float, db_path: Path, tmp_path: Path) -> None:
    """Data arrive all the time, and the loop is busy with them all the time: with the last number, 16 s a round."""
    with dripping() as server:
        process = run(f"BUSY_S = {busy_s}{BUSY}", server, db_path, tmp_path / "hasty.toml")
        until(lambda: server.pages > 0, "the page")
        time.sleep(1)
        process.send_signal(number)
        ended = finish(process)
    assert ended.code == 3
    assert (TOO_LATE in ended.err) == (busy_s > 0.1)
    assert states(db_path) == {"queued": 1}


@pytest.mark.parametrize("busy_s", [0.01, 0.5])
def test_the_end_of_the_time_ends_a_busy_loop(busy_s: float, db_path: Path, tmp_path: Path) -> None:
    with dripping() as server:
        ended = finish(run(f"BUSY_S = {busy_s}{BUSY}", server, db_path, tmp_path / "hasty.toml", "--max-time", "3"))
    assert ended.code == (5 if busy_s < 0.1 else 0)  # no page has arrived; the late end knows nothing of pages
    assert (TOO_LATE in ended.err) == (busy_s > 0.1)
    assert ("--max-time is over" in ended.out) == (busy_s < 0.1)


@pytest.mark.parametrize("options", [(), ("--max-time", "2")])
def test_a_store_that_does_not_answer_ends_like_a_kill(options: tuple[str, ...], db_path: Path, tmp_path: Path) -> None:
    config = tmp_path / "hasty.toml"
    with dripping(ends=True) as server:
        process = run(SLOW_STORE, server, db_path, config, *options)
        until(lambda: server.pages > 0, "the page")
        if not options:
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
        ended = finish(process)
        assert ended.code == (0 if options else 3)
        assert TOO_LATE in ended.err
        assert states(db_path) == {"queued": 1}
        assert here("run", "--config", config, *LOOPBACK, "--db", db_path).code == 0
    assert states(db_path) == {"fetched": 1}


def states(db: Path) -> dict[str, int]:
    """The number of URLs in each state."""
    with sqlite3.connect(db) as connection:
        return dict(connection.execute("SELECT state, count(*) FROM urls GROUP BY state"))
