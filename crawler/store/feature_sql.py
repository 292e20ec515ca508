"""The SQL of a feature: named statements in the file ``queries.sql`` of the feature's own folder.

A feature reads the views of the store and nothing else. ``tests/e2e/test_views_only.py`` enforces it.

A statement begins with its name, and comments say what it returns::

    -- name: largest_sites
    -- The sites with the most pages, largest first.
    SELECT site, fetched FROM sites ORDER BY fetched DESC LIMIT :limit
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)


@cache
def load_statements(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """The statements in ``file`` of ``package`` by name, without their comments. Parameters are written ``:name``."""
    _, *parts = _NAME.split((files(package) / file).read_text("utf-8"))
    return {name: _COMMENT.sub("", sql).strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}
