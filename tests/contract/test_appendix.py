"""The data appendix of a store of either kind: complete, valid for other tools, and protected against changes."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawler.appendix.check import SUMS, check_appendix, digest_of
from crawler.appendix.study import Study
from crawler.appendix.tables import TABLES
from crawler.appendix.write import write_appendix
from crawler.errors import UsageError
from crawler.frontier.sample_design import Method, Per, SampleSettings, draw_stratified, read_list
from crawler.model import Resource
from crawler.sampling.draw import draw, keep_drawn
from crawler.settings.loading import apply
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.contract.conftest import Opener, sqlite
from tests.contract.visits import NOW, Harness, fetched, request, robots

if TYPE_CHECKING:
    from crawler.store.sections import Store

A = "http://a.test/"
SAMPLE = SampleSettings(size=2, per=Per.SITE, seed=3)


async def sampled(opener: Opener) -> None:
    """Make a store with a sample of 2 of 4 pages."""
    harness = Harness(opener)
    settings = apply(Settings(), {"identity.contact": "me@example.org"}, source="test")
    await harness.reopen(settings=asdict(settings))
    await harness.seed(A)
    (claim,) = await harness.claim()
    (queued,) = claim.urls
    copy = await harness.news(
        queued.site_id, A[:-1], robots(b"User-agent: *\nDisallow: /\xff\n"), answered_by=f"{A}robots.txt"
    )
    start = fetched(queued, [f"{A}{n}" for n in range(4)], title="=1+1", resources=(Resource("script", "b.test", 2),))
    asked = request(queued.site_id, "/", robots_id=copy)
    await harness.commit(start, requests=[asked], released=[claim.group_id])
    await draw(harness.store, SAMPLE, 1, None, NOW)
    await harness.close()


async def listed(opener: Opener, seeds: Path) -> None:
    """Make a store with a stratified sample of the list ``seeds``: 3 of 7."""
    rows = [f"{A}{n},{'big' if n < 5 else 'small'}" for n in range(7)]
    seeds.write_text("\n".join(["url,stratum", *rows, f"{A}0,small"]))
    with seeds.open(newline="", encoding="utf-8") as file:
        found, _ = read_list(file)
    settings = SampleSettings(size=3, method=Method.STRATIFIED, seed=5)
    drawn = draw_stratified(found, 3, 5)
    harness = Harness(opener)
    given = {"identity.contact": "me@example.org", "seeds.file": str(seeds)}
    await harness.reopen(settings=asdict(apply(Settings(), given, source="test")))
    await harness.seed(*[each.url for each in drawn])
    await keep_drawn(harness.store, drawn, settings, 7, None, NOW)
    await harness.close()


@asynccontextmanager
async def reading(opener: Opener) -> AsyncIterator[Store]:
    """The store, open to be read."""
    store = await opener()
    if isinstance(store, SqliteStore):
        path = Path(store.name)
        await store.close()
        store = await SqliteStore.open(path, read_only=True)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def appendix(opener: Opener, tmp_path: Path) -> Path:
    return await write(opener, tmp_path / "appendix")


async def write(opener: Opener, folder: Path) -> Path:
    await sampled(opener)
    async with reading(opener) as store:
        await write_appendix(store, folder, Study(title="A study", authors=("A. Researcher",)), now=NOW)
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An appendix, which is the same whatever database it is from."""
    folder = tmp_path_factory.mktemp("written")
    asyncio.run(write(sqlite(folder), folder / "appendix"))
    return folder / "appendix"


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def faults(folder: Path) -> list[str]:
    """The faults, without that the log of this made-up crawl breaks rules."""
    found = [fault for check in check_appendix(folder) for fault in check.faults]
    return [fault for fault in found if not fault.startswith("the audit found")]


async def test_it_has_the_frame_the_draws_and_the_rest(appendix: Path) -> None:
    import pyarrow.parquet as pq

    assert faults(appendix) == []
    assert [row["url"] for row in rows(appendix, "frame")] == [A, *(f"{A}{n}" for n in range(4))]
    assert {row["stratum"] for row in rows(appendix, "frame")} == {A[:-1]}
    assert len(rows(appendix, "draws")) == 2
    assert [row["title"] for row in rows(appendix, "pages")] == ["'=1+1"]
    assert pq.read_table(appendix / "tables" / "pages.parquet").column("title").to_pylist() == ["=1+1"]
    (site,) = rows(appendix, "sites")
    assert (site["requests"], site["pages"], site["bodies_kept"]) == ("1", "1", "1")
    assert [row["host"] for row in rows(appendix, "resources")] == ["b.test"]
    (text,) = (appendix / "robots").iterdir()
    assert text.read_bytes() == b"User-agent: *\nDisallow: /\xff\n"
    audit = json.loads((appendix / "audit.json").read_text())
    assert hashlib.sha256((appendix / "audit-records.jsonl").read_bytes()).hexdigest() == audit["sha256"]
    assert json.loads((appendix / "estimates.json").read_text())["size"] == 2
    counts = {row["outcome"]: row["urls"] for row in rows(appendix, "nonresponse")}
    assert sum(map(int, counts.values())) == 2
    for table in TABLES:
        assert pq.read_metadata(appendix / "tables" / f"{table.name}.parquet").num_rows == len(
            rows(appendix, table.name)
        )


async def test_own_variables_have_a_column_and_estimates(opener: Opener, tmp_path: Path) -> None:
    folder, expression = tmp_path / "own", "length(path)"
    variables = {"chars": "length(title)", "kind": "content_type", "large": "body_bytes > 2"}
    await sampled(opener)
    async with reading(opener) as store:
        await write_appendix(store, folder, Study(variables=variables), now=NOW)
        for wrong in ({"site": expression}, {"x": "no_such_column"}):
            with pytest.raises(UsageError, match=f"variable {next(iter(wrong))}"):
                await write_appendix(store, tmp_path / "wrong", Study(variables=wrong), now=NOW)
        for taken in ("size", "links per page"):
            with pytest.raises(UsageError, match=f"variable {taken}: "):
                await write_appendix(store, tmp_path / "wrong", Study(variables={taken: "length(title)"}), now=NOW)
    assert faults(folder) == []
    assert [(row["chars"], row["kind"]) for row in rows(folder, "draws") if row["page_id"]] == [("4.0", "text/html")]
    estimates = json.loads((folder / "estimates.json").read_text())
    assert estimates["variables"] == variables
    assert {"chars", "kind = text/html", "large"} <= {each["what"] for each in estimates["estimates"]}
    with (folder / "codebook.csv").open(newline="", encoding="utf-8") as file:
        book = {(row["table"], row["column"]): row for row in csv.DictReader(file)}
    assert (book["draws", "chars"]["type"], book["draws", "kind"]["type"]) == ("number", "string")
    assert book["draws", "chars"]["meaning"].endswith("length(title)")
    (judged,) = (check.judged for check in check_appendix(folder) if "give the estimates" in check.title)
    assert judged == "8 estimates, 0 changes among them"
    _replace(folder / "tables" / "draws.csv", ",4.0,text/html,", ",,text/html,")
    assert "chars has 1 units, and draws.csv 0 values" in faults(folder)


async def test_a_panel_has_the_values_of_both_waves_and_repeats_its_changes(tmp_path: Path) -> None:
    openers = [sqlite(_made(tmp_path / name)) for name in ("first", "second")]
    for opener in openers:
        await sampled(opener)
    async with reading(openers[0]) as first, reading(openers[1]) as second:
        await write_appendix(second, tmp_path / "panel", Study(variables={"chars": "5"}), now=NOW, earlier=first)
    assert faults(tmp_path / "panel") == []
    (page,) = (row for row in rows(tmp_path / "panel", "draws") if row["page_id"])
    assert (page["chars"], page["earlier_chars"], page["earlier_answer"]) == ("5.0", "5.0", "200")
    (judged,) = (check.judged for check in check_appendix(tmp_path / "panel") if "give the estimates" in check.title)
    assert judged == "12 estimates, 6 changes among them"
    for recipe in ("recipe.R", "recipe.py"):
        assert '"change of answer 200"' in (tmp_path / "panel" / recipe).read_text()
    _replace(tmp_path / "panel" / "tables" / "draws.csv", "not said,5.0\n", "not said,\n")
    assert "change of chars has 1 units, and draws.csv 0 values" in faults(tmp_path / "panel")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def test_variables_need_a_sample(opener: Opener, tmp_path: Path) -> None:
    harness = Harness(opener)
    await harness.reopen(settings=asdict(apply(Settings(), {"identity.contact": "me@example.org"}, source="test")))
    await harness.seed(A)
    await harness.close()
    async with reading(opener) as store:
        with pytest.raises(UsageError, match="no sample"):
            await write_appendix(store, tmp_path / "none", Study(variables={"chars": "length(title)"}), now=NOW)


def test_frictionless_accepts_the_data_package(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from frictionless import validate  # a third of a second, in each process that collects the tests

    appendix = Path(shutil.copytree(written, tmp_path / "appendix"))
    monkeypatch.chdir(appendix)  # it trusts no absolute paths
    report = validate("datapackage.json")
    assert report.valid, report.to_summary()
    sites = appendix / "tables" / "sites.csv"
    sites.write_text(sites.read_text().replace(",1,", ",one,", 1))
    assert not validate("datapackage.json").valid


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text": (lambda folder: (folder / "README.md").write_text("x"), "README.md was changed"),
    "a file less": (lambda folder: (folder / "software.json").unlink(), "software.json is missing"),
    "a file more": (lambda folder: (folder / "more.txt").write_text("x"), "more.txt is not listed"),
    "a row less": (lambda folder: _drop_last_line(folder / "tables" / "requests.csv"), "requests.csv has 0 rows"),
    "another draw": (
        lambda folder: _replace(folder / "tables" / "design.csv", ",2,3,", ",2,4,"),
        "(0.0, 0.0) by the frame",
    ),
    "another log": (
        lambda folder: _replace(folder / "audit-records.jsonl", '"page"', '"robots"'),
        "has another digest than the audit",
    ),
    "another robots.txt": (
        lambda folder: next((folder / "robots").iterdir()).write_bytes(b""),
        "has another digest",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_even_if_the_digests_are_made_anew(written: Path, tmp_path: Path, change: str) -> None:
    appendix = Path(shutil.copytree(written, tmp_path / "appendix"))
    alter, expected = CHANGES[change]
    before = digest_of(appendix)
    alter(appendix)
    found = faults(appendix)
    assert any(expected in fault for fault in found), found
    if change in ("a text", "a file less", "a file more"):
        return
    sums = appendix / SUMS
    paths = [line.partition("  ")[2] for line in sums.read_text().splitlines()]
    digests = [hashlib.sha256((appendix / path).read_bytes()).hexdigest() for path in paths]
    sums.write_text("".join(f"{digest}  {path}\n" for digest, path in zip(digests, paths, strict=True)))
    assert any(expected in fault for fault in faults(appendix))
    assert digest_of(appendix) != before


def _drop_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text, text
    path.write_text(text.replace(old, new), "utf-8")


async def test_a_stratified_draw_is_repeated_if_its_list_is_there(opener: Opener, tmp_path: Path) -> None:
    judged = []
    await listed(opener, tmp_path / "seeds.csv")
    for name in ("with", "without"):
        async with reading(opener) as store:
            await write_appendix(store, tmp_path / name, Study(), now=NOW)
        assert faults(tmp_path / name) == []
        judged.append(check_appendix(tmp_path / name)[-1].judged)
        (tmp_path / "seeds.csv").unlink(missing_ok=True)
    assert judged == ["3 draws from 7 URLs", "not judged: the list of seeds was not there any more"]


async def test_the_same_appendix_replaces_an_earlier_one_and_no_other_folder(opener: Opener, tmp_path: Path) -> None:
    await sampled(opener)
    async with reading(opener) as store:
        (tmp_path / "there").mkdir()
        first = await write_appendix(store, tmp_path / "there", Study(), now=NOW)
        assert await write_appendix(store, tmp_path / "there", Study(), now=NOW + 3600) == first, (
            "no date but the store's"
        )
        (tmp_path / "there" / "mine").touch()
        with pytest.raises(UsageError, match="contains mine, which no earlier export wrote"):
            await write_appendix(store, tmp_path / "there", Study(), now=NOW)
    assert (tmp_path / "there" / "mine").exists()


async def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await sampled(sqlite(tmp_path))

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("crawler.appendix.write.data_package", full)
    async with reading(sqlite(tmp_path)) as store:
        with pytest.raises(UsageError, match="No space left on device"):
            await write_appendix(store, _made(tmp_path / "here") / "appendix", Study(), now=NOW)
    assert list((tmp_path / "here").iterdir()) == []


def test_no_folder_without_digests_is_an_appendix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no data appendix"):
        check_appendix(tmp_path)
