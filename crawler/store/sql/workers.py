"""Workers and their leases, and the release of the groups of a worker that has died.

A worker is a row; the groups that it has claimed name it. A worker may send requests until its lease ends, and renews
the lease long before. A worker that finds an expired lease ends that worker and releases its groups, each pause counted
from the end of the lease: no request lasts longer than the lease of its worker (:mod:`crawler.engine.lease`). If the
process of a worker on the same machine has ended, its groups are released at once.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from crawler.errors import LeaseLost
from crawler.frontier.politeness import AnswerTimes, Pace, PolitenessSettings, after_crash
from crawler.reasons import EndCode, RunEnd, StoredWaitReason, WaitCode
from crawler.store.rows import CommitBatch
from crawler.store.sql.tables import StoreStatements

#: The end of a placeholder whose workers never start.
_PLACEHOLDER = EndCode.NOT_BEGUN


class Workers:
    """This process among the workers of a store. Every method must be called within a transaction.

    ``lease_s`` is the length of a lease in seconds; ``None`` if no other worker is possible.
    """

    def __init__(self, sql: StoreStatements, politeness: PolitenessSettings, lease_s: float | None) -> None:
        self._sql = sql
        self._politeness = politeness
        self.lease_s = lease_s
        self.id = 0
        self.commits = 0  # as far as this process knows

    async def join(self, run_id: int, now: float, *, as_placeholder: bool = False) -> None:
        """Register as a worker of a run.

        A placeholder stands for workers that are about to start; the first of them replaces it.
        """
        if not as_placeholder:
            await self._sql.execute("relieve", run_id=run_id, ended_code=_PLACEHOLDER)
        row = await self._sql.fetch_one(
            "join",
            run_id=run_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            processes=processes(),
            now=now,
            lease_s=self.lease_s,
            ended_code=_PLACEHOLDER if as_placeholder else None,
        )
        self.id = row.id
        self.commits = 0

    async def renew(self, batch: CommitBatch | None, now: float) -> None:
        """Renew the lease, and count a commit if there is a ``batch``.

        Raises :class:`LeaseLost` if another worker has ended this one.
        """
        outcomes, requests = ([], []) if batch is None else (batch.outcomes, batch.requests)
        row = await self._sql.fetch_one(
            "renew",
            now=now,
            lease_s=self.lease_s,
            commits=int(batch is not None),
            pages=sum(o.page is not None and o.queued.seen is None for o in outcomes),
            requests=len(requests),
            worker=self.id,
        )
        if row is None:
            message = "the lease of this worker ran out, and its sites have passed to other workers"
            raise LeaseLost(message, committed=batch is not None and await self._was_committed())
        if batch is not None and row.commits != self.commits + 1:
            self.commits += 1
            message = "the answer to a commit was lost on the way: the claims that it returned are unknown"
            raise LeaseLost(message, committed=True)

    async def _was_committed(self) -> bool:
        """Whether the batch that is being retried was committed before the lease ended."""
        before, row = self.commits, await self._sql.fetch_one("commits", worker=self.id)
        self.commits = row.commits
        return self.commits > before

    async def count_late(self, requests: int) -> bool:
        """Count a commit after the lease was lost; False if it was counted before and only the answer was lost."""
        row = await self._sql.fetch_one("count_late", requests=requests, worker=self.id, commits=self.commits)
        return row is not None

    async def lost_groups(self, now: float) -> set[int]:
        """Keep the pauses of the groups of ended workers, and of workers whose lease has ended.

        Returns the numbers of these groups. :meth:`Offers.refresh` releases them.
        """
        for neighbour in await self._sql.fetch("neighbours", processes=processes(), worker=self.id):
            if not is_alive(neighbour.pid):
                await self.end(neighbour.id, RunEnd(EndCode.KILLED), now)
        lost = RunEnd(EndCode.LEASE_RAN_OUT)
        await self._sql.execute("end_lost_workers", now=now, ended_code=lost.code, ended_by=lost.sentence)
        groups = await self._sql.fetch("lost_groups")
        paces = {}
        for group in groups:
            politeness = self._politeness.of_group(group.name)
            paces[group.name] = after_crash(pace_of(group), politeness, min(now, group.lost_at or now))
        await self._sql.execute_many("set_pace", [pace_row(name, pace) for name, pace in paces.items()])
        return {group.id for group in groups}

    async def end(self, worker: int | None, end: RunEnd, now: float) -> None:
        """Note that a worker (``None``: this worker) has ended. Its groups are lost: see :meth:`lost_groups`."""
        await self._sql.execute(
            "end_worker", now=now, ended_code=end.code, ended_by=end.sentence, worker=worker or self.id
        )

    async def is_at_work(self) -> bool:
        """Whether this worker is registered and has not been ended."""
        # A number from a transaction that failed may belong to another worker by now.
        return await self._sql.fetch_one("is_at_work", worker=self.id, pid=os.getpid()) is not None

    async def pages_left(self, max_pages: int) -> tuple[int, int]:
        """How many pages a limit leaves, and how many of these are reserved for other workers.

        No other worker reserves pages before this transaction ends.
        """
        row = await self._sql.fetch_one("pages_used", worker=self.id)
        return max_pages - int(row.used), int(row.reserved)

    async def reserve(self, pages: int) -> None:
        """Reserve this number of pages for this worker, in place of those reserved before."""
        await self._sql.update("worker", [{"id": self.id, "reserved": pages}])


def pace_row(name: str, pace: Pace) -> dict[str, object]:
    """The pace of a group, as parameters of the statement ``set_pace``."""
    return {
        "name": name,
        "next_at": pace.next_at,
        "pause_s": pace.pause_s,
        "backoff_s": pace.backoff_s,
        "wait_code": pace.waits_for.code,
        "waits_for": pace.waits_for.sentence,
        "answers": pace.times.count,
        "usual_s": pace.times.usual_s,
        "recent_s": pace.times.recent_s,
    }


def pace_of(row: Any) -> Pace:
    """The pace of a group, from a row with the columns that ``set_pace`` writes."""
    waits_for = StoredWaitReason(WaitCode(row.wait_code), row.waits_for)
    times = AnswerTimes(row.answers, row.usual_s, row.recent_s)
    return Pace(row.next_at, row.pause_s, row.backoff_s, waits_for, times)


@cache
def processes() -> str | None:
    """The set of processes in which our process number is unique: the boot of this machine, and the PID namespace.

    ``None`` if the system does not report it.
    """
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return None


def is_alive(pid: int) -> bool:
    """Whether there is such a process on this machine. A zombie process counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
