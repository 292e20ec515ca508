"""The store read from Python: what is left half-way, cancelled, or would write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import crawler
from crawler.demo.pages import Page
from tests.command import ROOT
from tests.web import LoopbackWeb

QUICK = {"politeness.delay": 0.02, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True}
LEAVING = """
import asyncio, sys
import crawler

async def main(db, url):
    async with crawler.open(db) as crawl:
        async for _ in crawl.links(url):
            break
        async for _ in crawl.pages():
            break
        held = crawl.links(url)
        await anext(held)
    assert [link async for link in held] == []
    try:
        async with crawler.open(db) as crawl:
            async for _ in crawl.pages():
                raise ZeroDivisionError
    except ZeroDivisionError:
        print("well")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
async def home(loopback: LoopbackWeb, db_path: Path) -> str:
    """A crawl of two pages; the URL of the first."""
    loopback.sites["a.test"] = {"/": Page("<a href=/b>b</a><a href=/c>c</a>"), "/b": Page("<a href=/>home</a>")}
    async with crawler.open(db_path, QUICK) as crawl:
        assert len([page async for page in crawl.run(seeds=[loopback.url("a.test")])]) == 2
    return loopback.url("a.test")


def test_a_loop_that_was_left_lets_go_of_the_store(home: str, db_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", LEAVING, db_path, home],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("well\n", "")
