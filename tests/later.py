"""Let time pass for an SQLite store: move what it remembers into the past."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

#: Every number of seconds above this is a time, and no length of time: about the year 2001, or 31 years.
_TIMES_FROM_S = 1e9


def later(db: Path, seconds: float) -> None:
    """Move every time in the store back. No run may be under way: it has times in memory, too."""
    with closing(sqlite3.connect(db)) as store, store:
        tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        columns = [(table, *column) for (table,) in tables for column in store.execute(f"PRAGMA table_info({table})")]
        for table, _, name, kind, *_ in columns:
            if kind == "REAL":
                store.execute(f"UPDATE {table} SET {name} = {name} - ? WHERE {name} > ?", (seconds, _TIMES_FROM_S))
