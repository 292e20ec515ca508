"""Access to the crawler's store for the tests of updates: read it, and let time pass in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any


class Stored:
    """The store at ``db``."""

    db: Path

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.db)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def later(self, seconds: float) -> None:
        """Let time pass: move every time in the store back."""
        connection = sqlite3.connect(self.db)
        with connection:
            for column in ("registered_at", "good_until", "heard_at", "silent_at"):
                connection.execute(f"UPDATE rup_server SET {column} = {column} - ? WHERE {column} > 0", (seconds,))
        connection.close()
