"""Who is at work on a crawl, and until when: workers, their leases, and what becomes of the groups of one that is gone.

A worker is a row; what it has claimed names it. It may ask sites until its lease ends, and renews that long before.
Whoever finds a lease that has ended ends the worker and releases its groups, each pause counted from the lease's end:
no request of a worker lasts beyond its lease (:mod:`crawler.engine.lease`). A process on the same machine that is no
more needs no waiting for. Nothing else passes between workers.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from crawler.errors import LeaseLost
from crawler.frontier.politeness import Pace, PolitenessSettings, after_crash
from crawler.reasons import Reason, ReasonCode
from crawler.store.protocols import Claim, CommitBatch
from crawler.store.sqlite.connection import Database, every, one

_DEATHS_BORNE = 3  # of workers that tried a URL alone; the last one fails the URL
_DIED = Reason(ReasonCode.WORKER_DIED, str(_DEATHS_BORNE))
_FOR_OTHERS = "no worker of it began"  # how one ends who is there for others, and they do not come


class Workers:
    """This process among the workers of a store. Call within a transaction only.

    ``lease_s`` is how long a lease holds, in seconds; ``None`` where nobody else can be at work.
    """

    def __init__(
        self, db: Database, queries: Mapping[str, str], politeness: PolitenessSettings, lease_s: float | None
    ) -> None:
        self._db = db
        self._sql = queries
        self._politeness = politeness
        self.lease_s = lease_s
        self.id = 0
        self.turns = 0  # committed, as far as is known here
        self._trial_group: int | None = None  # of the URL that this worker tries alone

    async def join(self, run_id: int, now: float, *, for_others: bool = False) -> None:
        """Be at work on a run from now on; ``for_others``: only until the first worker that claims anything is."""
        if not for_others:
            await self._db.execute(self._sql["relieve"], (run_id, _FOR_OTHERS))
        ended_by = _FOR_OTHERS if for_others else None
        row = (run_id, socket.gethostname(), os.getpid(), processes(), now, self.lease_s, ended_by)
        (self.id,) = await one(self._db, self._sql["join"], row)
        self.turns = 0

    async def renew(self, batch: CommitBatch | None, now: float) -> None:
        """Begin the lease anew, and count what a batch brings. Raises :class:`LeaseLost` where it was taken away."""
        pages = 0 if batch is None else sum(o.page is not None and o.queued.seen is None for o in batch.outcomes)
        requests = 0 if batch is None else len(batch.requests)
        row = await one(
            self._db, self._sql["renew"], (now, self.lease_s, int(batch is not None), pages, requests, self.id)
        )
        if row is None:
            message = "the lease of this worker ran out, and its sites have passed to others"
            raise LeaseLost(message, committed=batch is not None and await self._was_committed())
        if batch is not None and row[0] != self.turns + 1:
            self.turns += 1
            message = "a turn was committed and its answer lost on the way: what it claimed is not known"
            raise LeaseLost(message, committed=True)

    async def _was_committed(self) -> bool:
        """Whether the turn that is tried again came in before the lease ended."""
        before, (self.turns,) = self.turns, await one(self._db, self._sql["turns"], (self.id,))
        return self.turns > before

    async def count_late(self, requests: int) -> bool:
        """Count what comes after the lease was lost; False where it came before, and only the answer was lost."""
        return await one(self._db, self._sql["count_late"], (requests, self.id, self.turns)) is not None

    async def release_lost(self, now: float) -> set[int]:
        """Release the groups of workers that ended or whose lease did, their pauses kept; which groups these are."""
        for worker, pid in await every(self._db, self._sql["neighbours"], (processes(), self.id)):
            if not is_alive(pid):
                await self.end(worker, "killed", now)
        await self._db.execute(self._sql["end_lost_workers"], (now,))
        rows = list(await every(self._db, self._sql["lost_groups"]))
        kept = {}
        for _, name, lost_at, *pace in rows:
            kept[name] = after_crash(Pace(*pace), self._politeness, min(now, lost_at or now))
        await self._db.executemany(
            self._sql["set_pace"], [(p.next_at, p.pause_s, p.backoff_s, p.waits_for, name) for name, p in kept.items()]
        )
        await self._db.executemany(self._sql["free_group"], [(row[0],) for row in rows])
        await self._blame(now)
        return {row[0] for row in rows}

    async def begin_trial(self, claim: Claim) -> None:
        """Note that this worker tries the one URL of a claim alone."""
        self._trial_group = claim.group_id
        await self._db.execute(self._sql["begin_trial"], (claim.urls[0].id, self.id))

    async def end_trial(self, released: Collection[int]) -> None:
        """Note that no trial is under way any more if its group is among the ``released``."""
        if self._trial_group in released:
            self._trial_group = None
            await self._db.execute(self._sql["begin_trial"], (None, self.id))

    async def _blame(self, now: float) -> None:
        """Count the deaths of workers against the URLs that they tried alone; the third one fails a URL."""
        for worker, number in list(await every(self._db, self._sql["lost_trials"])):
            await self._db.execute(self._sql["begin_trial"], (None, worker))
            await self._db.executemany(self._sql["dequeue"], [(number,)])
            row = await one(self._db, self._sql["blame"], (now, number))
            if row is not None and row[0] >= _DEATHS_BORNE:
                await self._db.execute(self._sql["fail_killer"], (_DIED.sentence, number))
            await self._db.executemany(self._sql["enqueue"], [(number,)])

    async def end(self, worker: int | None, ended_by: str, now: float) -> None:
        """Note that a worker (``None``: this one) is gone; its groups are lost to it."""
        if worker is None and self._trial_group is not None:  # it ends in order: no URL is to blame
            await self.end_trial((self._trial_group,))
        await self._db.execute(self._sql["end_worker"], (now, ended_by, worker or self.id))

    async def is_at_work(self) -> bool:
        """Whether this worker has joined, and nobody has ended it."""
        # A number that was given in a transaction which then failed may be another worker's by now.
        sql = "SELECT 1 FROM worker WHERE id = ? AND pid = ? AND ended_at IS NULL"
        return await one(self._db, sql, (self.id, os.getpid())) is not None

    async def pages_left(self, max_pages: int) -> tuple[int, int]:
        """How many pages a limit leaves, and how many of them are set aside for others. Nobody sets any aside until
        this transaction has ended."""
        taken, others = await one(self._db, self._sql["pages_taken"], (self.id,))
        return max_pages - int(taken), int(others)

    async def set_aside(self, pages: int) -> None:
        """So many pages are for this worker alone, and no others."""
        await self._db.execute("UPDATE worker SET granted = ? WHERE id = ?", (pages, self.id))


@cache
def processes() -> str | None:
    """What processes have numbers beside ours: this start of this machine, and the namespace (a container's has its
    own). ``None`` where the system does not tell."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return None


def is_alive(pid: int) -> bool:
    """Whether there is such a process here; one that was ended and not yet waited for is none any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
