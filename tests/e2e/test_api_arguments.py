"""Arguments of the Python API: settings work as for a command, and wrong arguments raise UsageError."""

from __future__ import annotations

import asyncio
import io
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import crawler
from crawler.api.arguments import RunLimits
from crawler.demo.pages import Page
from crawler.settings.keys import KEYS
from tests.command import ROOT
from tests.web import LoopbackWeb

pytestmark = pytest.mark.usefixtures("reads_here")

QUICK = {"politeness.delay": 0.02, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True}


@pytest.fixture
def web(loopback: LoopbackWeb) -> LoopbackWeb:
    for name in ("a.test", "b.test"):
        loopback.sites[name] = {"/": Page(f"<title>{name}</title>")}
    return loopback


async def test_a_configuration_names_the_store_and_the_seeds(
    web: LoopbackWeb, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "seeds.txt").write_text(f"a.test\n{web.url('a.test')}\n")
    config = tmp_path / "crawl.toml"
    config.write_text(
        f"[store]\ndb = '{tmp_path / 'named.db'}'\n[seeds]\nfile = '{tmp_path / 'seeds.txt'}'\nskip_bad = true\n"
        "[politeness]\ndelay = 0.02\n[fetch]\nresolve = ['*.test=127.0.0.1']\nallow_private = true\n"
    )
    with caplog.at_level(logging.WARNING, "crawler"):
        async with crawler.open(config=config) as crawl:
            assert [page.title async for page in crawl.run()] == ["a.test"]
            assert [page.title async for page in crawl.run(seeds=["b.test", web.url("b.test")])] == ["b.test"]
    assert (tmp_path / "named.db").exists()
    # A slow machine may add a warning of the store about a slow commit.
    (of_file, of_call) = [record.getMessage() for record in caplog.records if record.name == "crawler"]
    assert of_file.startswith(f"{tmp_path / 'seeds.txt'}, line 1: skipped: no http://")
    assert of_call.startswith("run(seeds=…), seed 1: skipped: no http://")
    async with crawler.open(tmp_path / "other.db", config) as crawl:
        assert [page.title async for page in crawl.run()] == ["a.test"]
    assert (tmp_path / "other.db").exists()


async def test_strata_are_read_from_the_seed_file_of_the_settings(web: LoopbackWeb, db_path: Path) -> None:
    file = db_path.with_name("seeds.csv")
    file.write_text(f"url,stratum\n{web.url('a.test')},one\n{web.url('b.test')},two\n")
    drawing = {"seeds.file": str(file), "sample.size": 2, "sample.method": "stratified"}
    async with crawler.open(db_path, QUICK | drawing) as crawl:
        assert len([page async for page in crawl.run()]) == 2
        strata = await crawl.query("SELECT stratum FROM samples ORDER BY stratum")
    assert strata == [{"stratum": "one"}, {"stratum": "two"}]


async def test_settings_that_one_process_cannot_fulfil(web: LoopbackWeb, db_path: Path) -> None:
    for more, said in (
        ({"workers.count": 2}, r"workers\.count = 2: run\(\) is one process; .* `crawler run`"),
        ({"seeds.file": "none.txt"}, r"seeds\.file = 'none\.txt': No such file"),
    ):
        async with crawler.open(db_path, QUICK | more) as crawl:
            with pytest.raises(crawler.UsageError, match=said):
                [page async for page in crawl.run()]
    assert not db_path.exists()
    assert web.log == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"db": 5}, "db = 5: must be a path"),
        ({"db": b"x.db"}, "db = b'x.db': must be a path"),
        ({"db": ""}, "open\\(\\): db: must not be empty"),
        ({"db": ":memory:"}, "open\\(\\): db = ':memory:': a store outlives the process; name a file"),
        ({"config": 5}, "config = 5: must be a path"),
    ],
)
def test_arguments_that_cannot_open_a_store(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(crawler.UsageError, match=said):
        crawler.open(**arguments)


@pytest.mark.parametrize(
    "seeds",
    [
        [b"http://a.test/"],
        [1],
        [None],
        [("http://a.test/", "x")],
        None,
        5,
        Path("seeds.txt"),
        b"x",
        {"http://a.test/": 1},
    ],
)
async def test_arguments_that_are_not_seeds(seeds: Any, web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as crawl:
        with pytest.raises(crawler.UsageError, match=r"^seeds.* = .*: must be URLs, each a text"):
            [page async for page in crawl.run(seeds)]
    assert not db_path.exists()


async def test_other_wrong_arguments(web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as crawl:
        [page async for page in crawl.run(web.url("a.test"))]
        await crawl.index()
        wrong: Any = 5
        text: Any = io.StringIO()
        asked: list[tuple[Callable[[], Awaitable[object]], str]] = [
            (lambda: crawl.search("test", limit=0), "limit = 0: must be a whole number, 1 or more"),
            (lambda: crawl.search("test", limit=-1), "limit = -1"),
            (lambda: crawl.export("csv", wrong), "out = 5: must be a path"),
            (lambda: crawl.export("csv", text), "must be a path, .* or a file open in binary"),
            (lambda: crawl.report(wrong), "out = 5: must be a path"),
            (lambda: crawl.body(wrong), "url = 5: must be a text"),
            (lambda: anext(crawl.pages(wrong)), "where = 5: must be a text"),
        ]
        for ask, said in asked:
            with pytest.raises(crawler.UsageError, match=said):
                await ask()
    async with crawler.open("x" * 5000, QUICK) as crawl:
        with pytest.raises(crawler.UsageError, match="no place for a store: File name too long"):
            await crawl.query("SELECT 1")
        with pytest.raises(crawler.UsageError, match="no place for a store: File name too long"):
            await anext(crawl.run(web.url("a.test")))


def test_an_export_to_standard_output(web: LoopbackWeb, db_path: Path) -> None:
    script = f"""
import asyncio, crawler
async def main():
    async with crawler.open({str(db_path)!r}, {QUICK!r}) as crawl:
        [page async for page in crawl.run({web.url("a.test")!r})]
        print("first")
        await crawl.export("csv", "-", where="depth = 0")
        print("last")
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=db_path.parent,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert (lines[0], lines[1].split(",")[0], lines[2].split(",")[0], lines[-1]) == (
        "first",
        "url",
        web.url("a.test"),
        "last",
    )
    assert not (db_path.parent / "-").exists()


def test_the_limits_of_a_run_are_those_of_the_configuration() -> None:
    assert {f"limits.{name}" for name in RunLimits.__annotations__} == {
        key for key in KEYS if key.startswith("limits.")
    }


async def test_messages_use_the_names_of_python(web: LoopbackWeb, db_path: Path) -> None:
    said = f"{db_path}: no such store; run(seeds=…) makes one"
    async with crawler.open(db_path, QUICK) as crawl:
        with pytest.raises(crawler.UsageError) as told:
            await crawl.query("SELECT 1")
        assert str(told.value) == said
        async for _ in crawl.run([web.url("a.test"), web.url("b.test")]):
            for ask in (crawl.index, crawl.rank, lambda: anext(crawl.run())):
                with pytest.raises(crawler.StoreInUse, match=r"a run\(\) of this crawl is under way; leave its loop"):
                    await ask()
        built, ranked = await asyncio.gather(crawl.index(), crawl.rank())
    assert built.pages == ranked.pages == 2


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where nobody can make a file")
async def test_a_place_where_no_file_can_be_made() -> None:
    async with crawler.open("/proc/x.db", QUICK) as crawl:
        with pytest.raises(crawler.UsageError, match="cannot be written: no file can be made in /proc"):
            await anext(crawl.run("http://a.test/"))
