"""Opens DuckDB, which joins Parquet files in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crawler.errors import require


@contextmanager
def duckdb() -> Iterator[tuple[Any, Path]]:
    """A DuckDB in memory, and a temporary folder."""
    connect = require("rounds", "a dataset", "duckdb").connect
    with (
        TemporaryDirectory(prefix="crawler-rounds-", ignore_cleanup_errors=True) as folder,
        closing(connect(config={"temp_directory": folder})) as db,
    ):
        yield db, Path(folder)
