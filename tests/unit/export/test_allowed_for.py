"""``export --allowed-for``: what refuses a use is in no export for it; and what exports say of preferences."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawler.errors import UsageError
from crawler.export import FORMATS
from crawler.model import Preference
from crawler.store.views import VIEWS
from tests.unit.export.conftest import PAGES, A, Exporter

REFUSING, BY_ROBOTS, ALLOWING = f"{A}plain", f"{A}sum", f"{A}xml"
_SAID = {
    REFUSING: ("preferences_id", Preference("noai", "train-ai", "n", "META", None, "robots: noai")),
    BY_ROBOTS: ("robots_preferences_id", Preference("tdmrep", "tdm", "n", "robots.txt", 3, "of a test")),
    ALLOWING: ("preferences_id", Preference("content-usage", "train-ai", "y", "header", None, "Content-Usage: …")),
}


@pytest.fixture
def filled(filled: Path) -> Path:
    """Three pages state a preference; the others state none."""
    with closing(sqlite3.connect(filled, isolation_level=None)) as db:
        for number, (url, (column, said)) in enumerate(_SAID.items()):
            db.execute("INSERT INTO preference_set (id, said) VALUES (?, ?)", (number, json.dumps([said._asdict()])))
            page = "(SELECT url_id FROM pages WHERE url = ?)"
            db.execute(f"UPDATE page SET {column} = ? WHERE url_id = {page}", (number, url))
    return filled


def urls(file: Path, column: str = "url") -> set[str]:
    return {json.loads(line)[column] for line in file.read_text().splitlines()}


@pytest.mark.parametrize(
    ("uses", "left_out"),
    [
        (["train-ai"], {REFUSING, BY_ROBOTS}),
        (["research"], {BY_ROBOTS}),
        (["search"], set()),
        (["archive"], set()),
        (["search", "research"], {BY_ROBOTS}),
        ([], set()),
    ],
)
async def test_pages_that_refuse_the_use_are_left_out(
    save: Exporter, tmp_path: Path, uses: list[str], left_out: set[str]
) -> None:
    out = tmp_path / "out.jsonl"
    tally = await save("jsonl", out, allowed_for=uses)
    everything = {A, *(f"{A}{path}" for path in PAGES)}
    assert urls(out) == everything - left_out
    assert tally.left_out == len(left_out)


async def test_an_old_version_that_refuses_is_left_out(filled: Path, save: Exporter, tmp_path: Path) -> None:
    """So are all versions of a page that refuses now."""
    with closing(sqlite3.connect(filled, isolation_level=None)) as db:
        columns = "url_id, status, content_type, fetched_at, last_seen_at, noindex, body_bytes, preferences_id"
        old = columns.replace("last_seen_at", "fetched_at").replace("preferences_id", "?")
        page = "SELECT url_id FROM pages WHERE url = ?"
        for url, version, set_id in ((ALLOWING, -1, 0), (ALLOWING, -2, None), (REFUSING, -3, None)):
            sql = f"INSERT INTO page_version ({columns}, version) SELECT {old}, ? FROM page WHERE url_id = ({page})"
            db.execute(sql, (set_id, version, url))
    out = tmp_path / "out.jsonl"
    await save("jsonl", out, table="page_versions", allowed_for=["train-ai"])
    versions = {(row["url"], row["version"]) for row in map(json.loads, out.read_text().splitlines())}
    assert {version for url, version in versions if url == ALLOWING} == {-2, 1}
    assert not [url for url, _ in versions if url == REFUSING]


async def test_links_of_a_page_that_refuses_are_left_out(save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    for table in ("links", "links_glued"):
        await save("jsonl", out, table=table)
        assert {REFUSING, ALLOWING} <= urls(out, "source")
        await save("jsonl", out, table=table, allowed_for=["train-ai"])
        assert not {REFUSING, BY_ROBOTS} & urls(out, "source")
        assert {REFUSING, ALLOWING} <= urls(out, "target")  # the links of others are theirs


@pytest.mark.parametrize("format", FORMATS)
async def test_no_format_has_the_texts_of_a_page_that_refuses(save: Exporter, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out.warc" if format == "warc" else tmp_path / "out"
    await save(format, out, allowed_for=["train-ai"])
    text = b"".join(path.read_bytes() for path in ([out] if out.is_file() else out.rglob("*")) if path.is_file())
    assert b"=1+1" not in text
    if format not in ("graphml", "edges"):  # in which other pages link to the page
        assert BY_ROBOTS.encode() not in text


async def test_each_view_about_pages_takes_the_option(save: Exporter, tmp_path: Path) -> None:
    for view, columns in VIEWS.items():
        is_about_pages = bool({"url_id", "source_id", "source"} & columns.keys())
        with nullcontext() if is_about_pages else pytest.raises(UsageError, match="about no page"):
            await save("jsonl", tmp_path / view, table=view, allowed_for=["train-ai"])
            assert is_about_pages, view


async def test_an_unknown_use(save: Exporter, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be one of search, train-ai"):
        await save("jsonl", tmp_path / "out", allowed_for=["anything"])


async def test_warc_metadata_has_the_preferences(save: Exporter, tmp_path: Path) -> None:
    await save("warc", tmp_path / "a.warc.gz")
    found: dict[str, Any] = {}
    with (tmp_path / "a.warc.gz").open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == "metadata":
                text = record.content_stream().read().decode()
                said = [line for line in text.splitlines() if line.startswith("preference")]
                found[record.rec_headers.get_header("WARC-Target-URI")] = said
    assert found[REFUSING] == ["preference: train-ai=n (META robots: noai)"]
    assert found[BY_ROBOTS] == ["preference: tdm=n (line 3 of robots.txt, of a test)"]
    assert found[A] == []


async def test_parquet_has_the_preferences_as_columns(save: Exporter, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    await save("parquet", tmp_path / "out.parquet")
    rows = {row["url"]: row for row in pq.read_table(tmp_path / "out.parquet").to_pylist()}
    (said,) = json.loads(rows[REFUSING]["preferences"])
    assert said == _SAID[REFUSING][1]._asdict()
    assert rows[REFUSING]["robots_preferences"] is None
    (said,) = json.loads(rows[BY_ROBOTS]["robots_preferences"])
    assert (said["category"], said["line"]) == ("tdm", 3)
