"""Copying a store into another one, of the same kind or the other: table by table in the order of the keys.

What was copied is committed bit by bit, so a copy that was cut off goes on after the last row of each table. A complete
copy of the same store is brought up to date: the rows of the tables that only grow are kept, and the other tables are
copied anew. At the end both stores are read whole, and compared by a checksum of every table. The search index and the
texts that it was made from are not copied: ``crawler index`` makes them anew. Bodies outside the database stay at their
location, and both stores name it from then on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_64

from crawler.errors import StoreError, UsageError
from crawler.store.sql.tables import tables

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: Tables that are not copied: the record of the copy, what the target makes anew, and what belongs to workers.
NOT_COPIED = frozenset(
    {"store_copy", "main_text", "body_location", "object_to_delete", "heartbeat", "unread_answer", "robots_wait"}
)
#: Every other table with its key. One without a key has a row or two.
TABLES = {name: table.key for name, table in tables("sqlite").items() if name not in NOT_COPIED}
#: Tables whose rows never change, and that get rows with higher keys only.
_GROWING = frozenset({"robots_text", "body", "request"})
#: The rows that are copied of a table, if not all.
_COPIED = {"computation": "name <> 'index'"}
#: Tables that are made from the others in the target.
_DERIVED = ("main_text",)
_ROWS, _BYTES = 5_000, 16 << 20  # in one transaction, at most

#: Called with the table, the number of its rows that are done, and the step in progress.
OnProgress = Callable[[str, int, str], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """A table that both stores have alike. ``new`` rows were copied this time; ``checksum`` is of all, in hex."""

    table: str
    rows: int
    new: int
    checksum: str


async def copy_store(
    source: Store, target: Store, now: float, on_progress: OnProgress = lambda table, rows, what: None
) -> list[Copied]:
    """Copy ``source`` into ``target``. Returns the counts of the copy.

    ``source`` must be opened for reading, and for this call alone. Raises :class:`UsageError` if the target holds
    something else, and :class:`StoreError` if the two differ in the end. Then the source was changed between two parts
    of a copy.
    """
    async with target.beginning():  # no crawl begins there at the same time
        await _require_target(source, target)
    if source.bodies.location is not None:
        await target.bodies.keep_in(source.bodies.location)
    await source.begin_snapshot()
    copied = []
    new = {table: await _copy(source, target, table, on_progress) for table in TABLES}
    for table in TABLES:
        ours, theirs = [await _checksum(store, table, on_progress) for store in (source, target)]
        if ours != theirs:
            raise StoreError(
                f"{target.name}: the table {table} differs from that of {source.name} ({theirs[0]:,} rows, not "
                f"{ours[0]:,}, or others): {source.name} was changed between two parts of the copy; copy it anew, "
                "into an empty store"
            )
        copied.append(Copied(table, ours[0], new[table], ours[1]))
    await target.finish_copy(now)
    return copied


async def _require_target(source: Store, target: Store) -> None:
    copies = await target.query("SELECT source, done_at FROM store_copy ORDER BY source")
    if not copies and await target.query("SELECT 1 FROM run LIMIT 1"):
        raise UsageError(f"{target.name}: a store with a crawl of its own; copy into an empty one")
    if copies and [row["source"] for row in copies] != [source.name]:
        begun = " and ".join(row["source"] for row in copies)
        raise UsageError(f"{target.name}: a part of {begun}; go on with that, or copy into an empty store")
    if not copies:
        await target.begin_copy(source.name)
    elif copies[0]["done_at"] is not None:
        await _begin_update(source, target)


async def _begin_update(source: Store, target: Store) -> None:
    """Turn a complete copy into an unfinished one that has the rows of the tables that only grow.

    Raises :class:`UsageError` if the target has runs of its own: they would be lost.
    """
    runs = "SELECT id, started_at FROM run"
    known = {tuple(run.values()) for run in await source.query(runs)}
    if any(tuple(run.values()) not in known for run in await target.query(runs)):
        raise UsageError(f"{target.name}: this copy has runs of its own since; copy into an empty store")
    await target.reopen_copy()
    await target.empty([*_DERIVED, *(table for table in TABLES if table not in _GROWING)])


async def _copy(source: Store, target: Store, table: str, on_progress: OnProgress) -> int:
    """Copy the rows of a table that come after those that are there; returns how many."""
    key = ", ".join(TABLES[table])
    columns = tuple(tables("sqlite")[table].types)
    last: tuple[Any, ...] = ()
    if key:
        rows = await target.query(f"SELECT {key} FROM {table} ORDER BY {_downwards(table)} LIMIT 1")
        last = tuple(rows[0].values()) if rows else ()
    elif await target.query(f"SELECT 1 FROM {table} LIMIT 1"):
        return 0
    after = f"({key}) > ({', '.join('?' * len(last))})" if last else "TRUE"
    order = f" ORDER BY {key}" if key else ""
    count = 0
    async for batch in _batches(
        source.rows(
            f"SELECT {', '.join(columns)} FROM {table} WHERE {after} AND {_COPIED.get(table, 'TRUE')}{order}", last
        )
    ):
        await target.insert_rows(table, columns, batch)
        count += len(batch)
        on_progress(table, count, "copied")
    return count


def _downwards(table: str) -> str:
    return ", ".join(f"{column} DESC" for column in TABLES[table])


async def _batches(rows: AsyncIterator[tuple[Any, ...]]) -> AsyncIterator[list[tuple[Any, ...]]]:
    batch, size = list[tuple[Any, ...]](), 0
    async for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes | str))
        if len(batch) >= _ROWS or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


async def _checksum(store: Store, table: str, on_progress: OnProgress) -> tuple[int, str]:
    """How many rows a table has, and a hash of them all, the same for both kinds of store."""
    columns = sorted(tables("sqlite")[table].types)
    order = f" ORDER BY {', '.join(TABLES[table])}" if TABLES[table] else ""
    digest, count = xxh3_64(), 0
    where = _COPIED.get(table, "TRUE")
    async for row in store.rows(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}{order}"):
        digest.update(repr([_plain(value) for value in row]).encode("utf-8", "surrogatepass"))
        count += 1
        if count % _ROWS == 0:
            on_progress(table, count, "compared")
    return count, digest.hexdigest()


def _plain(value: Any) -> Any:
    """``value`` as both kinds of store return it: whole numbers as integers, U+FFFD in place of a NUL."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
