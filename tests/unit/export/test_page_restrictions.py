"""NOARCHIVE and ``unavailable_after`` hold in every export."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawler.appendix.study import Study
from crawler.appendix.write import write_appendix
from crawler.export import FORMATS
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW
from tests.unit.export.conftest import BODIES, A, Exporter

URLS = set(BODIES)
UNCOPIED, OVER, STILL = f"{A}plain", f"{A}sum", f"{A}xml"


@pytest.fixture
def filled(filled: Path) -> Path:
    """Three pages ask for something; exports are made a minute after ``NOW``."""

    def until(epoch_s: float) -> str:
        return f"unavailable_after: {datetime.fromtimestamp(epoch_s, UTC):%a, %d %b %Y %H:%M:%S GMT}"

    asked = {
        UNCOPIED: ["X-Robots-Tag: NoArchive"],
        OVER: ["META robots: follow", f"META robots: index, {until(NOW + 60)}"],
        STILL: [f"X-Robots-Tag: {until(NOW + 62)}, max-snippet:-1"],
    }
    with closing(sqlite3.connect(filled, isolation_level=None)) as db:
        for url, said in asked.items():
            db.execute(
                "UPDATE page SET directives = ? WHERE url_id = (SELECT url_id FROM pages WHERE url = ?)",
                (json.dumps(said), url),
            )
        script = {"kind": "script", "host": "cdn.test", "registered_domain": "cdn.test", "times": 1}
        db.execute("UPDATE page SET resources = ?", (json.dumps([script]),))
    return filled


def lines(file: Path) -> dict[str, dict[str, Any]]:
    return {row["url"]: row for row in map(json.loads, file.read_text().splitlines())}


async def test_archives_hold_neither(save: Exporter, tmp_path: Path) -> None:
    bodiless = {url for url, body in BODIES.items() if body is None}
    kept = URLS - bodiless - {UNCOPIED, OVER}
    tally = await save("warc", tmp_path / "a.warc.gz")
    assert tally.written == len(kept)
    assert tally.left_out_for == {
        "without a stored body": len(bodiless),
        "forbidding copies": 1,
        "past the date until which they may be shown": 1,
    }
    with (tmp_path / "a.warc.gz").open("rb") as file:
        found = {record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file)}
    assert found - {None} == kept
    await save("wacz", tmp_path / "a.wacz")
    with zipfile.ZipFile(tmp_path / "a.wacz") as archive:
        pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").splitlines()[1:]]
    assert {page["url"] for page in pages} == kept


async def test_tables_have_noarchive_pages_without_body_and_no_expired_pages(save: Exporter, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    tally = await save("jsonl", tmp_path / "out.jsonl", add=("body",))
    assert (tally.written, tally.left_out) == (len(URLS) - 1, 1)
    assert tally.left_out_for == {"past the date until which they may be shown": 1}
    found = lines(tmp_path / "out.jsonl")
    assert found.keys() == URLS - {OVER}
    assert (found[UNCOPIED]["body"], found[UNCOPIED]["title"]) == (None, "Plain")
    assert found[f"{A}copy"]["body"] == "<title>Plain</title>"  # which asks for nothing
    await save("parquet", tmp_path / "out.parquet", add=("body",))
    bodies = {row["url"]: row["body"] for row in pq.read_table(tmp_path / "out.parquet").to_pylist()}
    assert (bodies.keys(), bodies[UNCOPIED], bodies[STILL]) == (URLS - {OVER}, None, b"<x>")
    await save("csv", tmp_path / "out.csv")
    assert OVER not in (tmp_path / "out.csv").read_text()


async def test_no_table_of_resources_has_those_of_expired_pages(
    save: Exporter, store: SqliteStore, tmp_path: Path
) -> None:
    await save("jsonl", tmp_path / "out.jsonl", table="resources")
    assert lines(tmp_path / "out.jsonl").keys() == URLS - {OVER}
    await write_appendix(store, tmp_path / "appendix", Study(), now=NOW + 60)
    with (tmp_path / "appendix" / "tables" / "resources.csv").open(newline="") as file:
        assert {row["url"] for row in csv.DictReader(file)} == URLS - {OVER}


def text_of(file: Path) -> str:
    """The contents of an export, unpacked."""
    import pyarrow.parquet as pq

    if file.is_dir():
        return "".join(path.read_text() for path in file.rglob("*") if path.is_file())
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            return "".join(unpacked(archive.read(name)) for name in archive.namelist())
    if file.read_bytes().startswith(b"PAR1"):
        return str(pq.read_table(file).to_pylist())
    return unpacked(file.read_bytes())


def unpacked(data: bytes) -> str:
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode("utf-8", "replace")


@pytest.mark.parametrize("format", FORMATS)
async def test_no_format_shows_a_page_that_is_over(format: str, save: Exporter, tmp_path: Path) -> None:
    """Only the links to such a page are shown."""
    out = tmp_path / ("out.warc.gz" if format == "warc" else "out")
    assert (await save(format, out)).written
    text = text_of(out)
    assert A in text
    assert "=1+1" not in text, "the title"
    assert (OVER in text) <= ("links" in FORMATS[format].views)


async def test_versions_are_as_their_page(save: Exporter, tmp_path: Path) -> None:
    await save("jsonl", tmp_path / "out.jsonl", table="page_versions")
    assert lines(tmp_path / "out.jsonl").keys() == URLS - {OVER}
