"""The store of a server: one SQLite file. Committed data survives ``kill -9`` and loss of power."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import aiosqlite
from filelock import FileLock

from crawler.errors import Argument, StoreError, StoreInUse, UsageError
from crawler.private_files import make_private
from crawler.rup.protocol.report import Change, ChangeKind
from crawler.rup.protocol.server import Known, Registration
from crawler.rup.protocol.units import Span
from crawler.rup.server.tree import FileState, Scanned
from crawler.store.named_rows import named_rows
from crawler.store.sqlite.connection import lock_store
from crawler.store.statements import Queries, Statements, load_statements

_APPLICATION = 0x52555031  # "RUP1"; schema.sql sets it
_QUERIES = load_statements("crawler.rup.server")
_SCHEMA = load_statements("crawler.rup.server", "schema.sql")

#: The fields of a registration that are columns of their own.
_FIELDS = [field.name for field in fields(Registration) if field.name != "latency"]

#: The most changes in a report, and the most bytes of their paths.
BATCH_CHANGES = 5000
BATCH_OCTETS = 400_000


class QueuedMail(NamedTuple):
    """A mail in the mail queue."""

    id: int
    email: str
    sequence_number: int
    mail: bytes
    made_at: float
    tries: int


class RupStore:
    """Open one with :meth:`open`, and close it. Call methods that write inside :meth:`transaction`."""

    def __init__(self, path: Path, db: aiosqlite.Connection, lock: FileLock) -> None:
        self.path = path
        self._db = db
        self._lock = lock
        self._sql = Statements(db, _QUERIES)
        self._read = Queries(self._fetch, _QUERIES)
        self._mutex = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open or create a store.

        Raises :class:`StoreInUse` if another server uses it, :class:`UsageError` for another kind of file, and
        :class:`StoreError` for a damaged one.
        """
        path = path.resolve()
        try:
            lock = lock_store(path)
        except StoreInUse:
            raise StoreInUse(f"{path}: another `crawler rup serve` uses this store; stop it first") from None
        try:
            make_private(path)  # it has the addresses and keys of robots
            db = await aiosqlite.connect(path, isolation_level=None)
            try:
                await _prepare(path, db)
            except BaseException:
                await db.close()
                raise
        except sqlite3.Error as error:
            lock.release()
            raise StoreError(f"{path}: {error}") from error
        except BaseException:
            lock.release()
            raise
        return cls(path, db, lock)

    async def close(self) -> None:
        await self._db.close()
        self._lock.release()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """One transaction. No other one runs meanwhile, so data that was read stays valid until the commit."""
        async with self._mutex:
            try:
                await self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    await self._db.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.OperationalError):
                        await self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}: {error}; committed data is safe") from error

    async def execute(self, statement: str, **values: object) -> None:
        """Execute a statement of ``queries.sql`` that writes and returns no row."""
        await self._sql.execute(statement, **values)

    async def value(self, statement: str, **values: object) -> Any:
        """The one value of a statement of ``queries.sql`` that reads; ``None`` without a row."""
        row = await self._read.fetch_one(statement, **values)
        return None if row is None else row[0]

    # --- the tree -----------------------------------------------------------------------------

    async def known_files(self) -> dict[str, FileState]:
        rows = await self._read.fetch("known_files")
        return {row.path: FileState(row.mtime_ns, row.ctime_ns, row.size, row.sha256) for row in rows}

    async def keep_scan(self, scanned: Scanned, now: float) -> None:
        """Store the new state of the tree, and log its changes."""
        await self._sql.execute_many(
            "put_file", ({"path": path, **state._asdict()} for path, state in scanned.states.items())
        )
        await self._sql.execute_many("delete_file", ({"path": path} for path in scanned.gone))
        await self._sql.execute_many(
            "log_change",
            (
                {"found_at": now, "kind": change.kind.value, "at": change.at, "path": change.path}
                for change in scanned.changes
            ),
        )
        await self._sql.execute("finish_scan", now=now)

    # --- the log ------------------------------------------------------------------------------

    async def log_end(self) -> int:
        """The number of the newest change ever logged."""
        return int(await self.value("log_end") or 0)

    async def changes_after(self, number: int) -> tuple[int, list[Change]]:
        """The changes after ``number``, as many as fit into a report, and the number of the last of them."""
        changes: list[Change] = []
        octets = 0
        for row in await self._read.fetch("changes_after", number=number, limit=BATCH_CHANGES):
            octets += len(row.path)
            if changes and octets > BATCH_OCTETS:
                break
            number = row.id
            changes.append(Change(ChangeKind(row.kind), row.at, row.path))
        return number, changes

    async def changes_since(self, found_at: float, most: int) -> list[Change]:
        """The first ``most`` changes found since a time."""
        rows = await self._read.fetch("changes_since", found_at=found_at, limit=most)
        return await asyncio.to_thread(lambda: [Change(ChangeKind(row.kind), row.at, row.path) for row in rows])

    # --- registrations ------------------------------------------------------------------------

    async def registration(self, email: str) -> Registration | None:
        """The registration of an address, also one that has ended."""
        row = await self._read.fetch_one("registration", email=email)
        return None if row is None else _registration(row)

    async def registration_of_token(self, token: str) -> Registration | None:
        row = await self._read.fetch_one("registration_of_token", token=token)
        return None if row is None else _registration(row)

    async def registrations(self) -> list[Registration]:
        """The registrations that have not ended."""
        return [_registration(row) for row in await self._read.fetch("registrations")]

    async def known(self, email: str, new_email: str | None, client: str) -> Known:
        """The knowledge of the store about a request that names ``email``, from the network address ``client``."""
        count = await self._read.fetch_one("count_registrations", client=client)
        return Known(
            registration=await self.registration(email),
            other=None if new_email is None else await self.registration(new_email),
            registrations=count.n,
            registrations_of_client=count.of_client,
            log_end=await self.log_end(),
            unsent=await self.value("unsent", email=email),
        )

    async def put(self, registration: Registration) -> None:
        """Store a registration. Reports under another key to the same address leave the mail queue."""
        kept = {name: getattr(registration, name) for name in _FIELDS}
        patterns = {name: " ".join(kept[name]) for name in ("exclude", "include_only")}
        count, unit = registration.latency.count, registration.latency.unit
        await self._sql.execute("delete_mails_under_another_key", email=registration.email, key=registration.key)
        await self._sql.execute("put_registration", **kept | patterns, latency_count=count, latency_unit=unit)

    # --- the mail queue -----------------------------------------------------------------------

    async def due_mails(self, now: float, most: int) -> list[QueuedMail]:
        """Due mails, oldest first.

        A mail is left out while an earlier mail to the same address waits.
        """
        return [QueuedMail(**row._asdict()) for row in await self._read.fetch("due_mails", now=now, limit=most)]

    async def sent(self, mail: QueuedMail, now: float) -> None:
        """The mail server has accepted the mail: delete it."""
        await self._sql.execute("note_accepted", id=mail.id, email=mail.email, now=now)
        await self._sql.execute("delete_mail", id=mail.id)

    async def drop(self, mail: QueuedMail) -> int:
        """Delete a refused mail; return the number of consecutive refusals of the address."""
        await self._sql.execute("delete_mail", id=mail.id)
        row = await self._sql.fetch_one("count_refusal", email=mail.email)
        return 0 if row is None else int(row.refusals)

    async def _fetch(self, sql: str, parameters: Any) -> list[Any]:
        try:
            return list(await self._db.execute_fetchall(sql, parameters))
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error


def _registration(row: Any) -> Registration:
    kept = {name: getattr(row, name) for name in _FIELDS}
    patterns = {name: tuple(kept[name].split()) for name in ("exclude", "include_only")}
    latency, confirmed = Span(row.latency_count, row.latency_unit), bool(row.confirmed)
    return Registration(**kept | patterns | {"latency": latency, "confirmed": confirmed})


async def _prepare(path: Path, db: aiosqlite.Connection) -> None:
    db.row_factory = cast(Any, named_rows())  # aiosqlite declares a type, SQLite calls any callable
    file = await Statements(db, _QUERIES).fetch_one("application")
    if file.application_id != _APPLICATION and file.objects:
        mistake = f"{path}: a SQLite file, but not a store of `crawler rup serve`; choose another "
        raise UsageError(mistake, Argument("db"))
    await db.executescript(_SCHEMA["settings"])
    if not file.objects:
        await db.executescript(_SCHEMA["tables"])
