"""The rows of URLs in the files of earlier exports, so that a further file has only those that are new or changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crawler.parquet import arrow_value, load_arrow
from crawler.store.views import ColumnType

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
        self._files = [_rows(path, columns) for path in files]
        self._heads = [next(rows, None) for rows in self._files]

    def have(self, values: Sequence[Any]) -> bool:
        """Whether the newest row with the key of these values is equal to them. Call it once for each row, in order."""
        newest: tuple[Any, ...] | None = None
        for number, head in enumerate(self._heads):
            if head is not None and head[self._key] == values[self._key]:
                newest, self._heads[number] = head, next(self._files[number], None)
        return newest == tuple(map(arrow_value, values, self._kinds))


def _rows(path: Path, columns: Mapping[str, ColumnType]) -> Iterator[tuple[Any, ...]]:
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
