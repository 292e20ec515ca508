"""Writes rows as a Parquet file. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Self

import xxhash

from crawler.errors import require
from crawler.store.views import ColumnType

# A batch becomes Arrow data early: Python objects take ten times the memory.
_ROWS_PER_BATCH = 1000
_BYTES_PER_BATCH = 1 << 23
_ROWS_PER_GROUP = 100_000
_BYTES_PER_GROUP = 1 << 25
#: A file of so few octets is not compressed: to make the compressors of its columns takes half the time of the file.
_SMALL_BYTES = 1 << 14


#: The columns with the number of a URL, by the column that has the URL itself.
URL_NUMBERS = {"url_id": "url", "source_id": "source", "target_id": "target", "cluster_id": "representative"}


@lru_cache(1 << 16)
def url_number(url: str | None) -> int | None:
    """The number of a URL that is the same in the files of all crawls: 63 bits of its XXH3. Links repeat their URLs."""
    return None if url is None else xxhash.xxh3_64_intdigest(url.encode()) >> 1


def load_arrow(extra: str = "export", what: str = "this export") -> tuple[Any, Any]:
    """``pyarrow`` and ``pyarrow.parquet``. Raises :class:`UsageError` if they are not installed."""
    return require(extra, what, "pyarrow"), require(extra, what, "pyarrow.parquet")


class ParquetFile:
    """A Parquet file with typed columns, in zstd if it is not small. A context manager; times are UTC, in microseconds.

    Row groups have 100,000 rows, or 32 MiB if they contain bodies. Raises :class:`UsageError` if pyarrow is missing.
    """

    def __init__(
        self,
        out: Path | BinaryIO,
        columns: Mapping[str, ColumnType],
        *,
        extra: str = "export",
        what: str = "this export",
    ) -> None:
        self._arrow, self._parquet = load_arrow(extra, what)
        self._kinds = list(columns.values())
        self._schema = self._arrow.schema([(name, _arrow_type(self._arrow, kind)) for name, kind in columns.items()])
        self._out = out
        self._writer: Any = None  # until the end of the first group
        self._rows: list[Sequence[Any]] = []
        self._rows_bytes = 0
        self._group: list[Any] = []
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exception: type[BaseException] | None, *rest: object) -> None:
        if exception is None:
            self._end_batch()
            self._end_group()
        if self._writer is not None:
            self._writer.close()

    def add(self, values: Sequence[Any], size: int = 0) -> None:
        """Add a row, in the order of the columns. ``size`` is that of its large values, in octets."""
        self._rows.append(values)
        self._rows_bytes += size
        self.count += 1
        if len(self._rows) >= _ROWS_PER_BATCH or self._rows_bytes >= _BYTES_PER_BATCH:
            self._end_batch()

    def _end_batch(self) -> None:
        if not self._rows:
            return
        self._add_batch(list(zip(*self._rows, strict=True)))
        self._rows, self._rows_bytes = [], 0

    def add_columns(self, columns: Sequence[Sequence[Any]]) -> None:
        """Add rows, each as the values of one place in all ``columns``. Faster than :meth:`add`."""
        self.count += len(columns[0])
        self._add_batch(columns)

    def _add_batch(self, columns: Sequence[Sequence[Any]]) -> None:
        arrays = [
            _arrow_array(self._arrow, values, field.type, kind)
            for values, field, kind in zip(columns, self._schema, self._kinds, strict=True)
        ]
        self._group.append(self._arrow.record_batch(arrays, schema=self._schema))
        rows, size = (sum(getattr(batch, of) for batch in self._group) for of in ("num_rows", "nbytes"))
        if rows >= _ROWS_PER_GROUP or size >= _BYTES_PER_GROUP:
            self._end_group()

    def _end_group(self) -> None:
        table = self._arrow.Table.from_batches(self._group, self._schema)
        if self._writer is None:
            compression = "zstd" if table.nbytes > _SMALL_BYTES else "none"
            self._writer = self._parquet.ParquetWriter(self._out, self._schema, compression=compression)
        if self._group:
            self._writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
            self._group = []


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


def _arrow_array(pa: Any, values: Sequence[Any], type: Any, kind: ColumnType) -> Any:
    if (convert := _CONVERT.get(kind)) is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, type)


def arrow_value(value: Any, kind: ColumnType) -> Any:
    """The value of a store as Arrow gets it: flags are booleans, and times are in microseconds."""
    convert = _CONVERT.get(kind)
    return value if value is None or convert is None else convert(value)


def _microseconds(epoch_s: float) -> int | None:
    """``None`` for a time that 64 bits cannot hold: a site may state any time."""
    return round(epoch_s * 1e6) if abs(epoch_s) < 2**63 / 1e6 else None


_CONVERT: dict[ColumnType, Callable[[Any], Any]] = {ColumnType.TIME: _microseconds, ColumnType.YES: bool}
