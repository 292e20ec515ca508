"""A view as a table: JSON Lines, CSV, Parquet."""

from __future__ import annotations

import base64
import csv
import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from crawler.clock import exact_time
from crawler.export.job import SQL, Addition, Job
from crawler.export.languages import CLASSIFIED_CHARS, LanguageDetector
from crawler.parquet import URL_NUMBERS, ParquetFile, arrow_value, load_arrow, url_number
from crawler.store.views import VIEWS, ColumnType

_ROWS_AT_ONCE = 10_000


class EarlierRows:
    """Compares rows with those in the Parquet files before the file ``out`` in its folder. The later file counts.

    All files have their rows in the order of the store, as the rows that are compared. So each file is read once, from
    its beginning to its end, and one row of each is in memory with the next ones. A row that is in another place than
    expected counts as new.
    """

    def __init__(self, out: Path, columns: Mapping[str, ColumnType], key: str) -> None:
        self._kinds = list(columns.values())
        self._key = list(columns).index(key)
        files = sorted(path for path in out.parent.glob("run=*.parquet") if path.name < out.name)
        self._files = [_rows_in(path, columns) for path in files]
        self._heads = [next(rows, None) for rows in self._files]

    def have(self, values: Sequence[Any]) -> bool:
        """Whether the newest row with the key of these values is equal to them. Call it once for each row, in order."""
        newest: tuple[Any, ...] | None = None
        for number, head in enumerate(self._heads):
            if head is not None and head[self._key] == values[self._key]:
                newest, self._heads[number] = head, next(self._files[number], None)
        return newest == tuple(map(arrow_value, values, self._kinds))


def _rows_in(path: Path, columns: Mapping[str, ColumnType]) -> Iterator[tuple[Any, ...]]:
    """The rows of a file; none if it has other columns. Times are in microseconds."""
    pa, parquet = load_arrow()
    file = parquet.ParquetFile(path)
    if file.schema_arrow.names != list(columns):
        return
    for batch in file.iter_batches(_ROWS_AT_ONCE):
        found = zip(batch.columns, columns.values(), strict=True)
        yield from zip(
            *((column.cast(pa.int64()) if kind is ColumnType.TIME else column).to_pylist() for column, kind in found),
            strict=True,
        )


#: The expression that gives the directives of the page of a row, by view: ``unavailable_after`` hides the row.
PAGE_DIRECTIVES = {
    "pages": "directives",
    "page_versions": SQL["directives_of_page"],
    "resources": SQL["directives_of_page"],
}
# With or without apostrophes before it. Full-width signs are read as the plain ones.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


async def write_jsonl(job: Job) -> None:
    """One JSON object a line, in UTF-8. Times are seconds; a body is text, or base64 if text would lose bytes.

    The lines are the rows of the view, or the chunks of the main texts of pages.
    """
    if job.options.chunk is not None:
        await _write_chunks(job, job.options.chunk)
        return
    file, columns = job.open(), _columns(job)
    async for values in _values(job):
        record: dict[str, Any] = {}
        for (name, kind), value in zip(columns.items(), values, strict=True):
            if Addition.BODY in job.options.add and name == "body":
                record |= _text_or_base64("body", value, record["charset"] or "utf-8")
                continue
            if kind is ColumnType.BYTES:
                record |= _text_or_base64(name, value, "utf-8")
            else:
                record[name] = _AS_JSON[kind](value) if value is not None and kind in _AS_JSON else value
        file.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n")


async def _write_chunks(job: Job, most_chars: int) -> None:
    from crawler.export.main_text import chunks, with_links

    file = job.open()
    async for row in job.rows(job.sql("texts"), job.not_copied):
        content = await job.content_of(row)
        if content is None or not content.markdown:
            job.unwrite()
            if content is not None:
                job.tally.unread["no text"] += 1
            continue
        for number, chunk in enumerate(chunks(with_links(content, row.url), most_chars)):
            job.tally.chunks += 1
            record = {
                "url": row.url,
                "title": row.title,
                "chunk": number,
                "headings": chunk.headings,
                "text": chunk.text,
                "fetched_at": row.fetched_at,
                "preferences": json.loads(row.preferences or "[]"),
                "robots_preferences": json.loads(row.robots_preferences or "[]"),
            }
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode(errors="replace") + b"\n")


async def write_csv(job: Job) -> None:
    """RFC 4180, UTF-8, with a header; times in ISO 8601. Text that a spreadsheet would execute gets an apostrophe."""
    rows, columns = csv.writer(_Utf8(job.open())), _columns(job)
    rows.writerow(columns)
    async for values in _values(job):
        rows.writerow(map(cell, values, columns.values()))


async def write_parquet(job: Job) -> None:
    """Typed columns, zstd; row groups of 100,000 rows, or of 32 MiB if they contain bodies. Times are UTC, in µs.

    In a file of what is new since a run, the numbers of URLs are those of :func:`url_number`. The states and depths of
    URLs have no times, so the rows of ``urls`` are compared with those that the folder has.
    """
    columns, out = _columns(job), job.out
    numbers, earlier = list[tuple[int, int | None]](), None
    if job.options.since is not None:
        places = {name: place for place, name in enumerate(columns)}
        numbers = [(places[name], places.get(of)) for name, of in URL_NUMBERS.items() if name in places]
        earlier = EarlierRows(out, columns, "url") if job.view == "urls" and isinstance(out, Path) else None
    with ParquetFile(job.open(), columns) as file:
        async for values in _values(job):
            for place, of in numbers:
                values[place] = None if of is None else url_number(values[of])
            if earlier is not None and earlier.have(values):
                job.unwrite()
                continue
            file.add(values, len(values[-1] or b"") if Addition.BODY in job.options.add else 0)


def _columns(job: Job) -> dict[str, ColumnType]:
    """The columns of the table: those of the view, and those that the export adds."""
    columns = {name: column.type for name, column in VIEWS[job.view].items()}
    for addition, added in _ADDED.items():
        columns |= added if addition in job.options.add else {}
    return columns


#: The columns that the export adds, in the order of :func:`_values`.
_ADDED: Mapping[Addition, dict[str, ColumnType]] = {
    Addition.LANGUAGE: {"detected_language": ColumnType.TEXT, "detection_confidence": ColumnType.NUMBER},
    Addition.TEXT: {"main_text": ColumnType.TEXT},
    Addition.BODY: {"body": ColumnType.BYTES},
}


async def _values(job: Job) -> AsyncIterator[list[Any]]:
    """The values of each row, in the order of :func:`_columns`."""
    add = job.options.add
    detector = LanguageDetector() if Addition.LANGUAGE in add else None
    async for row in _rows(job):
        values = list(row[:-1])
        if detector is not None:
            text = None if row.body_sha256 is None else await job.beginning_of(row, CLASSIFIED_CHARS)
            values += (None, None) if text is None else detector.detect(text)
        if Addition.TEXT in add:
            is_copied = row.body_sha256 is not None and job.not_copied(row) is None
            content = await job.content_of(row) if is_copied else None
            values.append(None if content is None else content.plain)
        if Addition.BODY in add:
            values.append(await _body(job, row))
        yield values


def _rows(job: Job) -> AsyncIterator[Any]:
    """The rows of the view. Behind its columns, ``page_directives`` has the directives of the row's page."""
    columns, directives = ", ".join(VIEWS[job.view]), PAGE_DIRECTIVES.get(job.view, "NULL")
    return job.rows(job.sql("rows", columns=columns, directives=directives), job.not_shown)


async def _body(job: Job, page: Any) -> bytes | None:
    return await job.store.bodies.of_page(page.url) if job.not_copied(page) is None else None


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
    """The data as text if that restores the same bytes, else as base64 under another name."""
    if data is None:
        return {name: None}
    try:
        text = data.decode(charset)
        if text.encode(charset) == data:
            text.encode()  # text that UTF-8 cannot encode is rejected too
            return {name: text}
    except (LookupError, UnicodeError):
        pass
    return {f"{name}_base64": base64.b64encode(data).decode()}


class _Utf8:
    """A text file over a binary one.

    ``io.TextIOWrapper`` would close the binary file when it is deleted.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        self._file.write(text.encode())


def protected(text: str) -> str:
    """``text`` as a cell that no spreadsheet reads as a formula (OWASP, "CSV Injection").

    ``=1`` becomes ``'=1``, and ``'=1`` becomes ``''=1``. :func:`unprotected` undoes it.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unprotected(cell: str) -> str:
    """The text of which :func:`protected` made ``cell``."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def cell(value: Any, kind: ColumnType) -> Any:
    """A cell of CSV.

    A time is written in ISO 8601, and left out if it has no date (a site may state any time). Other numbers stay
    numbers. A text that a spreadsheet would execute is :func:`protected`.
    """
    if kind is ColumnType.TIME and value is not None:
        return exact_time(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return protected(value) if isinstance(value, str) else value
