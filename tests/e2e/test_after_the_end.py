"""A run whose end is in the store keeps its exit code and prints its summary, whatever fails afterwards."""

from __future__ import annotations

import errno
import shlex
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from crawler.cli.shared import run_async
from crawler.demo.pages import Page, plain
from crawler.engine.parser_pool import ParserPool
from crawler.errors import StoreError
from crawler.run import execution
from crawler.session.nothing_crawled import NOTHING_CRAWLED
from crawler.store.sqlite.store import SqliteStore
from tests.command import LOOPBACK, forking_python, here
from tests.web import LoopbackWeb


async def broken(*arguments: object, **options: object) -> None:
    raise ValueError("a bug in a step after the end")


async def full(*arguments: object, **options: object) -> None:
    raise StoreError("the disk is full")


def unprintable(*arguments: object, **options: object) -> None:
    raise OSError(errno.ENOSPC, "no space is left for the output")


def run_and_fail(work: Coroutine[Any, Any, int]) -> int:
    run_async(work)
    raise RuntimeError("the loop does not close")


STEPS = [
    pytest.param(execution, "print_summary", unprintable, id="what is printed"),
    pytest.param(execution, "run_async", run_and_fail, id="the event loop"),
    pytest.param(execution, "describe_first_matches", broken, id="what is told"),
    pytest.param(SqliteStore, "counts", full, id="the counts"),
    pytest.param(ParserPool, "__aexit__", broken, id="the parser processes"),
    pytest.param(SqliteStore, "leave", full, id="the store"),
    pytest.param(execution, "notify", broken, id="the notification"),
]


@pytest.mark.parametrize(("owner", "step", "fails"), STEPS)
def test_a_failure_after_the_end_is_told_and_changes_no_exit_code(
    owner: object, step: str, fails: object, loopback: LoopbackWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>Start</title>")}
    monkeypatch.setattr(owner, step, fails)
    ended = here("run", loopback.url("a.test"), "--db", tmp_path / "c.db", *LOOPBACK)
    assert ended.code == 0
    assert "the run has ended, and everything is kept; a step after its end failed" in ended.err
    assert ("nothing is left in the frontier" in ended.out) is (step != "print_summary")


def test_a_reader_that_leaves_early_changes_no_exit_code(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/robots.txt": plain("User-agent: *\nDisallow: /\n")}
    run = ("run", loopback.url("a.test"), "--db", str(tmp_path / "c.db"), *LOOPBACK)
    command = f"{shlex.join((str(forking_python()), '-m', 'crawler', *run))} | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, timeout=300, check=False)
    assert ended.returncode == NOTHING_CRAWLED, ended.stderr
