"""The crawler's store, as the tests of updates look at it and let time pass in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any


class Stored:
    """Whoever has a store at ``db``."""

    db: Path

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.db)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def later(self, seconds: float) -> None:
        """Let time pass: for the store, all of it happened so much earlier."""
        connection = sqlite3.connect(self.db)
        with connection:
            for column in ("registered_at", "good_until", "heard_at", "silent_at"):
                connection.execute(f"UPDATE rup_server SET {column} = {column} - ? WHERE {column} > 0", (seconds,))
        connection.close()
