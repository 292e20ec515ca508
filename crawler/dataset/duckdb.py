"""Opens DuckDB, which joins Parquet files in bounded memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crawler.errors import require


@contextmanager
def duckdb() -> Iterator[tuple[Any, Path]]:
    """A DuckDB in memory, and a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="crawler-rounds-"))
    db = require("rounds", "a dataset", "duckdb").connect(config={"temp_directory": str(folder)})
    try:
        yield db, folder
    finally:
        db.close()
        shutil.rmtree(folder, ignore_errors=True)
