"""What the crawler is given from Python: settings that a command would heed, and arguments that mean nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import crawler
from crawler.demo.pages import Page
from tests.web import LoopbackWeb

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
    (of_file, of_call) = caplog.messages
    assert of_file.startswith(f"--seeds {tmp_path / 'seeds.txt'}, line 1: passed over: no http://")
    assert of_call.startswith("run(seeds=…), seed 1: passed over: no http://")
    async with crawler.open(tmp_path / "other.db", config) as crawl:
        assert [page.title async for page in crawl.run()] == ["a.test"]
    assert (tmp_path / "other.db").exists()


async def test_strata_come_with_the_file_that_the_settings_name(web: LoopbackWeb, db_path: Path) -> None:
    file = db_path.with_name("seeds.csv")
    file.write_text(f"url,stratum\n{web.url('a.test')},one\n{web.url('b.test')},two\n")
    drawing = {"seeds.file": str(file), "sample.size": 2, "sample.method": "stratified"}
    async with crawler.open(db_path, QUICK | drawing) as crawl:
        assert len([page async for page in crawl.run()]) == 2
        strata = await crawl.query("SELECT stratum FROM samples ORDER BY stratum")
    assert strata == [{"stratum": "one"}, {"stratum": "two"}]


async def test_settings_that_cannot_hold_in_one_process(web: LoopbackWeb, db_path: Path) -> None:
    for more, said in (
        ({"workers.count": 2}, r"workers\.count = 2: run\(\) is one process; .* `crawler run`"),
        ({"seeds.file": "none.txt"}, r"--seeds \(in Python: run\(seeds=…\) or seeds\.file\) none\.txt: No such file"),
    ):
        async with crawler.open(db_path, QUICK | more) as crawl:
            with pytest.raises(crawler.UsageError, match=said):
                [page async for page in crawl.run()]
    assert not db_path.exists()
    assert web.log == []
