"""The SQL files of both dialects: the schema, and the named statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from shlex import quote

from crawler.errors import Setting, StoreVersionError, UsageError
from crawler.reasons import UNSENT_KINDS
from crawler.store.keys import render_keys
from crawler.store.statements import Queries, load_statements, read_sql, render_calls

#: The version of the schema, ``PRAGMA user_version`` on SQLite and the table ``store_version`` on PostgreSQL.
SCHEMA_VERSION = 1

#: 1 for the error kind of a request that was sent, and for none; 0 for one that had no address to connect to.
_WAS_SENT = "CASE WHEN {0} IN (" + ", ".join(f"'{kind}'" for kind in sorted(UNSENT_KINDS)) + ") THEN 0 ELSE 1 END"
#: Expressions that the databases write differently, by the name that the views use. ``{0}`` stands for the arguments.
_FUNCTIONS_OF_VIEWS = {
    "sqlite": {
        "as_hex": "nullif(lower(hex({0})), '')",
        "latest": "max({0})",
        "elements": "json_each({0})",
        "was_sent": _WAS_SENT,
        "whole": "{0}",
    },
    "postgres": {
        "as_hex": "encode({0}, 'hex')",
        "latest": "greatest({0})",
        "elements": "jsonb_array_elements({0}::jsonb)",
        "was_sent": _WAS_SENT,
        "whole": "({0})::integer",
    },
}
#: As above, for statements. ``latest_now`` is the given time, or that of the clock of the database if it is later.
_FUNCTIONS_OF_STATEMENTS = {
    "sqlite": {"list_of": "SELECT value FROM json_each({0})", "latest_now": "{0}"},
    "postgres": {"list_of": "SELECT unnest(numbers({0}))", "latest_now": "greatest({0}, clock())"},
}


@cache
def schema(dialect: str) -> str:
    """The statements that make an empty store, for ``sqlite`` or ``postgres``: its tables and the common views."""
    tables, views = read_sql(f"crawler.store.{dialect}", "schema.sql"), read_sql("crawler.store.sql", "views.sql")
    return render_keys(f"{tables}\n{render_calls(views, _FUNCTIONS_OF_VIEWS[dialect])}")


@cache
def load_queries(dialect: str = "sqlite") -> Mapping[str, str]:
    """The named statements for ``sqlite`` or ``postgres``, without their comments."""
    of_both, own = (load_statements(f"crawler.store.{folder}") for folder in ("sql", dialect))
    functions = _FUNCTIONS_OF_STATEMENTS[dialect]
    return {name: render_calls(render_keys(sql), functions) for name, sql in {**of_both, **own}.items()}


def has_store(name: str, tables: Collection[str], version: int) -> bool:
    """Whether a database with these tables and views holds a store; False for an empty database.

    ``name`` names the database in messages. Raises :class:`crawler.errors.UsageError` for a database with other
    tables, and :class:`crawler.errors.StoreVersionError` for a store with another schema.
    """
    if not tables:
        return False
    if "politeness_group" not in tables:
        raise UsageError(f"{name}: a database with other tables, no crawl store; choose another ", Setting("store.db"))
    if version != SCHEMA_VERSION or "runs" not in tables:
        raise StoreVersionError(
            f"{name}: written by another version of the crawler (schema {version}, this version uses "
            f"{SCHEMA_VERSION}); use that version, or choose another ",
            Setting("store.db"),
        )
    return True


async def require_whole(read: Queries, name: str) -> None:
    """Raise :class:`crawler.errors.UsageError` for an incomplete copy or merger, which messages call ``name``."""
    sources = [quote(copy.source) for copy in await read.fetch("unfinished_copy")]
    if len(sources) == 1:
        command = f"crawler store copy {sources[0]} {quote(name)}"
        raise UsageError(f"{name}: a copy that is not finished; `{command}` continues it")
    if sources:
        command = f"crawler store merge {sources[0]} {quote(name)}"
        raise UsageError(f"{name}: a merge that is not finished; `{command}` begins it anew")
