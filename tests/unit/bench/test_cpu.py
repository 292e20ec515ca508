"""The results of `cpu`, and the time that it measures."""

from __future__ import annotations

import sqlite3
import sys
from array import array
from pathlib import Path

import pytest

from tests.bench import floors
from tests.bench.cpu import Round, rows
from tests.bench.peers import OURS, SCRAPY, WGET, Contestant, Crawl, crawl
from tests.bench.realweb import Web
from tests.bench.spend import Spent, spend
from tests.bench.table import Row

PAGES = 1000


def crawled(ms_per_page: float, peak_mb: int = 100, missing: int = 0) -> Crawl:
    taken = PAGES - missing
    spent = Spent(0, ms_per_page * taken / 1000, ms_per_page * taken / 2000, ms_per_page, peak_mb * 1_000_000)
    return Crawl(spent, taken, taken, tuple(f"http://a.test/{n}" for n in range(missing)), ())


def row_of(table: list[Row], measure: str) -> Row:
    return next(row for row in table if row.measure == measure)


def test_a_figure_is_the_least_and_a_ratio_the_median_of_the_rounds() -> None:
    rounds = [
        Round({"a": 0.5, "b": 0.5}, {OURS: crawled(1.5), SCRAPY: crawled(15)}),
        Round({"a": 0.4, "b": 0.7}, {OURS: crawled(2.2), SCRAPY: crawled(11)}),
        Round({"a": 0.5, "b": 0.5}, {OURS: crawled(1.2), SCRAPY: crawled(24)}),
    ]
    table = rows(rounds, PAGES)
    assert [row_of(table, name).figure for name in ("a", "b", "floors: sum")] == [0.4, 0.5, 1.0]
    mine = row_of(table, f"{OURS}: CPU per page")
    assert (mine.figure, mine.floor) == (1.2, 1.0)
    assert mine.ratio == pytest.approx(1.5)
    own = row_of(table, f"{OURS}: CPU per page, main process")
    assert (own.figure, own.ok) == (pytest.approx(0.6), True)
    for what in ("CPU per page", "wall time"):
        against = row_of(table, f"{OURS} and {SCRAPY}: {what}")
        assert (against.figure, against.peer_figure, against.ok) == (1.2, 11, True)
        assert against.ratio == pytest.approx(10)
    assert not [row for row in table if WGET in row.measure]


def test_the_peak_is_the_highest_of_the_rounds() -> None:
    table = rows([Round({"a": 1}, {OURS: crawled(1, peak)}) for peak in (140, 210, 120)], PAGES)
    peak = row_of(table, f"{OURS}: peak memory")
    assert (peak.figure, peak.ok) == (210, False)


def test_who_misses_much_of_the_web_is_not_compared() -> None:
    half = crawled(1, missing=PAGES // 2)
    lazy_peer = rows([Round({"a": 1}, {OURS: crawled(1), WGET: half})], PAGES)
    assert row_of(lazy_peer, f"{OURS} and {WGET}: CPU per page").ok is None
    lazy_ours = rows([Round({"a": 1}, {OURS: half, WGET: crawled(9)})], PAGES)
    assert row_of(lazy_ours, f"{OURS}: CPU per page, main process").ok is False
    assert row_of(lazy_ours, f"{OURS} and {WGET}: CPU per page").ok is None


def test_a_childs_memory_and_time_count(tmp_path: Path) -> None:
    work = (
        "import time; held = bytearray(80_000_000); end = time.process_time() + 0.3\nwhile time.process_time() < end: 0"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}]); print('done'); sys.exit(3)"
    spent = spend([sys.executable, "-c", parent], tmp_path, tmp_path / "out")
    assert spent.code == 3
    assert spent.cpu_s >= 0.3 > spent.own_cpu_s
    assert spent.peak_bytes >= 80_000_000
    assert (tmp_path / "out").read_text() == "done\n"


def test_a_crawl_is_compared_with_the_reference_and_leaves_nothing(tmp_path: Path) -> None:
    web = Web(tmp_path, ("a.test",), ("http://a.test:1/",), frozenset({"here", "lost"}))
    said = Contestant(
        "it", [sys.executable, "-c", "print('here more')"], lambda at: (set((at / "output.log").read_text().split()), 7)
    )
    done = crawl(said, web, tmp_path / "run")
    assert (done.pages, done.requests, done.missing, done.extra) == (2, 7, ("lost",), ("more",))
    assert not (tmp_path / "run").exists()


def test_a_crawler_that_ends_badly_stops_the_measurement_with_its_words(tmp_path: Path) -> None:
    web = Web(tmp_path, ("a.test",), ("http://a.test:1/",), frozenset())
    with pytest.raises(RuntimeError, match=r"it ended with 1: no such option"):
        crawl(
            Contestant("it", [sys.executable, "-c", "exit('no such option')"], lambda at: (set(), 0)),
            web,
            tmp_path / "run",
        )


def test_the_floors_pass_on_what_they_find(tmp_path: Path) -> None:
    url = "http://a.test/d/p.html"
    html = b'<a href="x.html#1">1</a><a href="x.html#2">2</a><a href="http://b.test/">b</a><a>no</a><a href="http://[">bad</a>'
    hrefs = floors.parse(floors.gunzip([html]))
    links = floors.join([url], hrefs)
    assert sorted(links[0]) == ["http://a.test/d/x.html", "http://b.test/"]
    _, numbers = floors.hashes([html], links)
    made = floors.Rows([url], [html], links, numbers)
    made.write(tmp_path / "floor.db")
    database = sqlite3.connect(tmp_path / "floor.db")
    assert database.execute("SELECT url, body FROM page").fetchall() == [(url, html)]
    queued = {found: key for key, found in database.execute("SELECT id, url FROM frontier")}
    assert set(queued) == set(links[0])
    (packed,) = database.execute("SELECT targets FROM link").fetchone()
    assert sorted(array("q", packed)) == sorted(queued.values())
    (source,) = database.execute("SELECT id FROM page").fetchone()
    same_host = queued["http://a.test/d/x.html"] >> floors.PATH_BITS == source >> floors.PATH_BITS
    assert same_host
    assert queued["http://b.test/"] >> floors.PATH_BITS != source >> floors.PATH_BITS
    database.close()
