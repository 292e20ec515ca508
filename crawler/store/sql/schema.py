"""The SQL files of both dialects: the schema, and the named statements.

A statement that the databases only spell differently stands once, in ``sql/queries.sql``; the functions below spell it.
A statement in the folder of a dialect differs by what it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from shlex import quote

from crawler.errors import Setting, StoreVersionError, UsageError
from crawler.reasons import UNSENT_KINDS
from crawler.store.keys import render_keys
from crawler.store.statements import Queries, load_statements, read_sql, render_calls

#: The version of the schema, ``PRAGMA user_version`` on SQLite and the table ``store_version`` on PostgreSQL.
SCHEMA_VERSION = 2
#: The schema of version 0.2.0, the oldest that :func:`migration` brings to :data:`SCHEMA_VERSION`.
OLDEST_SCHEMA = 2

#: 1 for the error kind of a request that was sent, and for none; 0 for one that had no address to connect to.
_WAS_SENT = "CASE WHEN {0} IN (" + ", ".join(f"'{kind}'" for kind in sorted(UNSENT_KINDS)) + ") THEN 0 ELSE 1 END"
#: Expressions that the databases write differently, by the name that the views use. ``{0}`` stands for the arguments.
_FUNCTIONS_OF_VIEWS = {
    "sqlite": {
        "as_hex": "nullif(lower(hex({0})), '')",
        "latest": "max({0})",
        "elements": "json_each({0})",
        "was_sent": _WAS_SENT,
    },
    "postgres": {
        "as_hex": "encode({0}, 'hex')",
        "latest": "greatest({0})",
        "elements": "jsonb_array_elements({0}::jsonb)",
        "was_sent": _WAS_SENT,
    },
}


def _columns(arguments: str) -> list[tuple[str, str]]:
    """The parameters in ``:id bigint, :path text`` with their types."""
    pairs = (argument.split() for argument in arguments.split(","))
    return [(name, kind) for name, kind in pairs]


def _arrays(arguments: str) -> str:
    """The rows of all columns, each of which is an array."""
    return f"unnest({', '.join(f'{name}::{kind}[]' for name, kind in _columns(arguments))})"


#: As above, for statements. Lists are JSON texts.
#:
#: - ``x in_numbers(:l)`` and ``x in_texts(:l)`` are conditions; ``list_of_texts(:l)`` and ``list_of_numbers(:l)``
#:   are subqueries, whose lists PostgreSQL reads once. A condition outside of WHERE has its list read for each row.
#: - A statement for many rows names their columns, with the types of PostgreSQL, where each column is an array:
#:   ``given(:a text, :b int)`` is a table ``t`` of them with columns ``a`` and ``b``.
#: - ``latest`` and ``earliest`` are the greatest and the least of several values.
#: - ``setting(s)`` is a value at the top of ``settings``.
#: - ``latest_now`` is the given time, or that of the clock of the database if it is later. ``lease_clock`` is the time
#:   by which leases run: that of the clock of the database, if it has one.
#: - ``was_sent(error_kind)`` is as in the views.
#: - ``earliest_now`` is as ``latest_now``, for the earlier of both.
#: - ``skipping_locked(t)`` locks the rows of ``t`` that are found, but for those that another worker has locked.
#: - ``new_values(a, b)`` takes these columns from the row that could not be inserted.
#: - ``ranges_of(:ranges)`` is a table with the first and the last text of each range in a JSON list.
#: - ``statement(name)`` is the text of a named statement.
#: - ``pace_of(g)``, ``claimed_site(s)``, ``robots_copy_of(r)``, ``robots_text_of(t)`` are the columns that make a pace,
#:   a site, and a copy of its robots.txt with a text that is small.
#: - ``page_limit(s)`` is the limit on the pages of the site ``s``: its own, or else ``:pages_per_site``. If that is
#:   0, no site gets a new page.
_FUNCTIONS_OF_STATEMENTS: Mapping[str, Mapping[str, str | Callable[[str], str]]] = {
    "sqlite": {
        "list_of_texts": "SELECT value FROM json_each({0})",
        "list_of_numbers": "SELECT value FROM json_each({0})",
        "in_numbers": "IN (SELECT value FROM json_each({0}))",
        "in_texts": "IN (SELECT value FROM json_each({0}))",
        "given": lambda given: f"(SELECT {', '.join(f'{name} AS {name[1:]}' for name, _ in _columns(given))}) AS t",
        "latest": "max({0})",
        "earliest": "min({0})",
        "setting": "json_extract(settings, '$.{0}')",
        "latest_now": "{0}",
        "earliest_now": "{0}",
        "lease_clock": "{0}",
        "skipping_locked": "",
        "locking_keys": "",
        "locking_in_order": "",
        "by_revisits": "INDEXED BY frontier_revisit",
        "ranges_of": "(SELECT value ->> 0 AS first, value ->> 1 AS last FROM json_each({0}))",
    },
    "postgres": {
        "list_of_texts": 'SELECT unnest(texts({0})) COLLATE "C"',
        "list_of_numbers": "SELECT unnest(numbers({0}))",
        "in_numbers": "= ANY(numbers({0}))",
        "in_texts": "= ANY(texts({0}))",
        "given": lambda given: f"{_arrays(given)} AS t ({', '.join(name[1:] for name, _ in _columns(given))})",
        "latest": "greatest({0})",
        "earliest": "least({0})",
        "setting": "settings::json ->> '{0}'",
        "latest_now": "greatest({0}, clock())",
        "earliest_now": "least({0}, clock())",
        "lease_clock": "clock()",
        "skipping_locked": "FOR NO KEY UPDATE OF {0} SKIP LOCKED",
        "locking_keys": "FOR KEY SHARE OF {0}",
        "locking_in_order": "ORDER BY id FOR NO KEY UPDATE",
        "by_revisits": "",
        "ranges_of": "ranges({0})",
    },
}


#: As above, for both databases.
_FUNCTIONS_OF_BOTH: Mapping[str, str | Callable[[str], str]] = {
    "was_sent": _WAS_SENT,
    "page_limit": "CASE WHEN CAST(:pages_per_site AS bigint) > 0 "
    "THEN coalesce({0}.max_pages, CAST(:pages_per_site AS bigint)) ELSE 0 END",
    "new_values": lambda names: ", ".join(f"{name} = excluded.{name}" for name in re.findall(r"\w+", names)),
    "pace_of": "{0}.next_at, {0}.pause_s, {0}.backoff_s, {0}.wait_code, {0}.waits_for, {0}.answers, {0}.usual_s, "
    "{0}.recent_s",
    "claimed_site": "{0}.id, {0}.name, {0}.robots_id, {0}.crawl_delay_s, {0}.fetched, {0}.walls, {0}.refused, "
    "{0}.front_refused, {0}.rest_count, {0}.rests_until, {0}.probe, {0}.closed_at, EXISTS (SELECT 1 FROM robots_wait "
    "WHERE site_id = {0}.id AND (seen <> '[]' OR path = '/robots.txt')) AS is_waiting",
    "robots_copy_of": "{0}.action, {0}.status, {0}.fetched_at, {0}.valid_until, {0}.etag, {0}.last_modified, "
    "{0}.failures, {0}.failing_since, {0}.retry_at, {0}.note",
    "robots_text_of": "{0}.sha256, CASE WHEN length({0}.body) <= :small THEN {0}.body END AS body",
}

_GIVEN_ALONE = re.compile(r"\sFROM given\([^()]*\)\s+(?=WHERE\b)")
_COLUMN_OF_GIVEN = re.compile(r"\bt\.(\w+)")

#: As above, for tables. ``own_number()`` is a key that the database makes, ``lasting_number()`` one that it never uses
#: again, and ``room(80)`` leaves a part of each page (80 percent) to new versions of its rows.
_FUNCTIONS_OF_TABLES = {
    "sqlite": {
        "own_number": "INTEGER PRIMARY KEY",
        "lasting_number": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "room": "",
    },
    "postgres": {
        "own_number": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "lasting_number": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "room": "WITH (fillfactor = {0})",
    },
}
#: The words of the tables' definitions in PostgreSQL. Texts compare by their bytes, as in SQLite.
_WORDS_OF_POSTGRES = {
    "INTEGER": "bigint",
    "INT": "integer",
    "REAL": "double precision",
    "TEXT": 'text COLLATE "C"',
    "BLOB": "bytea",
    "WITHOUT ROWID": "",
}
#: A part of a migration for one database.
_ONLY = re.compile(r"^-- (sqlite|postgres) only\n(.*?)^-- both\n", re.MULTILINE | re.DOTALL)
_COMMENT_OR_WORD = re.compile(rf"--[^\n]*|\b({'|'.join(_WORDS_OF_POSTGRES)})\b")


def type_in_postgres(kind: str) -> str:
    """A type of ``schema.sql`` in the words of PostgreSQL, without the order of texts."""
    return _WORDS_OF_POSTGRES.get(kind, kind).partition(" COLLATE")[0]


@cache
def schema(dialect: str) -> str:
    """The statements that make an empty store, for ``sqlite`` or ``postgres``: its tables and the common views."""
    own = render_keys(read_sql(f"crawler.store.{dialect}", "schema.sql"))
    return f"{_tables(read_sql('crawler.store.sql', 'schema.sql'), dialect)}\n{own}\n{_views(dialect)}"


def _tables(sql: str, dialect: str) -> str:
    """Definitions of tables that stand once for both databases, as ``dialect`` spells them."""
    if dialect == "postgres":
        sql = _COMMENT_OR_WORD.sub(lambda found: _WORDS_OF_POSTGRES.get(found[1], found[0]), sql)
    return render_keys(render_calls(sql, _FUNCTIONS_OF_TABLES[dialect]))


def _views(dialect: str) -> str:
    return render_keys(render_calls(read_sql("crawler.store.sql", "views.sql"), _FUNCTIONS_OF_VIEWS[dialect]))


@cache
def load_queries(dialect: str = "sqlite") -> Mapping[str, str]:
    """The named statements for ``sqlite`` or ``postgres``, without their comments."""
    of_both, own = (load_statements(f"crawler.store.{folder}") for folder in ("sql", dialect))
    statements = {**of_both, **own}
    statements = {name: render_calls(sql, {"statement": statements.__getitem__}) for name, sql in statements.items()}
    if dialect == "sqlite":
        statements = {name: _without_given(sql) for name, sql in statements.items()}
    functions = {**_FUNCTIONS_OF_BOTH, **_FUNCTIONS_OF_STATEMENTS[dialect]}
    rendered = {name: render_calls(render_keys(sql), functions) for name, sql in statements.items()}
    return rendered if dialect == "sqlite" else {name: _in_postgres(sql) for name, sql in rendered.items()}


def _in_postgres(sql: str) -> str:
    """A statement with the names that PostgreSQL has for functions of JSON."""
    return re.sub(r"\bjson_(object|array)\(", r"json_build_\1(", sql).replace("json_group_array(", "json_agg(")


def _without_given(sql: str) -> str:
    """An update from ``given`` alone, with the parameters in its place.

    SQLite would make a table of the one row first, which takes half as long as the update.
    """
    if not sql.startswith("UPDATE") or _GIVEN_ALONE.search(sql) is None:
        return sql
    return _COLUMN_OF_GIVEN.sub(r":\1", _GIVEN_ALONE.sub("\n", sql))


def migration(dialect: str, version: int) -> str:
    """The statements that bring the tables of a store from schema ``version`` to :data:`SCHEMA_VERSION`.

    ``migrations/NNNN.sql`` brings schema NNNN - 1 to NNNN. It is written as ``schema.sql`` is, one text for both
    databases. A block between ``-- sqlite only`` or ``-- postgres only`` and ``-- both`` is for one of them.

    The statements end with the views. The caller drops :func:`own_views` before, and stores the new version, in one
    transaction. A migration drops a view that there is no longer.
    """
    steps = [
        read_sql("crawler.store.sql", f"migrations/{step:04}.sql") for step in range(version + 1, SCHEMA_VERSION + 1)
    ]
    own = [_ONLY.sub(lambda block: block[2] if block[1] == dialect else "", step) for step in steps]
    return "\n".join([*(_tables(sql, dialect) for sql in own), _views(dialect)])


def own_views() -> list[str]:
    """The names of the views of the store. A database may have views of the user beside them."""
    return re.findall(r"^CREATE VIEW (\w+)", read_sql("crawler.store.sql", "views.sql"), re.MULTILINE)


def version_in(name: str, tables: Collection[str], version: int) -> int | None:
    """The version of the schema of the store in a database with these tables and views; None for an empty database.

    ``name`` names the database in messages. Raises :class:`crawler.errors.UsageError` for a database with other
    tables, and :class:`crawler.errors.StoreVersionError` for a store that this version can neither use nor migrate.
    """
    if not tables:
        return None
    if "politeness_group" not in tables:
        raise UsageError(f"{name}: a database with other tables, no crawl store; choose another ", Setting("store.db"))
    if version > SCHEMA_VERSION or "runs" not in tables:
        raise StoreVersionError(
            f"{name}: written by another version of the crawler (schema {version}, this version uses "
            f"{SCHEMA_VERSION}); use that version, or choose another ",
            Setting("store.db"),
        )
    if version < OLDEST_SCHEMA:
        raise StoreVersionError(
            f"{name}: written by a version of the crawler before 0.2.0 (schema {version}), which this version cannot "
            "read; to carry the URLs over, export the view urls with that version, and give them as seeds of another ",
            Setting("store.db"),
        )
    return version


async def require_whole(read: Queries, name: str) -> None:
    """Raise :class:`crawler.errors.UsageError` for an incomplete copy, which messages call ``name``."""
    sources = [quote(copy.source) for copy in await read.fetch("unfinished_copy")]
    if sources:
        command = f"crawler store copy {sources[0]} {quote(name)}"
        raise UsageError(f"{name}: a copy that is not finished; `{command}` continues it")
