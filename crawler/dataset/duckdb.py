"""Opens DuckDB, which joins Parquet files in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crawler.errors import StoreError, require


@contextmanager
def duckdb() -> Iterator[tuple[Any, Path]]:
    """A DuckDB in memory, and a temporary folder.

    Raises :class:`StoreError` if a statement inside cannot read or write a file.
    """
    library = require("rounds", "a dataset", "duckdb")
    with (
        TemporaryDirectory(prefix="crawler-rounds-", ignore_cleanup_errors=True) as folder,
        closing(library.connect(config={"temp_directory": folder})) as db,
    ):
        try:
            yield db, Path(folder)
        except library.IOException as error:
            raise StoreError(str(error).splitlines()[0][:300]) from error
