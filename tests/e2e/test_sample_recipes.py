"""The programs of a data appendix give its estimates again, for every design, with R's ``survey`` and Python's ``svy``.

The sample is drawn from the stored frame of a whole crawl, in which one seed redirects to another host.
"""

from __future__ import annotations

import asyncio
import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from crawler.appendix.check import check_appendix
from crawler.appendix.study import Study
from crawler.appendix.write import write_appendix
from crawler.cli.shared import store_at
from crawler.demo.pages import plain, redirect
from crawler.frontier.sample_design import Method, Per, SampleSettings, SitesBy
from crawler.sampling.draw import draw
from crawler.sampling.survey import DrawnUrls, drawn_of
from crawler.settings.stores import existing_store
from tests.sampled import FRAME, SITES, Sampled, site, three_sites
from tests.survey_designs import r

pytestmark = pytest.mark.slow

NOW = 1_900_000_000.0
DESIGNS = {
    "uniform": SampleSettings(size=40, seed=3),
    "of each site": SampleSettings(size=9, per=Per.SITE, seed=3),
    "sites, equal": SampleSettings(size=9, per=Per.SITE, seed=5, sites=3),
    "sites by size": SampleSettings(size=9, per=Per.SITE, seed=3, sites=3, sites_by=SitesBy.SIZE),
    "random walks": SampleSettings(size=60, method=Method.RANDOM_WALK, seed=3),
}
#: The designs whose standard errors svy computes alike: it has no approximation for unequal probabilities of sites.
EXACT_IN_SVY = ("uniform", "of each site", "sites, equal", "random walks")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The store of a whole crawl of four sites."""
    folder = tmp_path_factory.mktemp("whole")
    with three_sites() as web:
        web.sites["www.red.test"] = site(web, SITES[0])
        web.sites["red.test"] = {"/robots.txt": plain(""), "/": redirect(web.url("www.red.test"))}
        store = Sampled(web, folder)
        ended = store.run("--scope", "host", "--max-depth", "2", seeds=(*SITES, "red.test"))
        assert ended.code == 0, ended
        yield store.db


@pytest.fixture(scope="module")
def appendices(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The appendix of a sample with each design, drawn from a copy of the store."""

    async def made(design: str) -> Path:
        folder = tmp_path_factory.mktemp("appendix")
        db = shutil.copy(crawled, folder / "s.db")
        async with existing_store(store_at(str(db)), read_only=False) as store:
            await draw(store, DESIGNS[design], 2, None, NOW)
        async with existing_store(store_at(str(db))) as store:
            await write_appendix(store, folder / "appendix", Study(), now=NOW)
        return folder / "appendix"

    return {design: asyncio.run(made(design)) for design in DESIGNS}


@pytest.fixture(scope="module")
def printed_by_r(appendices: dict[str, Path]) -> dict[str, str]:
    """What the programs for R print. One process executes all: loading the package takes seconds."""
    programs = (f"cat('==\\n'); setwd('{folder}'); source('recipe.R')" for folder in appendices.values())
    _, *parts = r("\n".join(programs)).split("==\n")
    return dict(zip(appendices, parts, strict=True))


@pytest.mark.parametrize("design", DESIGNS)
def test_the_check_finds_no_fault(appendices: dict[str, Path], design: str) -> None:
    assert [fault for check in check_appendix(appendices[design]) for fault in check.faults] == []


def estimates(folder: Path) -> dict[str, tuple[float, float]]:
    with (folder / "tables" / "estimates.csv").open(newline="") as file:
        rows = {row["quantity"]: row for row in csv.DictReader(file)}
    names = ("disallowed by robots.txt", "size", "total: disallowed by robots.txt")
    return {name: (float(rows[name]["estimate"]), float(rows[name]["standard_error"])) for name in names}


def linearised_errors(folder: Path) -> list[float]:
    """The standard errors of the linear forms of the two means, which have no correction for a large share."""

    async def read() -> DrawnUrls:
        async with existing_store(store_at(str(folder.parent / "s.db"))) as store:
            made = await store.samples.drawn()
            assert made is not None
            return await drawn_of(store, made, {}, NOW)

    drawn, errors = asyncio.run(read()), []
    columns = {measure.what: measure.values for measure in drawn.measures}
    for name in ("disallowed by robots.txt", "size"):
        values = np.array(columns[name])
        weight = np.where(np.isnan(values), 0, drawn.sample.weight)
        mean = weight @ np.nan_to_num(values) / weight.sum()
        errors.append(drawn.sample.total((values - mean) / weight.sum()).standard_error)
    return errors


@pytest.mark.parametrize("design", DESIGNS)
def test_r_gives_the_estimates_again(appendices: dict[str, Path], printed_by_r: dict[str, str], design: str) -> None:
    folder, printed = appendices[design], printed_by_r[design]
    lines = re.findall(r"^(?:disallowed by robots.txt\t|size\t|disallowed +)(\S+)\s+(\S+)$", printed, re.M)
    found = [(float(value), float(error)) for value, error in lines]
    assert len(found) == 3
    assert re.search(r"^answer 200\t0\.\d+\t0\.\d+$", printed, re.M), "a share of a label is one number"
    assert [value for value, _ in found] == pytest.approx([ours for ours, _ in estimates(folder).values()], rel=1e-5)
    share, size = linearised_errors(folder)
    frame = 4 * FRAME  # the third is the total of the first
    assert [error for _, error in found] == pytest.approx([share, size, share * frame], rel=1e-3)


@pytest.mark.parametrize("design", DESIGNS)
def test_svy_gives_the_estimates_again(appendices: dict[str, Path], design: str) -> None:
    if find_spec("svy") is None:
        pytest.skip("the package svy is not installed")
    folder = appendices[design]
    printed = subprocess.check_output([sys.executable, "recipe.py"], cwd=folder, text=True)
    lines = [line.split("\t") for line in printed.splitlines()]
    assert "answer 200" in {name for name, *_ in lines}
    found = [line for line in lines if line[0] in ("disallowed by robots.txt", "size")]
    ours = [value for value, _ in estimates(folder).values()]
    assert [float(value) for _, value, _ in found] == pytest.approx(ours[:2], rel=1e-9)
    if design in EXACT_IN_SVY:
        assert [float(error) for *_, error in found] == pytest.approx(linearised_errors(folder), rel=1e-9)
