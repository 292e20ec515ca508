"""The figures of `python -m tests.bench cpu`. Each test imports the benchmark itself: collecting loads no benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spend import Spent

PAGES = 1000


def crawled(ms_per_page: float, missing: int = 0) -> Any:
    from tests.bench.peers import Crawl

    taken = PAGES - missing
    spent = Spent(0, ms_per_page * taken / 1000, ms_per_page * taken / 2000, ms_per_page, 100_000_000)
    return Crawl(spent, taken, taken, tuple(f"http://a.test/{n}" for n in range(missing)), ())


def row_of(table: list[Any], measure: str) -> Any:
    return next(row for row in table if row.measure == measure)


def test_a_figure_is_the_least_and_a_ratio_the_median_of_the_rounds() -> None:
    from tests.bench.cpu import Round, rows
    from tests.bench.peers import OURS, SCRAPY, WGET

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
    for what in ("CPU per page", "wall time"):
        against = row_of(table, f"{OURS} and {SCRAPY}: {what}")
        assert (against.figure, against.peer_figure, against.ok) == (1.2, 11, True)
        assert against.ratio == pytest.approx(10)
    assert not [row for row in table if WGET in row.measure]


def test_who_misses_much_of_the_web_is_not_compared() -> None:
    from tests.bench.cpu import Round, rows
    from tests.bench.peers import OURS, WGET

    half = crawled(1, missing=PAGES // 2)
    lazy_peer = rows([Round({"a": 1}, {OURS: crawled(1), WGET: half})], PAGES)
    assert row_of(lazy_peer, f"{OURS} and {WGET}: CPU per page").ok is None
    lazy_ours = rows([Round({"a": 1}, {OURS: half, WGET: crawled(9)})], PAGES)
    assert row_of(lazy_ours, f"{OURS}: CPU per page, main process").ok is False
    assert row_of(lazy_ours, f"{OURS} and {WGET}: CPU per page").ok is None
