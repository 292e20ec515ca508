"""What ``--db`` names: a SQLite file by its path, or a PostgreSQL database by its URL."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from crawler.errors import UsageError


def is_url(db: str) -> bool:
    """Whether it is a database's URL, and not a file's path."""
    return "://" in db


def shown(db: str) -> str:
    """``db`` as it may be printed, logged and kept: without a password."""
    if not is_url(db):
        return db
    parts = urlsplit(db)
    user, at, host = parts.netloc.rpartition("@")
    query = urlencode([(key, value) for key, value in parse_qsl(parts.query) if key != "password"], safe="/")
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + host, query=query))


def require_postgres(url: str) -> None:
    """Raise :class:`UsageError` for a URL that names no PostgreSQL database."""
    if not re.match(r"postgres(ql)?://", url):
        raise UsageError(f"--db {shown(url)}: give the path of a SQLite file, or postgresql://user@host/name")
