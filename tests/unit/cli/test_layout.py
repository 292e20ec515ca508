"""Reports fit into 80 columns and show each URL in full."""

from __future__ import annotations

import io

from rich.console import Console

from crawler.cli.layout import Fact, facts


def printed(rows: list[Fact], width: int = 80, indent: int = 0) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(facts(rows, indent=indent))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_labels_stand_in_a_column_and_are_not_repeated() -> None:
    rows: list[Fact] = [("state", "fetched"), ("found by", "http://a.test/"), ("found by", "http://b.test/")]
    assert printed(rows, indent=2) == [
        "  state     fetched",
        "  found by  http://a.test/",
        "            http://b.test/",
    ]


def test_long_text_is_wrapped_under_its_own_beginning() -> None:
    lines = printed([("Ended", "one two three four five six"), ("URLs", "3")], width=20)
    assert lines == ["Ended  one two three", "       four five six", "URLs   3"]


def test_a_long_url_is_folded_and_whole() -> None:
    url = "http://a.test/" + "x" * 300
    lines = printed([("leads to", url)])
    assert max(map(len, lines)) <= 80
    assert "".join(line[10:] for line in lines) == url


def test_brackets_in_page_texts_are_not_markup() -> None:
    assert printed([("page", "title: [bold]not[/bold] [/]")]) == ["page  title: [bold]not[/bold] [/]"]
