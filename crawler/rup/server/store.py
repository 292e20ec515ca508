"""The store of a server: one SQLite file. Committed data survives ``kill -9`` and loss of power."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Self

import aiosqlite
from filelock import FileLock, Timeout

from crawler.errors import StoreError, StoreInUse, UsageError
from crawler.rup.protocol.report import Change, ChangeKind
from crawler.rup.protocol.server import Known, MailHistory, Registration
from crawler.rup.protocol.units import Span
from crawler.rup.server.tree import FileState, Scanned

_APPLICATION = 0x52555031  # "RUP1"
_PRAGMAS = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000;"
_SCHEMA = (files("crawler.rup.server") / "schema.sql").read_text()

#: The most changes in a report, and the most bytes of their paths.
BATCH_CHANGES = 5000
BATCH_OCTETS = 400_000

_COLUMNS = (
    "email, key, latency_count, latency_unit, registered_at, client, agent, exclude, include_only, confirmed, "
    "sequence_number, reported_to, reported_at, token, taken_at"
)
_EXCLUDED = ", ".join(f"excluded.{column}" for column in _COLUMNS.split(", "))


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
        self._mutex = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open or create a store.

        Raises :class:`StoreInUse` if another server uses it, :class:`UsageError` for another kind of file, and
        :class:`StoreError` for a damaged one.
        """
        path = path.resolve()
        lock = _lock(path)
        try:
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

    # --- the tree -----------------------------------------------------------------------------

    async def known_files(self) -> dict[str, FileState]:
        rows = await self._rows("SELECT path, mtime_ns, ctime_ns, size, sha256 FROM file")
        return {path: FileState(*state) for path, *state in rows}

    async def scanned_at(self) -> float | None:
        rows = await self._rows("SELECT at FROM scan")
        return rows[0][0] if rows else None

    async def keep_scan(self, scanned: Scanned, now: float) -> None:
        """Store the new state of the tree, and log its changes."""
        states = ((path, *state) for path, state in scanned.states.items())
        await self._db.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?)", states)
        await self._db.executemany("DELETE FROM file WHERE path = ?", ((path,) for path in scanned.gone))
        changes = ((now, change.kind.value, change.at, change.path) for change in scanned.changes)
        await self._db.executemany("INSERT INTO change (found_at, kind, at, path) VALUES (?, ?, ?, ?)", changes)
        await self._db.execute("INSERT OR REPLACE INTO scan VALUES (1, ?)", (now,))

    # --- the log ------------------------------------------------------------------------------

    async def log_end(self) -> int:
        """The number of the newest change ever logged."""
        rows = await self._rows("SELECT seq FROM sqlite_sequence WHERE name = 'change'")
        return rows[0][0] if rows else 0

    async def changes_after(self, number: int) -> tuple[int, list[Change]]:
        """The changes after ``number``, as many as fit into a report, and the number of the last of them."""
        changes: list[Change] = []
        octets = 0
        rows = await self._rows("SELECT id, kind, at, path FROM change WHERE id > ? ORDER BY id LIMIT ?", number,
                                BATCH_CHANGES)  # fmt: skip
        for change_id, kind, at, path in rows:
            octets += len(path)
            if changes and octets > BATCH_OCTETS:
                break
            number = change_id
            changes.append(Change(ChangeKind(kind), at, path))
        return number, changes

    async def count_since(self, found_at: float, most: int) -> int:
        """The number of changes found since a time; it counts at most ``most + 1``."""
        [[count]] = await self._rows(
            "SELECT count(*) FROM (SELECT 1 FROM change WHERE found_at >= ? LIMIT ?)", found_at, most + 1
        )
        return int(count)

    async def changes_since(self, found_at: float, most: int) -> list[Change]:
        """The first ``most`` changes found since a time."""
        rows = await self._rows(
            "SELECT kind, at, path FROM change WHERE found_at >= ? ORDER BY id LIMIT ?", found_at, most
        )
        return await asyncio.to_thread(lambda: [Change(ChangeKind(kind), at, path) for kind, at, path in rows])

    async def forget_changes(self, before: float) -> None:
        """Delete changes found before a time, except for those that a future report needs."""
        await self._db.execute(
            "DELETE FROM change WHERE found_at < ? AND id <= coalesce((SELECT min(reported_to) FROM registration"
            " WHERE confirmed OR reported_at IS NULL), (SELECT max(id) FROM change))",
            (before,),
        )

    async def forget_mailed(self, before: float) -> None:
        """Delete the mail history of addresses whose last report was made before a time."""
        await self._db.execute("DELETE FROM mailed WHERE reported_at < ?", (before,))

    # --- registrations ------------------------------------------------------------------------

    async def registration(self, email: str) -> Registration | None:
        rows = await self._rows(f"SELECT {_COLUMNS} FROM registration WHERE email = ?", email)
        return _registration(rows[0]) if rows else None

    async def registration_of_token(self, token: str) -> Registration | None:
        rows = await self._rows(f"SELECT {_COLUMNS} FROM registration WHERE token = ? AND token <> ''", token)
        return _registration(rows[0]) if rows else None

    async def registrations(self) -> list[Registration]:
        return [_registration(row) for row in await self._rows(f"SELECT {_COLUMNS} FROM registration")]

    async def known(self, email: str, new_email: str | None, client: str) -> Known:
        """What the store knows about a request that names ``email``, from the network address ``client``."""
        [[count]] = await self._rows("SELECT count(*) FROM registration")
        [[of_client]] = await self._rows(
            "SELECT count(*) FROM (SELECT email FROM registration WHERE client = ?"
            " UNION SELECT email FROM mailed WHERE client = ?)",
            client, client,
        )  # fmt: skip
        mailed = await self._rows("SELECT reported_at, taken_at FROM mailed WHERE email = ?", new_email or email)
        return Known(
            registration=await self.registration(email),
            other=None if new_email is None else await self.registration(new_email),
            mailed=MailHistory(*mailed[0]) if mailed else None,
            registrations=count,
            registrations_of_client=of_client,
            log_end=await self.log_end(),
            unsent=await self.unsent(email),
        )

    async def put(self, registration: Registration, instead_of: str) -> None:
        """Store a registration in place of the registration of ``instead_of``."""
        r = registration
        if instead_of.lower() != r.email.lower():
            await self._forget(instead_of)
        await self._db.execute(
            f"INSERT INTO registration ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            f" ON CONFLICT (email) DO UPDATE SET ({_COLUMNS}) = ({_EXCLUDED})",
            (r.email, r.key, r.latency.count, r.latency.unit, r.registered_at, r.client, r.agent, " ".join(r.exclude),
             " ".join(r.include_only), r.confirmed, r.sequence_number, r.reported_to, r.reported_at, r.token,
             r.taken_at),
        )  # fmt: skip

    async def remove(self, email: str) -> None:
        """Delete a registration and its mails in the mail queue."""
        await self._forget(email)
        await self._db.execute("DELETE FROM mail_queue WHERE email = ?", (email,))

    async def leave(self, email: str, now: float) -> None:
        """Delete a registration, and accept no other for the address until the mail history has expired."""
        [[client]] = await self._rows("SELECT client FROM registration WHERE email = ?", email)
        await self.remove(email)
        await self._db.execute("INSERT OR REPLACE INTO mailed VALUES (?, ?, ?, NULL)", (email, client, now))

    async def _forget(self, email: str) -> None:
        await self._db.execute(
            "INSERT OR REPLACE INTO mailed SELECT email, client, reported_at, taken_at FROM registration"
            " WHERE email = ? AND taken_at IS NOT NULL",
            (email,),
        )
        await self._db.execute("DELETE FROM registration WHERE email = ?", (email,))

    # --- the mail queue -----------------------------------------------------------------------

    async def unsent(self, email: str) -> int:
        """The number of reports to an address in the mail queue."""
        [[count]] = await self._rows("SELECT count(*) FROM mail_queue WHERE email = ?", email)
        return int(count)

    async def post(self, email: str, sequence_number: int, mail: bytes, now: float) -> None:
        """Put a mail into the mail queue."""
        await self._db.execute(
            "INSERT INTO mail_queue (email, sequence_number, mail, made_at, next_try_at) VALUES (?, ?, ?, ?, ?)",
            (email, sequence_number, mail, now, now),
        )

    async def due_mails(self, now: float, most: int) -> list[QueuedMail]:
        """Due mails, oldest first.

        A mail is left out while an earlier mail to the same address waits.
        """
        rows = await self._rows(
            "SELECT id, email, sequence_number, mail, made_at, tries FROM mail_queue q WHERE next_try_at <= ?"
            " AND NOT EXISTS (SELECT 1 FROM mail_queue e WHERE e.email = q.email AND e.id < q.id AND e.next_try_at > ?)"
            " ORDER BY id LIMIT ?",
            now, now, most,
        )  # fmt: skip
        return [QueuedMail(*row) for row in rows]

    async def next_try_at(self) -> float | None:
        """When the next mail is due, in seconds since the epoch; only the first mail to each address counts."""
        [[at]] = await self._rows(
            "SELECT min(next_try_at) FROM mail_queue WHERE NOT EXISTS"
            " (SELECT 1 FROM mail_queue e WHERE e.email = mail_queue.email AND e.id < mail_queue.id)"
        )
        return None if at is None else float(at)

    async def hasten(self, now: float) -> None:
        """Make all mails due: the mail server is reachable again."""
        await self._db.execute("UPDATE mail_queue SET next_try_at = ? WHERE next_try_at > ?", (now, now))

    async def waiting(self) -> int:
        """The number of mails in the mail queue."""
        [[count]] = await self._rows("SELECT count(*) FROM mail_queue")
        return int(count)

    async def sent(self, mail: QueuedMail, now: float) -> None:
        """The mail server has accepted the mail: delete it."""
        taken = await self._db.execute("DELETE FROM mail_queue WHERE id = ?", (mail.id,))
        if taken.rowcount:  # else the registration was replaced
            await self._db.execute(
                "UPDATE registration SET refusals = 0, taken_at = coalesce(taken_at, ?) WHERE email = ?"
                " AND (refusals > 0 OR taken_at IS NULL)",
                (now, mail.email),
            )
        await self._db.execute(
            "INSERT OR IGNORE INTO mailed SELECT ?, '', ?, ? WHERE NOT EXISTS"
            " (SELECT 1 FROM registration WHERE email = ?)",
            (mail.email, now, now, mail.email),
        )

    async def drop(self, mail: QueuedMail) -> int:
        """Delete a refused mail; return the number of consecutive refusals of the address."""
        await self._db.execute("DELETE FROM mail_queue WHERE id = ?", (mail.id,))
        await self._db.execute("UPDATE registration SET refusals = refusals + 1 WHERE email = ?", (mail.email,))
        rows = await self._rows("SELECT refusals FROM registration WHERE email = ?", mail.email)
        return rows[0][0] if rows else 0

    async def postpone(self, mail: QueuedMail, until: float) -> None:
        """Count an attempt, and try the mail again at ``until``."""
        await self._db.execute(
            "UPDATE mail_queue SET tries = tries + 1, next_try_at = ? WHERE id = ?", (until, mail.id)
        )

    async def postpone_due(self, now: float, until: float) -> None:
        """Postpone all due mails until a time: the mail server is unreachable."""
        await self._db.execute("UPDATE mail_queue SET next_try_at = ? WHERE next_try_at <= ?", (until, now))

    async def _rows(self, sql: str, *parameters: Any) -> list[Any]:
        try:
            return list(await self._db.execute_fetchall(sql, parameters))
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error


def _registration(row: Any) -> Registration:
    email, key, count, unit, registered_at, client, agent, exclude, include_only, confirmed, number, to, at = row[:13]
    return Registration(
        email=email,
        key=key,
        latency=Span(count, unit),
        registered_at=registered_at,
        client=client,
        agent=agent,
        exclude=tuple(exclude.split()),
        include_only=tuple(include_only.split()),
        confirmed=bool(confirmed),
        sequence_number=number,
        reported_to=to,
        reported_at=at,
        token=row[13],
        taken_at=row[14],
    )


async def _prepare(path: Path, db: aiosqlite.Connection) -> None:
    [[application]] = list(await db.execute_fetchall("PRAGMA application_id"))
    [[tables]] = list(await db.execute_fetchall("SELECT count(*) FROM sqlite_master"))
    if application != _APPLICATION and tables:
        raise UsageError(f"{path}: a SQLite file, but not a store of `crawler rup serve`; choose another --db")
    await db.executescript(_PRAGMAS)
    if not tables:
        await db.executescript(f"BEGIN IMMEDIATE;\n{_SCHEMA}\nPRAGMA application_id = {_APPLICATION};\nCOMMIT;")


def _lock(path: Path) -> FileLock:
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; make it first")
    lock = FileLock(f"{path}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise StoreInUse(f"{path}: another `crawler rup serve` uses this store; stop it first") from None
    except OSError as error:
        raise UsageError(f"{path}: not writable: {error.strerror}") from None
    return lock
