"""Reads a dataset: `status`, `why` and `export`. The views are those of a store, in DuckDB over Parquet."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from crawler.cli.layout import Fact, facts, table
from crawler.clock import brief_time
from crawler.errors import StatementError, UsageError, require
from crawler.formatting import many
from crawler.frontier.buckets import bucket_of
from crawler.inspect import why
from crawler.model import State
from crawler.reasons import ReasonCode
from crawler.rounds.dataset import GROWING, WHOLE, Dataset, part
from crawler.rounds.objects import Objects
from crawler.rounds.plan import begins_at, duckdb
from crawler.rounds.tables import SQL, columns_of
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.location import shown
from crawler.store.named_rows import row_class
from crawler.store.views import ColumnType
from crawler.url import split

if TYPE_CHECKING:
    from crawler.cli.console import PrintableConsole

_TABLES = (*WHOLE, *GROWING)
_ROWS_AT_ONCE = 5_000
_LINKERS = 5


class Views:
    """The views of the tables of a dataset in DuckDB, as of its last manifest. A context manager.

    Times are seconds and flags are 0 or 1, as in a store, so that a statement means the same.
    """

    def __init__(self, location: str) -> None:
        self.dataset = Dataset(Objects(location))
        self.manifests = self.dataset.manifests()
        self._stack = ExitStack()
        self._db: Any = None

    def __enter__(self) -> Self:
        self._db, folder = self._stack.enter_context(duckdb())
        for name in _TABLES:
            files = self.dataset.objects.local(self.dataset.parts(self.manifests, name), folder)
            self._db.execute(SQL["view"].format(name=name, rows=_view(name, files)))
        self._db.execute("SET TimeZone = 'UTC'")
        self._confine(folder)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _confine(self, folder: Path) -> None:
        """Let statements of the user read nothing but the dataset."""
        location = self.dataset.objects.location
        allowed = [f"{folder}/"] if location.startswith("s3://") else [f"{location}/", f"{folder}/"]
        self._db.execute(f"SET allowed_directories = {allowed}")
        self._db.execute("SET enable_external_access = false")
        self._db.execute("SET lock_configuration = true")

    def fetch(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a statement. Raises :class:`StatementError` if DuckDB rejects it."""
        return cast(list[tuple[Any, ...]], self._execute(sql, parameters).fetchall())

    def _execute(self, sql: str, parameters: Mapping[str, object] | None = None) -> Any:
        errors = require("rounds", "a dataset", "duckdb")
        try:
            return self._db.execute(sql, dict(parameters or {}) or None)
        except errors.Error as error:
            raise StatementError(str(error)) from ValueError(str(error).splitlines()[0])

    # --- for exports, which read them like a store --------------------------------------------

    async def begin_snapshot(self) -> None:
        """No-op: a manifest never changes."""

    async def query(self, sql: str) -> list[dict[str, Any]]:
        found = self._execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    async def rows(self, sql: str) -> AsyncGenerator[Any, None]:
        found = self._execute(sql)
        make = row_class(tuple(column[0] for column in found.description))._make
        while batch := found.fetchmany(_ROWS_AT_ONCE):
            for row in batch:
                yield make(row)


def _view(name: str, files: list[str]) -> str:
    """The statement of a view over Parquet files."""
    columns = columns_of(name)
    types = {ColumnType.TIME: "DOUBLE", ColumnType.NUMBER: "DOUBLE", ColumnType.BYTES: "BLOB"}
    types |= {ColumnType.INTEGER: "BIGINT", ColumnType.YES: "INTEGER"}
    if not files:
        empty = (f"NULL::{types.get(kind, 'VARCHAR')} AS {column}" for column, kind in columns.items())
        return SQL["no_rows"].format(columns=", ".join(empty))
    casts = {ColumnType.TIME: "epoch_us({0}) / 1e6 AS {0}", ColumnType.YES: "{0}::INTEGER AS {0}"}
    selected = ", ".join(casts.get(kind, "{0}").format(column) for column, kind in columns.items())
    listed = ", ".join(f"'{file.replace(chr(39), chr(39) * 2)}'" for file in files)
    statement = SQL["files"].format(columns=selected, files=listed)
    return SQL["once"].format(urls=statement) if name == "urls" else statement


# --- status -----------------------------------------------------------------------------------


def read_status(location: str) -> dict[str, Any]:
    """What a dataset holds, as one JSON object."""
    with Views(location) as views:
        last = views.manifests[-1] if views.manifests else None
        buckets = {} if last is None else last.buckets
        plan = views.dataset.plan(len(views.manifests) + 1)
        return {
            "dataset": shown(location),
            "buckets": views.dataset.head.buckets,
            "rounds": len(views.manifests),
            "round_under_way": None if plan is None else plan.round,
            "states": dict(views.fetch(SQL["states_of_all"])),
            "reasons": [
                {"state": state, "reason_code": code, "urls": n} for state, code, n in views.fetch(SQL["reasons"])
            ],
            **dict(zip(("pages", "links", "requests", "sites"), views.fetch(SQL["totals"])[0], strict=True)),
            "buckets_with_work": sum(state.ready_at is not None or bool(state.offers) for state in buckets.values()),
            "lost_tasks": sum(state.lost is not None for state in buckets.values()),
            "next_at": begins_at(buckets),
        }


def seed_causes(location: str) -> list[tuple[State, ReasonCode, str, int]]:
    """Why seeds led to no page, with the number of seeds."""
    with Views(location) as views:
        rows = views.fetch(SQL["seed_causes"])
    return [(State(state), ReasonCode(code), reason, n) for state, code, reason, n in rows]


def render_status(read: dict[str, Any], now: float, console: PrintableConsole) -> None:
    """Print the status for people."""
    rows: list[Fact] = [
        ("Dataset", f"{read['dataset']}: {many(read['rounds'], 'round')} over {many(read['buckets'], 'bucket')}"),
        ("URLs", ", ".join(f"{n:,} {state}" for state, n in read["states"].items())),
        ("Pages", f"{read['pages']:,}, with {many(read['links'], 'link')}"),
        ("Requests", f"{read['requests']:,} to {many(read['sites'], 'site')}"),
    ]
    if read["round_under_way"] is not None:
        rows.append(("Under way", f"round {read['round_under_way']}; what is shown here is from before it"))
    if read["next_at"] is not None:
        when = f", the first from {brief_time(read['next_at'], now)}" if read["next_at"] > now else ""
        rows.append(("Left", f"{many(read['buckets_with_work'], 'bucket')} with work{when}"))
    if read["lost_tasks"]:
        rows.append(("Lost", f"{many(read['lost_tasks'], 'task')} of the last round, done again in the next"))
    console.print(facts(rows))
    if read["reasons"]:
        reasons = [(row["state"], row["reason_code"], f"{row['urls']:,}") for row in read["reasons"]]
        console.print(table({"state": "left", "reason": "left", "URLs": "right"}, reasons))


# --- why --------------------------------------------------------------------------------------


async def explain(location: str, url: str, now: float) -> dict[str, Any]:
    """What :func:`crawler.inspect.why.explain` says of a URL by the store of its bucket; with the links of all buckets.

    The store is that of the last manifest.
    """
    with Views(location) as views, tempfile.TemporaryDirectory(prefix="crawler-rounds-") as folder:
        number = bucket_of(split(url)[0], views.dataset.head.buckets)
        state = views.manifests[-1].buckets.get(number) if views.manifests else None
        if state is None or not state.store:
            raise UsageError(f"{shown(location)}: the bucket of {url} was not crawled yet")
        path = Path(folder) / "bucket.db"
        views.dataset.objects.fetch(part("stores", state.store, number, "db"), path)
        there = replace(Settings(), store=replace(Settings().store, db=str(path)))
        async with existing_store(there) as store:
            known = await why.explain(store, url, now=now)
        linkers = views.fetch(SQL["linkers"], {"url": url, "most": _LINKERS})
        count = views.fetch(SQL["count_linkers"], {"url": url})[0][0]
        first = [{"url": source, "anchor": anchor, "rel": rel} for source, anchor, rel in linkers]
        if known["known"]:
            known["linked_from"] = {"count": count, "first": first}
        return known | {"bucket": number, "round": state.store}


# --- export -----------------------------------------------------------------------------------


def exportable(location: str, format: str, table: str | None, *, is_plain: bool) -> Views:
    """The views of a dataset for an export. ``is_plain``: it has no options but a table and a condition.

    Raises :class:`UsageError` for an export that a dataset has not.
    """
    if format not in ("jsonl", "csv", "parquet", "edges") or (table and table not in _TABLES):
        raise UsageError(
            f"{shown(location)} is a dataset: jsonl, csv, parquet and edges can be made of it, of the tables "
            f"{', '.join(_TABLES)}"
        )
    if not is_plain:
        raise UsageError(f"{shown(location)} is a dataset: exports of it take --table and --where only")
    return Views(location)
