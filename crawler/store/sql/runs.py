"""What every store in SQL stands on, and its runs: who is at work on them, how they begin and end."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeVar

from crawler.errors import StoreError
from crawler.frontier.politeness import PolitenessSettings
from crawler.reasons import EndCode, ReasonCode, RunEnd
from crawler.store.protocols import CommitBatch
from crawler.store.retrying import lasting
from crawler.store.rows import Parameters
from crawler.store.sql.commit import TurnTaker
from crawler.store.sql.control import SqliteControl
from crawler.store.sql.offers import Offers
from crawler.store.sql.revisits import Revisits
from crawler.store.sql.subscriptions import SqliteRup
from crawler.store.sql.workers import Workers, is_alive, processes
from crawler.store.sqlite.connection import UNFINISHED, Database, one, require_whole
from crawler.version import VERSION

T = TypeVar("T")


class SqlRuns(ABC):
    """The first part of a store in SQL; a subclass has the connection."""

    dialect: str
    _db: Database  # of the one transaction that may be under way
    _sql: Mapping[str, str]
    _offers: Offers
    _turns: TurnTaker
    _workers: Workers
    _revisits: Revisits
    control: SqliteControl
    rup: SqliteRup
    _politeness: PolitenessSettings
    _run_id = 0

    @abstractmethod
    def _writing(self) -> AbstractAsyncContextManager[None]:
        """A transaction on ``_db``, rolled back whole where anything goes wrong in it."""

    async def _again(self, attempt: Callable[[], Awaitable[T]], /) -> T:
        """Some reading or writing, done again as long as it may yet succeed: a file fails once."""
        return await attempt()

    @abstractmethod
    async def _every(self, sql: str, parameters: Parameters = ()) -> list[Any]: ...

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[None]:
        """One process at a time begins a run, or joins one: where there is a lock, nobody else can."""
        yield

    @abstractmethod
    def on_news(self, wake: Callable[[], None]) -> None: ...

    @abstractmethod
    def _turn_taker(self) -> TurnTaker:
        """What takes the turns of the run with the number ``_run_id``."""

    @abstractmethod
    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]: ...

    @abstractmethod
    def rows(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[Any, None]: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def _end_crashed(self, now: float) -> None:
        """End the workers that are known to be dead although their leases have not ended."""

    @abstractmethod
    def is_held(self) -> bool: ...

    @abstractmethod
    async def columns_of(self, table: str) -> list[str]:
        """The columns of a table, in order."""

    @abstractmethod
    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Put rows of another store into a table, in one transaction."""

    async def begin_moment(self) -> None:
        """Begin to read one moment of the store, whatever is written meanwhile; nothing is on its way then."""
        await self.query("BEGIN")

    async def begin_notes(self) -> None:
        await self.query("BEGIN")

    async def begin_copy(self, source: str, now: float) -> None:
        """Note that this store becomes a copy of another one."""
        async with self._writing():
            await self._db.execute("INSERT INTO store_copy (source, begun_at) VALUES (?, ?)", (source, now))

    async def finish_copy(self, now: float) -> None:
        """Note that this store is a whole copy."""
        async with self._writing():
            await self._db.execute("UPDATE store_copy SET done_at = ?", (now,))

    async def require_whole(self) -> None:
        """Raise :class:`UsageError` for a copy that was not finished."""
        require_whole(await self._every(UNFINISHED), self.name)

    @property
    @abstractmethod
    def name(self) -> str:
        """What errors call the store."""

    @property
    def away_s(self) -> float | None:
        return None  # a file is there

    def give_up(self) -> None:
        return  # nobody waits for it

    # --- runs ---------------------------------------------------------------------------------

    @property
    def lease_s(self) -> float | None:
        return self._workers.lease_s

    @property
    def run_id(self) -> int:
        return self._run_id

    @property
    def worker_id(self) -> int:
        return self._workers.id

    def lock_fds(self) -> tuple[int, ...]:
        """Open files that a process is to inherit so that the store stays locked while it lives."""
        return ()

    async def start_run(self, settings: dict[str, Any], now: float, *, at_work: bool = True) -> int:
        await self.recover(now)
        async with self._writing():
            if "auxiliary_run" not in settings:
                await self._db.execute("DELETE FROM unsettled")
            await self._revisits.sweep()
            (run_id,) = await one(self._db, self._sql["insert_run"], (now, VERSION, json.dumps(settings)))
        await self.take_part(int(run_id), now, at_work=at_work)
        return self._run_id

    @lasting
    async def join_run(self, run_id: int, now: float) -> None:
        async with self._writing():
            if self._workers.id:
                await self._workers.end(None, "joined anew", now)
                await self._turns.refresh(await self._workers.release_lost(now), None)
            await self._workers.join(run_id, now)
            await self._db.execute(self._sql["reopen_run"], (run_id,))
        self._run_id = run_id
        self._turns = self._turn_taker()

    @lasting
    async def rejoin(self, now: float) -> bool:
        async with self.beginning():
            last = await self.last_run()
            if last is None or last["id"] != self._run_id:
                return False
            await self.join_run(self._run_id, now)
        return True

    async def last_run(self) -> dict[str, Any] | None:
        return next(iter(await self.query(self._sql["last_run"])), None)

    async def take_part(self, run_id: int, now: float, *, at_work: bool) -> None:
        """Be of a run, as a worker or above some; who is above them shows that they are to come."""
        self._run_id = run_id
        if at_work:
            await self.join_run(run_id, now)
        elif self.lease_s is not None:
            async with self._writing():
                await self._workers.join(run_id, now, for_others=True)

    async def run_under_way(self, now: float) -> tuple[int, dict[str, Any]] | None:
        row = await self._one(self._sql["run_under_way"], (now,))
        return None if row is None else (row[0], json.loads(row[1]))

    @lasting
    async def renew(self, now: float) -> None:
        async with self._writing():
            await self._workers.renew(None, now)
            await self._turns.refresh(await self._workers.release_lost(now), None)

    @lasting
    async def commit_late(self, late: CommitBatch) -> None:
        async with self._writing():
            if await self._workers.count_late(len(late.requests)):
                await self._turns.take_late(late)

    @lasting
    async def bury(self, worker: int, ended_by: str, now: float) -> None:
        async with self._writing():
            await self._workers.end(worker, ended_by, now)
            await self._turns.refresh(await self._workers.release_lost(now), None)

    async def known_dead(self) -> set[int]:
        if not self.is_held():
            return {row[0] for row in await self._every("SELECT id FROM worker WHERE ended_at IS NULL")}
        neighbours = await self._every(self._sql["neighbours"], (processes(), 0))
        return {worker for worker, pid in neighbours if not is_alive(pid)}

    async def others_at_work(self) -> bool:
        return bool((await self._one(self._sql["others_at_work"], (self._workers.id, self._workers.id)))[0])

    async def unsettle(self, now: float) -> None:
        async with self._writing():
            await self._db.execute("INSERT INTO unsettled VALUES (?)", (now,))

    @lasting
    async def recover(self, now: float) -> None:
        async with self._writing():
            await self._end_crashed(now)
            await self._turns.refresh(await self._workers.release_lost(now), None)

    @lasting
    async def end_run(self, end: RunEnd, now: float) -> None:
        async with self._writing():
            await self._end_run(end, now)

    async def _end_run(self, end: RunEnd, now: float) -> None:
        await self._workers.end(None, end.sentence, now)
        await self._revisits.sweep()
        await self._db.execute(self._sql["end_run"], (now, end.code, end.sentence, self._run_id))

    @lasting
    async def fail_circles(self) -> None:
        async with self._writing():
            await self._db.execute(self._sql["fail_circles"], (ReasonCode.REDIRECT_CIRCLE.sentence,))

    async def leave(self, now: float) -> None:
        """End the part in a run of who has not: stopped, or failed, before its crawl had begun. Waits for nobody: where
        it cannot be said, the lease runs out."""
        if self._workers.id:
            with suppress(StoreError):
                async with self._writing():
                    if await self._workers.is_at_work():
                        await self._end_run(RunEnd(EndCode.NOT_BEGUN), now)

    async def last_settings(self) -> dict[str, Any] | None:
        row = await self._one(self._sql["last_settings"], (self._run_id,))
        return None if row is None else dict(json.loads(row[0]))

    # --- counts -------------------------------------------------------------------------------

    async def fetched_count(self) -> int:
        return await self._scalar("SELECT coalesce(sum(fetched), 0) FROM site")

    async def queued_count(self) -> int:
        return int((await self._reckoned("SELECT count(*) FROM frontier"))[0][0])

    async def excluded_count(self) -> int:
        return int((await self._reckoned("SELECT count(*) FROM url WHERE state = 'excluded'"))[0][0])

    # --- helpers ------------------------------------------------------------------------------

    async def _one(self, sql: str, parameters: Parameters = ()) -> Any:
        return next(iter(await self._every(sql, parameters)), None)

    async def _reckoned(self, sql: str) -> list[Any]:
        """Rows that it may take the store minutes to reckon; a crawl goes on meanwhile."""
        return await self._every(sql)

    async def _scalar(self, sql: str) -> int:
        return int((await self._one(sql))[0])
