"""One command above several workers: its signals, its limits, and what it says of them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.clock import SystemClock
from crawler.demo.pages import Page, plain
from crawler.run.worker import Assignment
from crawler.run.worker_process import spawn
from crawler.session.nothing_crawled import NOTHING_CRAWLED
from crawler.settings.loading import apply
from crawler.settings.settings import Settings
from tests import judge
from tests.command import HASTY, LOOPBACK, Started, crawler, finish, start, until
from tests.web import LoopbackWeb


@pytest.fixture
def command(loopback: LoopbackWeb, tmp_path: Path) -> list[str]:
    """A crawl of a web without an end."""
    links = "".join(f"<a href='{loopback.url(f'h{n}.test')}'>{n}</a>" for n in range(6))
    pages: dict[str, Page] = {"/robots.txt": plain("")}
    pages |= {path(n): Page(f"{links}<a href='{path(n + 1)}'>on</a>", delay_s=0.1) for n in range(2000)}
    loopback.sites.update({f"h{n}.test": pages for n in range(6)})
    (tmp_path / "c.toml").write_text(HASTY)
    return [
        "run", loopback.url("h0.test"), "--config", str(tmp_path / "c.toml"), *LOOPBACK, "--scope", "any",
        "--db", str(tmp_path / "c.db"),
    ]  # fmt: skip


def path(number: int) -> str:
    return f"/{number}" if number else "/"


def children(process: Started) -> list[int]:
    """The workers of a command, the oldest first; some may be starting still."""
    found = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, check=False)
    return sorted(map(int, found.stdout.split()))


def ended_by(command: list[str]) -> set[str]:
    """Why workers ended, as the store has it."""
    with closing(sqlite3.connect(command[-1])) as db:
        return {why for (why,) in db.execute("SELECT ended_by FROM workers")}


def begun(command: list[str]) -> set[int]:
    """The processes that have begun to work."""
    with closing(sqlite3.connect(command[-1])) as db, suppress(sqlite3.OperationalError):  # the store is being made
        return {pid for (pid,) in db.execute("SELECT pid FROM workers")}
    return set()


def states(pids: list[int]) -> set[str]:
    """As the system has them: T is stopped."""
    found = subprocess.run(["ps", "-o", "stat=", *map(str, pids)], capture_output=True, text=True, check=False)
    return {state[0] for state in found.stdout.split()}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_workers_are_starting_ends_all_in_order(number: signal.Signals, command: list[str]) -> None:
    process = start(*command, "--workers", "3", group=0)
    until(lambda: len(begun(command) - {process.pid}) > 0, "a worker")
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    ended = finish(process)
    assert (ended.code, ended.err) == (3, "")
    assert f"stopped by {number.name}" in ended.out


def test_workers_stop_and_go_on_with_who_is_above_them(command: list[str], loopback: LoopbackWeb) -> None:
    process = start(*command, "--workers", "2", group=0)
    until(lambda: len(loopback.log) >= 5, "requests")
    os.killpg(process.pid, signal.SIGTSTP)  # Ctrl-Z
    workers = children(process)
    until(lambda: states([process.pid, *workers]) == {"T"}, "processes that are stopped")
    asked = len(loopback.log)
    os.killpg(process.pid, signal.SIGCONT)
    until(lambda: len(loopback.log) >= asked + 5, "more requests")
    process.send_signal(signal.SIGINT)
    assert (len(workers), finish(process).code) == (2, 3)
    assert ended_by(command) == {"stopped by SIGINT; the same command continues the crawl"}


def test_a_crawl_whose_workers_were_told_to_end_is_not_over(command: list[str], loopback: LoopbackWeb) -> None:
    process = start(*command, "--workers", "2")
    until(lambda: len(loopback.log) >= 5, "requests")
    for worker in children(process):
        os.kill(worker, signal.SIGTERM)
    ended = finish(process)
    assert (ended.code, ended.err) == (3, "")
    assert ended_by(command) == {"stopped by SIGTERM; the same command continues the crawl"}


def test_max_time_is_of_the_command_whoever_takes_a_workers_place(command: list[str], loopback: LoopbackWeb) -> None:
    process = start(*command, "--workers", "2", "--max-time", "3")
    for _ in range(5):  # six that die before they have told of work would end the run
        asked = len(loopback.log)
        until(lambda least=asked + 5: len(loopback.log) >= least or process.poll() is not None, "requests")
        for worker in children(process)[:1]:
            os.kill(worker, signal.SIGKILL)
    ended = finish(process)
    assert ended.code in (0, NOTHING_CRAWLED)  # on a busy machine none had come so far as to fetch a page
    assert "--max-time is over" in ended.out
    assert ended_by(command) <= {"killed", "limits.max_time is over"}  # those that had come so far as to work


_FORKS = """
import threading
from crawler.run.worker_process import forked
with forked(2, "store.db") as workers:
    taken = workers.pop()
    taken.close()
    print(taken.wait(), len(workers))
print(workers[0].code)
threading.Thread(target=threading.Event().wait, daemon=True).start()
with forked(2, "store.db") as workers:
    print(workers)
"""


def test_workers_are_forked_while_the_command_has_one_thread() -> None:
    """A fork that gets no assignment ends. A process with threads has none: a fork could find their locks taken."""
    ended = subprocess.run([sys.executable, "-c", _FORKS], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.stdout, ended.stderr) == ("3 1\n3\n[]\n", "")


def test_concurrency_is_shared_to_the_request(command: list[str], loopback: LoopbackWeb) -> None:
    crawler(*command, "--workers", "2", "--concurrency", "3", "--max-pages", "60")
    most = judge.most_at_once(replace(hit, host="any") for hit in loopback.log)["any"]
    assert 1 < most <= 3


def test_workers_that_would_have_nothing_to_do_are_refused(command: list[str]) -> None:
    for options, why in (
        (["--workers", "4", "--concurrency", "3"], "--workers 4: 3 requests in flight are too few"),
        (["--workers", "1000", "--concurrency", "1000"], "--workers 1000: each worker is a process"),
    ):
        ended = crawler(*command, *options)
        assert (ended.code, ended.out) == (2, "")
        assert why in ended.err


def test_a_worker_that_is_left_alone_ends_before_it_has_a_crawl_too() -> None:
    nobody = "postgresql://crawler@127.0.0.1:1/crawl"  # which it would wait for
    given = {"store.db": nobody, "workers.patience": 1000}
    worker = spawn()
    Assignment(apply(Settings(), given, source="test"), 1, SystemClock()).send(worker.above, ())
    worker.above.close()  # whoever was above it is gone
    assert (worker.reports.read(), worker.wait()) == (b"", 3)
    worker.close()
