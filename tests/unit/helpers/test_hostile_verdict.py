"""The judge of the hostile web: each thing that it judges can be found wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.demo.pages import Hit
from tests.command import Ended
from tests.hostile import verdict
from tests.hostile.behaviour import FETCHED, Behaviour, Crawl
from tests.hostile.crawl import Crawled
from tests.hostile.verdict import Verdict, judge_times, table, wrong_ones
from tests.spend import Spent

ONE = Behaviour("one", "does nothing", {"/": FETCHED}, titles={"/": "Title"}, never=("/private/",), most_requests=2)
LOG = [
    Hit("one.test", "/robots.txt", 0.0, 0.1, 200, "PoliteCrawler/1"),
    Hit("one.test", "/", 0.3, 0.4, 200, "PoliteCrawler/1"),
]
PORT = 20_000


@pytest.fixture
def crawled(tmp_path: Path) -> Crawled:
    """A crawl with which nothing is wrong."""
    db = tmp_path / "crawl.db"
    with closing(sqlite3.connect(db)) as store, store:
        store.execute("CREATE TABLE runs AS SELECT 0.1 AS worst_lag_s, 'done' AS ended_code")
        store.execute("CREATE TABLE urls (reason_code)")
        store.execute("CREATE TABLE requests (url, error_kind)")
        store.executemany("INSERT INTO requests VALUES (?, NULL)", [(ONE.url(hit.path, PORT),) for hit in LOG])
    return Crawled(Spent(0, 1.0, 1.0, 5.0, 10_000_000), db, "done\n", LOG, PORT, 0.0)


def faults_of_run(crawled: Crawled, change: str = "") -> list[str]:
    with closing(sqlite3.connect(crawled.db)) as store:
        store.execute(change)
        return list(verdict._run(crawled, store, Verdict(), Crawl.MAIN))


def faults_of_log(crawled: Crawled, log: Sequence[Hit], change: str = "") -> list[str]:
    with closing(sqlite3.connect(crawled.db)) as store:
        store.execute(change)
        return list(verdict._log(store, replace(crawled, log=list(log)), ()))


def test_each_fault_is_told() -> None:
    assert wrong_ones(Verdict({"a": []}, {"run": []})) == set()
    assert "WRONG" not in table(Verdict({"a": []}, {"run": []}))
    verdict = Verdict({"a": ["x"], "b": []}, {"run": ["y"]})
    assert wrong_ones(verdict) == {"a", "run"}
    assert "WRONG  a: x" in table(verdict)
    assert "WRONG  run: y" in table(verdict)


@pytest.mark.parametrize(
    ("row", "title", "faults"),
    [
        (("fetched", "fetched", "200"), "Title", 0),
        (("failed", "fetched", "200"), "Title", 1),
        (("fetched", "noindex", "200"), "Title", 1),
        (("fetched", "fetched", "200"), "Another", 1),
        (None, None, 2),
    ],
)
def test_the_end_of_a_url(row: tuple[str, str, str] | None, title: str | None, faults: int) -> None:
    url = ONE.url("/", PORT)
    found = verdict.wrong_ends({} if row is None else {url: row}, {url: title}, ONE, PORT)
    assert len(list(found)) == faults


def test_the_requests_of_a_host() -> None:
    assert list(verdict._wrong_requests(ONE, LOG)) == []
    assert list(verdict._wrong_requests(ONE, [*LOG, LOG[1]])) == ["3 requests, at most 2 expected"]
    assert list(verdict._wrong_requests(ONE, [replace(LOG[1], path="/private/x")])) == ["/private/x was requested"]


def test_the_end_of_the_run(crawled: Crawled) -> None:
    assert faults_of_run(crawled) == []
    assert "ended with -9" in faults_of_run(replace(crawled, spent=replace(crawled.spent, code=-9)))[0]
    assert "a traceback" in faults_of_run(replace(crawled, output="Traceback (most recent call last):"))[0]
    assert "control character" in faults_of_run(replace(crawled, output="\x1b[2J"))[0]
    assert "ended by max_time" in faults_of_run(crawled, "UPDATE runs SET ended_code = 'max_time'")[0]
    assert "a bug of the crawler" in faults_of_run(crawled, "INSERT INTO urls VALUES ('fault')")[0]


def test_the_log_of_the_servers(crawled: Crawled) -> None:
    robots, page = LOG
    assert faults_of_log(crawled, LOG) == []
    for hits in ([page], [robots, replace(page, started_at=0.11)], [robots, replace(page, started_at=0.05)]):
        assert "violations by the server's log" in faults_of_log(crawled, hits)[0]
    assert "violations" in faults_of_log(crawled, [robots, replace(page, user_agent="other")])[0]
    later = replace(page, started_at=0.6, finished_at=0.7)
    assert "more often than the store says" in faults_of_log(crawled, [*LOG, later])[0]
    assert "less often than the store says" in faults_of_log(crawled, [robots])[0]


def test_the_end_of_a_command() -> None:
    assert list(verdict.ended_well(("audit",), Ended(0, "fine\n", ""))) == []
    for ended in (Ended(1, "", "no"), Ended(0, "", "Traceback (most"), Ended(0, "\x9b2J", ""), Ended(0, "", "\u202e")):
        assert len(list(verdict.ended_well(("audit",), ended))) == 1


def test_what_depends_on_the_machine(crawled: Crawled) -> None:
    def faults(crawled: Crawled, max_time_s: float = 90.0) -> list[str]:
        found = Verdict()
        judge_times(crawled, [ONE], max_time_s, 1.5, found)
        return found.whole["time and memory"]

    assert faults(crawled) == []
    assert "ten pages after 16 s" in faults(replace(crawled, started_at=-15.6))[0]
    assert "ten pages after inf s" in faults(replace(crawled, log=LOG[:1]))[0]
    assert faults(replace(crawled, started_at=-15.6, slowness=1.1)) == []
    slow = [LOG[0], replace(LOG[1], started_at=0.5)]
    assert "took 5.0 times its pauses, and 1.5 times alone" in faults(replace(crawled, log=slow))[0]
    assert faults(replace(crawled, log=slow, slowness=2.0)) == []
    assert "took inf times" in faults(replace(crawled, log=[]))[0]
    assert "--max-time" in faults(crawled, -6.0)[0]
    assert "MB at once" in faults(replace(crawled, spent=replace(crawled.spent, peak_bytes=1 << 30)))[0]
    for lag_s, says in ((1.1, "held up for 1.1 s"), (None, "not measured")):
        with closing(sqlite3.connect(crawled.db)) as store, store:
            store.execute("UPDATE runs SET worst_lag_s = ?", [lag_s])
        assert says in faults(crawled)[0]
