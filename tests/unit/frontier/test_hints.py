"""Hints: what a date may mean at the latest, and which pages a file's name stands for."""

from __future__ import annotations

from crawler.frontier.hints import Hint, HintKind, usable, with_folders

DAY_S = 86_400.0
A = "http://a.test/"


def hint(path: str, at: float = 5.0, kind: HintKind = HintKind.CHANGED) -> Hint:
    return Hint(f"{A}{path}", kind, at, "rup")


def test_a_day_without_a_time_lasts_until_its_end() -> None:
    assert [h.at for h in usable([hint("", 10 * DAY_S)], 20 * DAY_S)] == [11 * DAY_S]
    assert [h.at for h in usable([hint("", 10 * DAY_S)], 10.5 * DAY_S)] == [10.5 * DAY_S]
    assert [h.at for h in usable([hint("", 10 * DAY_S + 1)], 20 * DAY_S)] == [10 * DAY_S + 1]
    assert usable([hint("", 12 * DAY_S)], 10.5 * DAY_S) == []


def test_a_start_page_stands_for_its_folder_where_that_is_known() -> None:
    told = [hint("dir/index.html"), hint("INDEX.HTM", kind=HintKind.GONE), hint("dir/x.html")]
    assert with_folders(told, set()) == told
    assert with_folders(told, {A, f"{A}dir/"}) == [hint("dir/"), hint(""), hint("dir/x.html")]
    assert with_folders(told[:1], {f"{A}dir/", f"{A}dir/index.html"}) == [hint("dir/"), told[0]]
