"""The codebook explains every column, and docs/appendix.md draws as the crawler does."""

from __future__ import annotations

import random
import re
from fractions import Fraction

from crawler.appendix.describe import codebook_rows
from crawler.appendix.tables import TABLES
from crawler.frontier.sample_design import Sampler, SitesBy, draw_sites, key
from tests.command import ROOT

PAGE = (ROOT / "docs" / "appendix.md").read_text("utf-8")


def test_every_column_has_a_meaning() -> None:
    rows = codebook_rows(TABLES)
    assert [(table.name, column) for table in TABLES for column in table.columns] == [row[:2] for row in rows]
    assert all(len(meaning) > 5 for *_, meaning in rows)


def test_the_page_names_every_table() -> None:
    line = next(line for line in PAGE.splitlines() if line.startswith("| `tables/`"))
    assert {table.name for table in TABLES} == set(re.findall(r"`(\w+)`", line.partition("/`")[2]))


def test_the_test_vectors_hold() -> None:
    vectors = re.findall(r"^(-?\d+) (https://\S+) ([0-9a-f]{16})$", PAGE, re.M)
    assert len(vectors) == 5
    assert [f"{key(url, int(seed)):016x}" for seed, url, _ in vectors] == [hexadecimal for *_, hexadecimal in vectors]


def test_the_program_of_the_page_draws_the_same_sample() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, object] = {}
    exec(program, names)
    frame = {stratum: [f"https://{stratum}.test/é{n}" for n in range(9)] for stratum in ("a", "b")}
    for share in ("1", "0.3"):
        sampler = Sampler(4, 17, share=float(share))
        for stratum, urls in frame.items():
            for url in urls:
                sampler.offer(url, stratum)
        drawn: dict[str, list[str]] = {}
        for each in sampler.drawn():
            drawn.setdefault(each.stratum, []).append(each.url)
        assert names["draw"](frame, 4, 17, Fraction(share)) == drawn  # type: ignore[operator]


def test_the_program_of_the_page_draws_the_same_sites() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, object] = {}
    exec(program, names)
    for seed in range(50):
        chance = random.Random(seed)
        sizes = {f"https://s{n}.test": round(chance.lognormvariate(3, 1.2)) + 1 for n in range(20)}
        for by in SitesBy:
            drawn = names["draw_sites"](sizes, 6, by.value, seed)  # type: ignore[operator]
            assert {site: float(probability) for site, probability in drawn.items()} == draw_sites(sizes, 6, by, seed)
    vectors = re.findall(r"^(equal|size) (https://\S+) (\d+/\d+)$", PAGE, re.M)
    sizes = {f"https://{name}.example": size for name, size in zip("abcdefgh", (*range(5, 36, 5), 400), strict=True)}
    for by in SitesBy:
        listed = {site: float(Fraction(probability)) for name, site, probability in vectors if name == by}
        assert draw_sites(sizes, 4, by, 1) == listed
    (empty,) = re.findall(r"key of the empty text under the seed 1 is `([0-9a-f]{16})`", PAGE)
    assert f"{key('', 1):016x}" == empty
