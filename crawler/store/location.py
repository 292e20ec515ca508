"""What ``--db`` names: a SQLite file by its path, or a PostgreSQL database by its URL."""

from __future__ import annotations

import re
from pathlib import Path

from crawler.errors import UsageError


def is_url(db: str) -> bool:
    """Whether it is a database's URL, and not a file's path."""
    return "://" in db


def shown(db: str) -> str:
    """``db`` as it may be printed, logged and kept: without a password."""
    if not is_url(db):
        return db
    scheme, _, rest = db.partition("://")
    place, mark, query = rest.partition("?")
    authority, slash, path = place.partition("/")
    user, at, host = authority.rpartition("@")
    kept = "&".join(item for item in query.split("&") if not item.startswith("password="))
    return f"{scheme}://{user.partition(':')[0]}{at}{host}{slash}{path}{mark if kept else ''}{kept}"


def store_name(db: str) -> str:
    """What a report calls a store: a file without its folders."""
    return shown(db) if is_url(db) else Path(db).name


def require_postgres(url: str) -> None:
    """Raise :class:`UsageError` for a URL that names no PostgreSQL database."""
    if not re.match(r"postgres(ql)?://", url):
        raise UsageError(f"--db {shown(url)}: give the path of a SQLite file, or postgresql://user@host/name")
