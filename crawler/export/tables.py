"""A view as a table: JSON Lines, CSV, Parquet."""

from __future__ import annotations

import base64
import csv
import json
import math
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, BinaryIO

from crawler.export.job import Job
from crawler.export.optional_libraries import load
from crawler.export.view_columns import VIEWS, ColumnType

# What a spreadsheet takes for a formula (OWASP, "CSV Injection"). Apostrophes before it are told from ours by one more.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
# Where a page's directives are had from, by view.
_ASKS = {
    "pages": "directives",
    "page_versions": "(SELECT p.directives FROM pages p WHERE p.url_id = kept.url_id)",
}
_ROWS_PER_BATCH = 1000
_BYTES_PER_BATCH = 1 << 23
_ROWS_PER_GROUP = 100_000
_BYTES_PER_GROUP = 1 << 25


async def write_jsonl(job: Job) -> None:
    """One JSON object a line, in UTF-8. Times stay seconds; a body is text, or base64 where text would lose bytes."""
    file, columns = job.open(), VIEWS[job.view]
    async for row in _rows(job):
        record: dict[str, Any] = {}
        for (name, kind), value in zip(columns.items(), row[:-1], strict=True):
            if kind is ColumnType.BYTES:
                record |= _text_or_base64(name, value, "utf-8")
            else:
                record[name] = _AS_JSON[kind](value) if value is not None and kind in _AS_JSON else value
        if job.bodies:
            record |= _text_or_base64("body", await _body(job, row), record["charset"] or "utf-8")
        file.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n")


async def write_csv(job: Job) -> None:
    """RFC 4180, UTF-8, with a header. A text that a spreadsheet would run as a formula gets an apostrophe before it."""
    rows = csv.writer(_Utf8(job.open()))
    rows.writerow(VIEWS[job.view])
    async for row in _rows(job):
        rows.writerow([_cell(value) for value in row[:-1]])


async def write_parquet(job: Job) -> None:
    """Typed columns, zstd; row groups of 100,000 rows, or of 32 MiB where bodies are in them. Times are UTC, in µs."""
    pa, pq = load("pyarrow"), load("pyarrow.parquet")
    columns = VIEWS[job.view] | ({"body": ColumnType.BYTES} if job.bodies else {})
    schema = pa.schema([(name, _arrow_type(pa, kind)) for name, kind in columns.items()])
    with pq.ParquetWriter(job.open(), schema, compression="zstd") as writer:
        async for group in _groups(job, pa, schema, list(columns.values())):
            writer.write_table(pa.Table.from_batches(group, schema), row_group_size=_ROWS_PER_GROUP)


def _rows(job: Job) -> AsyncIterator[tuple[Any, ...]]:
    """The rows of the view; behind its columns stands what their page asks."""
    asks = _ASKS.get(job.view, "NULL")
    return job.rows(f"SELECT {', '.join(VIEWS[job.view])}, {asks} FROM {job.kept} AS kept", job.is_shown)


async def _body(job: Job, page: tuple[Any, ...]) -> bytes | None:
    return await job.store.body(page[0]) if job.is_copied(page) else None


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


_AS_JSON: dict[ColumnType, Callable[[Any], Any]] = {
    ColumnType.YES: bool,
    ColumnType.TIME: _finite,
    ColumnType.NUMBER: _finite,
    ColumnType.JSON: json.loads,
}


def _text_or_base64(name: str, data: bytes | None, charset: str) -> dict[str, str | None]:
    """Text only if the same bytes can be had from it again; under another name elsewhere."""
    if data is None:
        return {name: None}
    try:
        text = data.decode(charset)
        if text.encode(charset) == data:
            text.encode()  # what UTF-8 has no form for is no text either
            return {name: text}
    except (LookupError, UnicodeError):
        pass
    return {f"{name}_base64": base64.b64encode(data).decode()}


class _Utf8:
    """A file that takes text. (Python's own would close what is under it when it goes.)"""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        self._file.write(text.encode())


def _cell(value: Any) -> Any:
    """Numbers stay numbers. ``'=1`` is written for ``=1``, and ``''=1`` for ``'=1``, so that nothing is lost."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return value


def _arrow_type(pa: Any, kind: ColumnType) -> Any:
    return {
        ColumnType.TEXT: pa.string(),
        ColumnType.INTEGER: pa.int64(),
        ColumnType.NUMBER: pa.float64(),
        ColumnType.TIME: pa.timestamp("us", tz="UTC"),
        ColumnType.YES: pa.bool_(),
        ColumnType.JSON: pa.string(),
        ColumnType.BYTES: pa.binary(),
    }[kind]


def _microseconds(epoch_s: float) -> int | None:
    """``None`` for what 64 bits cannot hold: a site may name any time."""
    return round(epoch_s * 1e6) if abs(epoch_s) < 2**63 / 1e6 else None


async def _groups(job: Job, pa: Any, schema: Any, kinds: list[ColumnType]) -> AsyncIterator[list[Any]]:
    """Batches enough for a row group. Rows become Arrow's after a thousand: as Python's they take ten times as much."""
    group: list[Any] = []
    rows = size = 0
    async for batch in _batches(job, len(kinds)):
        group.append(
            pa.record_batch([_column(pa, *of) for of in zip(batch, schema, kinds, strict=True)], schema=schema)
        )
        rows, size = rows + group[-1].num_rows, size + group[-1].nbytes
        if rows >= _ROWS_PER_GROUP or size >= _BYTES_PER_GROUP:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


async def _batches(job: Job, width: int) -> AsyncIterator[list[list[Any]]]:
    """The rows, a bounded number and size at a time, by columns."""
    batch: list[list[Any]] = [[] for _ in range(width)]
    size = 0
    async for row in _rows(job):
        values = list(row[:-1])
        if job.bodies:
            values.append(await _body(job, row))
            size += len(values[-1] or b"")
        for column, value in zip(batch, values, strict=True):
            column.append(value)
        if len(batch[0]) >= _ROWS_PER_BATCH or size >= _BYTES_PER_BATCH:
            yield batch
            batch, size = [[] for _ in range(width)], 0
    if batch[0]:
        yield batch


def _column(pa: Any, values: list[Any], field: Any, kind: ColumnType) -> Any:
    if kind is ColumnType.TIME:
        values = [None if value is None else _microseconds(value) for value in values]
    elif kind is ColumnType.YES:
        values = [None if value is None else bool(value) for value in values]
    return pa.array(values, field.type)
