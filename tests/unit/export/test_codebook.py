"""The codebook explains every column, and docs/appendix.md draws as the crawler does."""

from __future__ import annotations

import re

from crawler.export.appendix.describe import codebook_rows
from crawler.export.appendix.tables import TABLES
from crawler.frontier.sample_design import Sampler, key
from tests.command import ROOT

PAGE = (ROOT / "docs" / "appendix.md").read_text("utf-8")


def test_every_column_has_a_meaning() -> None:
    rows = codebook_rows()
    assert [(table.name, column) for table in TABLES for column in table.columns] == [row[:2] for row in rows]
    assert all(len(meaning) > 5 for *_, meaning in rows)


def test_the_page_names_every_table() -> None:
    line = next(line for line in PAGE.splitlines() if line.startswith("| `tables/`"))
    assert {table.name for table in TABLES} == set(re.findall(r"`(\w+)`", line.partition("/`")[2]))


def test_the_test_vectors_hold() -> None:
    vectors = re.findall(r"^(-?\d+) (https://\S+) ([0-9a-f]{16})$", PAGE, re.M)
    assert len(vectors) == 4
    assert [f"{key(url, int(seed)):016x}" for seed, url, _ in vectors] == [hexadecimal for *_, hexadecimal in vectors]


def test_the_program_of_the_page_draws_the_same_sample() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, object] = {}
    exec(program, names)
    frame = {stratum: [f"https://{stratum}.test/é{n}" for n in range(9)] for stratum in ("a", "b")}
    sampler = Sampler(4, 17)
    for stratum, urls in frame.items():
        for url in urls:
            sampler.offer(url, stratum)
    drawn: dict[str, list[str]] = {}
    for each in sampler.drawn():
        drawn.setdefault(each.stratum, []).append(each.url)
    assert names["draw"](frame, 4, 17) == drawn  # type: ignore[operator]
