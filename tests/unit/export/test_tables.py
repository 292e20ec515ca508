"""Tables hold what the store holds: read back by other people's tools they equal it."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import sqlite3
import sys
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler import parquet
from crawler.errors import UsageError
from crawler.export import VIEWS, tables
from crawler.parquet import url_number
from crawler.store.sqlite.store import SqliteStore
from crawler.store.views import ColumnType
from tests.contract.visits import NOW
from tests.unit.export.conftest import BODIES, PAGES, A, Exporter


def objects(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]


def without_guard(cell: str) -> str:
    return cell[1:] if re.match(r"'+[=+\-@\t\r]", cell) else cell


async def test_every_view_has_its_columns_with_their_kinds(store: SqliteStore) -> None:
    found = await store.query("SELECT name FROM sqlite_master WHERE type = 'view'")
    views = [row["name"] for row in found if not row["name"].endswith("_by_id")]
    columns = await store.query(
        "SELECT m.name AS view, c.name AS name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'view'"
    )
    in_store = {view: [row["name"] for row in columns if row["view"] == view] for view in views}
    assert in_store == {view: list(known) for view, known in VIEWS.items()}


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
async def test_every_view_can_be_exported(save: Exporter, store: SqliteStore, tmp_path: Path, format: str) -> None:
    written = {view: (await save(format, tmp_path / view, table=view)).written for view in VIEWS}
    counts = {view: (await store.query(f"SELECT count(*) AS n FROM {view}"))[0]["n"] for view in VIEWS}
    assert written == counts


async def test_json_lines_equal_the_store(save: Exporter, store: SqliteStore, tmp_path: Path) -> None:
    import pyarrow.json

    out = tmp_path / "pages.jsonl"
    await save("jsonl", out)
    rows = await store.query("SELECT * FROM pages")
    assert len(rows) == len(PAGES) + 1
    for record, row in zip(objects(out), rows, strict=True):
        for name, (kind, _) in VIEWS["pages"].items():
            expected = row[name]
            if expected is not None and kind is ColumnType.YES:
                expected = bool(expected)
            if expected is not None and kind is ColumnType.JSON:
                expected = json.loads(expected)
            assert record[name] == expected
            assert isinstance(record[name], bool) == (kind is ColumnType.YES and expected is not None)
    table = pyarrow.json.read_json(out)
    assert table.column("title").to_pylist() == [row["title"] for row in rows]


async def test_bodies_in_json_lines_are_text_only_where_that_loses_nothing(save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "pages.jsonl"
    await save("jsonl", out, add=("body",))
    records = {record["url"]: record for record in objects(out)}
    found = {
        url: base64.b64decode(record["body_base64"])
        if "body_base64" in record
        else record["body"] and record["body"].encode(record["charset"] or "utf-8")
        for url, record in records.items()
    }
    assert {url: body or None for url, body in found.items()} == {url: body or None for url, body in BODIES.items()}
    assert records[f"{A}latin"]["body"] == "é"
    assert records[f"{A}hidden"]["body"] is None
    assert {url for url in records if "body_base64" in records[url]} == {f"{A}broken", f"{A}odd?b=2&a=%20'"}


def as_text(value: Any, kind: ColumnType) -> str:
    if value is not None and kind is ColumnType.TIME:
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    return "" if value is None else str(value)


def test_a_time_without_a_date_is_left_out_of_csv() -> None:
    assert tables.cell(0.5, ColumnType.TIME) == "1970-01-01T00:00:00.500000Z"
    assert [tables.cell(at, ColumnType.TIME) for at in (inf, 1e15, -1e15, None)] == [None] * 4


async def test_csv_equals_the_store(save: Exporter, store: SqliteStore, tmp_path: Path) -> None:
    import pyarrow.csv

    out = tmp_path / "pages.csv"
    await save("csv", out)
    rows = await store.query("SELECT * FROM pages")
    with out.open(newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file, strict=True))
    assert [{name: without_guard(cell) for name, cell in row.items()} for row in read] == [
        {name: as_text(value, VIEWS["pages"][name].type) for name, value in row.items()} for row in rows
    ]
    parsed = pyarrow.csv.read_csv(out, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    assert parsed.column("body_bytes").to_pylist() == [row["body_bytes"] for row in rows]
    assert parsed.schema.field("fetched_at").type == pyarrow.timestamp("ns", "UTC")
    assert out.read_bytes().startswith(b"url,status,content_type,")
    assert out.read_bytes().endswith(b"\r\n")


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_every_sign_that_a_spreadsheet_evaluates_is_defused(sign: str) -> None:
    assert tables.cell(f"{sign}1+1", ColumnType.TEXT) == f"'{sign}1+1"
    assert tables.cell(f"'{sign}1+1", ColumnType.TEXT) == f"''{sign}1+1"
    assert tables.cell(f"1{sign}1", ColumnType.TEXT) == f"1{sign}1"


async def test_no_cell_is_a_formula(save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "pages.csv"
    await save("csv", out)
    with out.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert {"'=1+1", "''=quoted", "'-5", "'\tTab", "'@x"} <= set(cells)
    assert [cell for cell in cells if re.match(r"[=+\-@\t\r]", cell)] == []


@given(st.one_of(st.text(), st.from_regex(r"'*[=+\-@\t\r].*"), st.integers(), st.floats(allow_nan=False)))
def test_a_cell_is_safe_and_can_be_had_back(value: str | float) -> None:
    cell = tables.cell(value, ColumnType.TEXT if isinstance(value, str) else ColumnType.NUMBER)
    if isinstance(value, str):
        assert not re.match(r"[=+\-@\t\r]", cell)
        assert without_guard(cell) == value
    else:
        assert cell is value


async def test_parquet_equals_the_store(save: Exporter, store: SqliteStore, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "pages.parquet"
    await save("parquet", out, add=("body",))
    table = pq.read_table(out)
    rows = await store.query("SELECT * FROM pages")
    for record, row in zip(table.to_pylist(), rows, strict=True):
        assert record.pop("body") == BODIES[row["url"]]
        for name in ("fetched_at", "last_seen_at"):
            assert record.pop(name) == datetime.fromtimestamp(row.pop(name), UTC)
        assert record == row
    types = {field.name: str(field.type) for field in table.schema}
    assert {types[name] for name in ("url", "directives")} == {"string"}
    assert (types["status"], types["noindex"], types["body"]) == ("int64", "bool", "binary")
    assert types["fetched_at"] == "timestamp[us, tz=UTC]"


async def test_row_groups_are_bounded_by_rows_and_by_size(
    save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "pages.parquet"
    monkeypatch.setattr(parquet, "_ROWS_PER_BATCH", 2)
    monkeypatch.setattr(parquet, "_ROWS_PER_GROUP", 4)
    await save("parquet", out)
    read = pq.ParquetFile(out)
    assert [read.metadata.row_group(n).num_rows for n in range(read.num_row_groups)] == [4, 4, 3]
    monkeypatch.setattr(parquet, "_BYTES_PER_GROUP", 1)
    monkeypatch.setattr(parquet, "_BYTES_PER_BATCH", 1)
    await save("parquet", out, add=("body",))
    assert pq.ParquetFile(out).num_row_groups > 6
    assert pq.read_table(out).num_rows == 11


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
async def test_times_without_end_are_null(save: Exporter, filled: Path, tmp_path: Path, format: str) -> None:
    import pyarrow.parquet as pq

    with sqlite3.connect(filled) as db:
        db.execute("UPDATE url SET lastmod = CASE path WHEN '/' THEN 9e999 WHEN '/plain' THEN 1e300 ELSE 1.5 END")
    db.close()
    out = tmp_path / "out"
    await save(format, out, table="urls", where="url_id IN (SELECT url_id FROM pages)")
    read = objects(out) if format == "jsonl" else pq.read_table(out).to_pylist()
    times = {row["url"]: row["lastmod"] for row in read}
    assert times[A] is None
    assert times[f"{A}plain"] == (1e300 if format == "jsonl" else None)
    assert times[f"{A}sum"] == (1.5 if format == "jsonl" else datetime.fromtimestamp(1.5, UTC))


async def test_octets_that_are_no_text_survive_as_base64(save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "robots.jsonl"
    await save("jsonl", out, table="robots_versions")
    (record,) = objects(out)
    assert base64.b64decode(record["body_base64"]) == b"User-agent: *\nDisallow: /\xff\n"
    await save("csv", out, table="robots_versions")
    assert "Disallow: /\ufffd\n" in out.read_text()


async def test_an_open_file_is_written_to_and_left_open(save: Exporter) -> None:
    for format in ("jsonl", "csv", "parquet", "wacz"):
        file = io.BytesIO()
        await save(format, file)
        assert file.tell() > 0


async def test_a_missing_library_is_named_with_its_extra(
    save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"needs pyarrow.* pip install '\.\[export\]'"):
        await save("parquet", tmp_path / "out")
    assert list(tmp_path.glob("*out*")) == list(tmp_path.glob(".export*")) == []


async def test_rows_that_were_added_since_a_run_are_a_further_file_of_a_folder(
    save: Exporter, store: SqliteStore, filled: Path, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "lake"
    with pytest.raises(UsageError, match="no run after it"):
        await save("parquet", out, table="requests", since=1)
    views = ("pages", "links", "requests", "urls")
    whole = {view: (await save("parquet", out, table=view, since=0)).written for view in views}
    assert whole == {view: (await store.query(f"SELECT count(*) AS n FROM {view}"))[0]["n"] for view in views}
    with sqlite3.connect(filled) as db:
        db.execute("CREATE TEMP TABLE later AS SELECT * FROM run")
        db.execute("UPDATE later SET id = 2, started_at = ?", (NOW + 100,))
        db.execute("INSERT INTO run SELECT * FROM later")
        (page,) = db.execute("SELECT min(url_id) FROM page").fetchone()
        db.execute("UPDATE page SET fetched_at = ? WHERE url_id = ?", (NOW + 101, page))
        db.execute("UPDATE request SET run_id = 2 WHERE id = 1")
        db.execute("UPDATE url SET depth = depth + 1 WHERE id = ?", (page,))
    added = {view: (await save("parquet", out, table=view, since=1)).written for view in views}
    links = (await store.query("SELECT count(*) AS n FROM links WHERE source_id = :page", {"page": page}))[0]["n"]
    assert added == {"pages": 1, "links": links, "requests": 1, "urls": 1}
    assert (await save("parquet", out, table="pages", since=1, where="depth > 99")).written == 0
    assert sorted(path.name for path in (out / "links").iterdir()) == ["run=000001.parquet", "run=000002.parquet"]
    assert pq.read_table(out / "links").num_rows == whole["links"] + links
    updated = pq.read_table(out / "urls" / "run=000002.parquet").to_pylist()
    assert [(row["depth"], row["url_id"]) for row in updated] == [(1, url_number(updated[0]["url"]))]
    assert (await save("parquet", out, table="urls", since=1)).written == 1, "its own file is replaced"
    with pytest.raises(UsageError, match="for parquet"):
        await save("csv", out, since=1)
