"""A crawl that declares a purpose: the end of the run, ``why`` and the report tell what owners refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.demo.pages import Page, plain
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb

PAGES = {
    "/robots.txt": plain("User-agent: *\nContent-Usage: /b train-ai=n\n"),
    "/": Page("<a href=/b>b</a> <a href=/c>c</a> <a href=/d>d</a> <a href=/e>e</a>"),
    "/b": Page("b"),
    "/c": Page("<meta name=robots content=noai>"),
    "/d": Page("<meta name=robots content=noai>"),
    "/e": Page("<meta name=robots content=noindex>"),
}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_owners_refuse_for_a_declared_purpose_is_told(loopback: LoopbackWeb, tmp_path: Path, workers: str) -> None:
    loopback.sites["a.test"] = PAGES
    (tmp_path / "c.toml").write_text(HASTY)
    options = ("--config", tmp_path / "c.toml", *LOOPBACK, "--workers", workers)
    seed = loopback.url("a.test")
    ended = here("run", seed, *options, "--purpose", "train-ai", "--db", tmp_path / "c.db")
    assert ended.code == 0, ended
    said = " ".join(ended.out.split())
    assert "1 page not requested, because robots.txt refuses a declared purpose, 2 pages fetched and withheld" in said
    told = here("why", loopback.url("a.test", "/c"), "--db", tmp_path / "c.db").out
    assert "withheld: it refuses a declared purpose" in " ".join(told.split())
    assert "noindex: its body" not in told
    assert "noindex: its body" in here("why", loopback.url("a.test", "/e"), "--db", tmp_path / "c.db").out
    assert here("report", tmp_path / "r.html", "--db", tmp_path / "c.db").code == 0
    report = (tmp_path / "r.html").read_text()
    assert "1 of 4 pages ask not to be indexed" in report
    assert "2 pages that refuse a declared purpose" in report

    undeclared = here("run", seed, *options, "--db", tmp_path / "d.db", "--json")
    assert json.loads(undeclared.out)["run"]["refusals"] == {}
