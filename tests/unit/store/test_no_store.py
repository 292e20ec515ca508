"""Files that are no store."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.errors import NoStore, Setting
from crawler.store.sqlite.store import SqliteStore


async def test_an_empty_file_is_no_store_to_read_and_stays_empty(db_path: Path) -> None:
    db_path.touch()
    with pytest.raises(NoStore) as refused:
        await SqliteStore.open(db_path, read_only=True)
    assert refused.value.args == (f"{db_path}: an empty file, no crawl store; choose another ", Setting("store.db"))
    assert db_path.read_bytes() == b""
