"""A condition is one expression on a view's columns, and can do nothing but choose rows."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import StoreError, UsageError
from crawler.export.job import require_one_expression
from tests.unit.export.conftest import Exporter

GOOD = {
    "1": 11,
    "status = 200 and title like '=%'": 1,
    "(depth = 0) or (depth = 1)": 11,
    "title = 'it''s; (' or url like '%/plain'": 1,
    '"depth" = 0': 1,
    "`depth` = 0 or [depth] = 7": 1,
    "depth = 0 -- ) ; '": 1,
    "depth /* ; ' ) */ = 0": 1,
    "url_id in (select source_id from links where target like '%/latin')": 1,
}
BAD = {
    "1; DELETE FROM page": "without ';'",
    "1) UNION SELECT * FROM pages WHERE (1": "brackets do not match",
    "1) OR (1": "brackets do not match",
    "(depth = 0": "brackets do not match",
    "title = 'x": "quote ' is not closed",
    'title = "x': 'quote " is not closed',
    "title = [x": r"quote \[ is not closed",
    "1 /* never closed": "incomplete input",
    "nosuch = 1": "no such column: nosuch .the columns of pages are url, status",
    "depth = ?": "bindings",
    " ": "contains no condition",
    "DELETE FROM page": "syntax error",
    "ATTACH 'x.db' AS x": "syntax error",
    "PRAGMA writable_schema = 1": "syntax error",
    "load_extension('x')": "not authorized",
    "abs(-9223372036854775808)": "integer overflow",
    "json_extract('{', '$.a')": "malformed JSON",
}


@pytest.mark.parametrize(("where", "rows"), GOOD.items())
async def test_good_conditions(save: Exporter, tmp_path: Path, where: str, rows: int) -> None:
    assert (await save("csv", tmp_path / "out", where=where)).written == rows


@pytest.mark.parametrize(("where", "said"), BAD.items())
async def test_bad_conditions(save: Exporter, tmp_path: Path, where: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        await save("csv", tmp_path / "out", where=where)
    assert repr(where) in str(caught.value)
    assert [path for path in tmp_path.iterdir() if "out" in path.name or "part" in path.name] == []


_PIECES = [
    "(",
    ")",
    ";",
    "'",
    '"',
    "[",
    "]",
    "`",
    "--",
    "/*",
    "*/",
    "\n",
    " ",
    "1",
    "x",
    "OR",
    "SELECT",
    "UNION",
    "a''b",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_only_one_expression_is_accepted(text: str) -> None:
    """If SQLite takes it as a condition, it also takes it where only an expression can stand."""
    try:
        require_one_expression(text)
    except UsageError:
        return
    db = sqlite3.connect(":memory:")
    try:
        if accepts(db, f"SELECT 1 FROM (SELECT 1 AS x) WHERE (\n{text}\n)"):
            assert accepts(db, f"SELECT max((\n{text}\n), 1) FROM (SELECT 1 AS x)")
    finally:
        db.close()


def accepts(db: sqlite3.Connection, sql: str) -> bool:
    try:
        db.execute(sql)
    except (sqlite3.Error, sqlite3.Warning):
        return False
    return True


@pytest.mark.parametrize(
    ("format", "options", "said"),
    [
        ("xml", {}, "no format"),
        ("warc", {"table": "links"}, "warc is made of pages"),
        ("graphml", {"table": "links_glued"}, "made of links"),
        ("csv", {"table": "sqlite_master"}, "csv is made of pages or"),
        ("csv", {"add": ("body",)}, "formats jsonl, parquet"),
        ("jsonl", {"add": ("body",), "table": "links"}, "only the table pages takes it"),
        ("warc", {"add": ("language",)}, "only the table pages takes it, in the formats jsonl, csv, parquet"),
    ],
)
async def test_incompatible_options_are_refused(
    save: Exporter, tmp_path: Path, format: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        await save(format, tmp_path / "out", **options)


async def test_a_broken_store_is_not_blamed_on_the_condition(save: Exporter, filled: Path, tmp_path: Path) -> None:
    data = bytearray(filled.read_bytes())
    for start in range(8192 * 2, len(data), 8192):
        data[start : start + 8192] = b"\xff" * 8192
    filled.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        await save("csv", tmp_path / "out", where="depth = 0")
