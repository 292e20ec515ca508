"""Runs one world to its end, judges it, and shrinks a world that fails."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from crawler.frontier.operator import Command
from crawler.url import host_of
from tests.virtual_time import VirtualClock, VirtualLoop, run_virtual
from tests.world.disk import on_virtual_time
from tests.world.oracle import expected, page_end
from tests.world.plan import DAY_S, Act, Event, Plan
from tests.world.process import End, Process, Team, give, own_tasks, quiet_engine
from tests.world.web import READABLE, Web
from tests.world.witness import Witness

#: A world ends within this virtual time after it has come to rest and no robots.txt is waited for any more.
_ENDS_WITHIN_S = 2 * DAY_S
_RESTART_S = 3.0
#: Outcomes that a commit takes at most: the claim tasks stop at 250, and each of 2,000 may add one more.
_MOST_IN_BATCH = 2250
_SHOWN = 8
#: Reasons of what a world did to a URL in passing: its host was in trouble, or robots.txt or the operator closed it.
_PASSING = frozenset(
    {
        "robots", "robots_given_up", "address", "mirror", "blocked", "server_error", "client_error", "no_connection",
        "no_address", "timeout", "nofollow", "redirect", "redirect_circle",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """The judgement on a world. ``digest`` is equal whenever everything happened in the same way."""

    plan: Plan
    violations: list[str]
    digest: str
    processes: int
    requests: int
    pages: int
    urls: int
    virtual_s: float
    real_s: float
    memory_bytes: int

    def __str__(self) -> str:
        kind = "quiet" if self.plan.is_quiet else f"{len(self.plan.events)} events"
        return (
            f"world {self.plan.seed}: {self.plan.hosts} hosts, {kind}, {self.processes} processes, "
            f"{self.requests:,} requests, {self.pages:,} pages, {self.urls:,} URLs, {self.virtual_s / DAY_S:.2f} days "
            f"in {self.real_s:.1f} s, {self.memory_bytes / 1e6:.0f} MB, {self.digest[:12]}"
        )


class World:
    """One world: a web, a store, and the processes that crawl, one after the other."""

    def __init__(self, plan: Plan, path: Path, clock: VirtualClock) -> None:
        self.plan = plan
        self.web = Web(plan)
        self._path = path
        self._clock = clock
        self.witness = Witness(plan, self.web, clock.loop.time)
        self.processes = 0
        self._ahead_s = 0.0  # of the wall clock
        self._alive: dict[int, Process] = {}  # by their place in the team
        self._blocks: dict[str, int] = {}  # how many block events hold, by host
        self._pauses = 0

    async def run(self) -> None:
        """Crawl to the end of the world."""
        tasks = [asyncio.create_task(self._bring_about(event)) for event in self.plan.events]
        crawl, wrong = asyncio.create_task(self._live()), asyncio.create_task(self.witness.wrong.wait())
        limit_s = self.plan.rests_at_s + self.plan.robots.give_up_after_s + _ENDS_WITHIN_S
        await asyncio.wait([crawl, wrong], timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if crawl.done() and (error := crawl.exception()) is not None:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self.witness.complain(f"a process failed: {type(error).__name__}: {error}")
        elif not crawl.done() and not self.witness.violations:
            self.witness.complain(f"the crawl does not end within {limit_s / DAY_S:.1f} days")
        for process in list(self._alive.values()):
            process.kill()
        tasks += [wrong, crawl]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _live(self) -> None:
        while True:
            team = Team(self._ahead_s, asyncio.Event())
            async with asyncio.TaskGroup() as group:
                works = [group.create_task(self._work(place, team)) for place in range(self.plan.workers)]
            is_done = all(work.result() is End.DONE for work in works)
            if is_done and self._clock.loop.time() >= self.plan.days * DAY_S:
                return
            await self._clock.sleep(DAY_S / 2 if is_done else _RESTART_S)

    async def _work(self, place: int, team: Team) -> End:
        """The processes at one place of a team, one after the other. A process that dies is replaced."""
        if place:
            await team.begun.wait()
        while True:
            process = Process(self.processes, self.plan, self.web, self.witness, self._path, self._clock.loop, team)
            self.processes += 1
            self._alive[place] = process
            try:
                end = await process.live()
            finally:
                del self._alive[place]
            team.begun.set()  # the others need not wait if it died before
            if self.plan.workers == 1 or end in (End.DONE, End.STOPPED):
                return end
            await self._clock.sleep(_RESTART_S)
            if not self._alive or team.run_id is None:
                return end  # all have died: the next team finds the store as after a crash

    async def _bring_about(self, event: Event) -> None:
        await self._clock.sleep(event.at_s)
        process, host = self._alive.get(event.host % self.plan.workers), self.web.host(event.host).name
        match event.act:
            case Act.KILL if process is not None:
                process.kill()
            case Act.KILL_AT_CALL if process is not None:
                process.disk.kill_at = process.disk.calls + int(event.amount)
                process.disk.kills_after = int(event.amount) % 2 == 0
            case Act.STALL if process is not None:
                process.stall(event.amount)
            case Act.FULL:
                full = [process.disk for process in self._alive.values()]
                for disk in full:
                    disk.is_full = True
                await self._clock.sleep(event.amount)
                for disk in full:
                    disk.is_full = False
            case Act.STOP:
                await self._give(Command.STOP)
            case Act.PAUSE:
                self._pauses += 1
                if await self._give(Command.PAUSE):
                    await self._clock.sleep(event.amount)
                    self._pauses -= 1
                    if not self._pauses:
                        await self._insist(Command.RESUME)
            case Act.BLOCK:
                self._blocks[host] = self._blocks.get(host, 0) + 1
                if await self._give(Command.BLOCK, host):
                    await self._clock.sleep(event.amount)
                    self._blocks[host] -= 1
                    if not self._blocks[host]:
                        await self._insist(Command.UNBLOCK, host)
            case Act.JUMP:
                self._ahead_s += event.amount
            case _:
                pass  # no process lives at this moment

    async def _give(self, command: Command, host: str = "") -> bool:
        return self._path.exists() and await give(command, host, self._path, self._clock, self.witness)

    async def _insist(self, command: Command, host: str = "") -> None:
        """Give an order until the store takes it: the operator must not forget a pause."""
        while not await self._give(command, host):
            await self._clock.sleep(60.0)

    # --- judging ------------------------------------------------------------------------------

    def judge(self) -> tuple[int, str]:
        """Look at the store when all is over. Returns the number of URLs, and a digest of everything.

        Rows are read one by one. Of each URL, a number stays in memory.
        """
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
            self._judge_store(db)
            digest = self.digest()
            refuted = dict(db.execute("SELECT site, main_site FROM mirrors WHERE evidence = 'refuted'"))
            refuted = {host_of(mirror): host_of(main) for mirror, main in refuted.items()}
            self._judge_mirrors(db, refuted)
            urls = self._judge_ends(db, digest, refuted)
            self._judge_pages(db, urls)
        return len(urls), digest.hexdigest()

    def digest(self) -> hashlib._Hash:
        """A digest of all requests and answers with their times."""
        digest = hashlib.sha256()
        for seen in self.witness.seen:
            digest.update(f"{seen} {seen.ended_at} {seen.status}\n".encode())
        return digest

    def _judge_store(self, db: sqlite3.Connection) -> None:
        witness = self.witness
        busy = _count(db, "FROM politeness_group WHERE claimed_by IS NOT NULL")
        if busy:
            witness.complain(f"{busy} groups are still claimed")
        sound = db.execute("PRAGMA integrity_check").fetchone()[0]
        if sound != "ok":
            witness.complain(f"the store is damaged: {sound}")
        logged = _count(db, "FROM requests")
        if not witness.logged <= logged <= witness.requests:
            told = f"{witness.requests} were sent, {witness.logged} of them committed"
            witness.complain(f"{logged} requests are logged; {told}")
        if witness.most_in_batch > _MOST_IN_BATCH:
            witness.complain(f"a commit of {witness.most_in_batch} outcomes: memory is not bounded")

    def _judge_mirrors(self, db: sqlite3.Connection, refuted: dict[str, str]) -> None:
        """Whether only mirrors were crawled whose main sites are none: without a page, or redirecting to them."""
        if not self.plan.is_quiet:
            return
        for host, seen in self.witness.on_mirrors.items():
            if host not in refuted:
                self.witness.complain(f"the host is a mirror: {seen}")
        states = dict(db.execute("SELECT url, state FROM urls")) if refuted else {}
        for mirror, main in refuted.items():
            of_main = {url: state for url, state in states.items() if host_of(url) == main}
            back = any(
                host_of(self.web.page_at(url).target or url) == mirror
                for url, state in of_main.items()
                if state == "redirected"
            )
            if "fetched" in of_main.values() and not back:
                self.witness.complain(f"{main} is a main site, but its mirror {mirror} was crawled")

    def _judge_ends(self, db: sqlite3.Connection, digest: hashlib._Hash, refuted: dict[str, str]) -> set[int]:
        """Whether every URL ended once, and for a right reason. Returns the numbers of the URLs; adds to ``digest``."""
        witness, urls = self.witness, set[int]()
        right = expected(self.web, refuted) if self.plan.is_quiet else None
        for url, *ended in db.execute("SELECT url, state, reason_code FROM urls ORDER BY url"):
            state, reason = ended
            digest.update(f"{url} {state} {reason}\n".encode())
            if hash(url) in urls:
                witness.complain(f"{url} is in the store twice")
            urls.add(hash(url))
            if state == "queued":
                witness.complain(f"lost: {url} is still queued at the end")
            is_left = right is not None and url not in right and host_of(url) in refuted.values()
            if is_left:
                continue  # left to the main site before it turned out to be none
            if right is not None and (state, reason) not in right.get(url, ()):
                known = sorted(right.get(url, {("unknown", "to the oracle")}))
                witness.complain(f"{url} ended as {state}, {reason}, right is {known}")
            elif right is None and not self.plan.days:
                kind = self.web.page_at(url).kind
                if (state, reason) != page_end(kind) and reason not in _PASSING:
                    witness.complain(f"{url} ended as {state}, {reason}, but it is {kind}")
        for url in sorted(right or ()):
            if hash(url) not in urls:
                witness.complain(f"lost: {url}, which the oracle knows")
        return urls

    def _judge_pages(self, db: sqlite3.Connection, urls: set[int]) -> None:
        """Whether nothing was lost, and nothing invented."""
        witness, pages = self.witness, set[int]()
        for url, sha256 in db.execute("SELECT url, body_sha256 FROM pages"):
            pages.add(hash(url))
            if sha256 is not None and not any(sha256.startswith(body) for body in witness.bodies.get(url, ())):
                witness.complain(f"the body of {url} is none that was served")
            page = self.web.page_at(url)
            for target, _ in page.links if page.kind in READABLE else ():
                if hash(target) not in urls:
                    witness.complain(f"lost: {target}, which {url} links to")
        for url, state in db.execute("SELECT url, state FROM urls WHERE state IN ('redirected', 'fetched')"):
            if state == "redirected" and hash(self.web.page_at(url).target) not in urls:
                witness.complain(f"lost: the target of the redirect {url}")
            if state == "fetched" and hash(url) not in pages:
                witness.complain(f"lost: the page of {url}")
        for url in self.web.seeds():
            if hash(url) not in urls:
                witness.complain(f"lost: the seed {url}")
        if not self.plan.days:
            for url, seen in witness.unread.items():
                # A process that is killed may have logged the request, and lost the page that it had not read yet.
                if (
                    hash(url) not in pages
                    and seen.is_committed
                    and not (seen.life.lost_at is not None or seen.life.lost_lease)
                ):
                    witness.complain(f"lost: the page of {url}, which was served at {seen.ended_at:.3f} s")


def _count(db: sqlite3.Connection, rows: str) -> int:
    return int(db.execute(f"SELECT count(*) {rows}").fetchone()[0])


def run_world(plan: Plan, folder: Path | None = None) -> Result:
    """Run a world, in a folder of its own that is removed again, by default on a disk in memory."""
    place = Path(tempfile.mkdtemp(prefix="world", dir=folder or _fast_folder()))
    began = time.monotonic()

    async def main(clock: VirtualClock) -> Result:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        own_tasks(loop)
        world = World(plan, place / "world.db", clock)
        await world.run()
        over_at, witness = loop.time(), world.witness
        urls, digest = (0, world.digest().hexdigest()) if witness.violations else world.judge()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        real_s = time.monotonic() - began
        violations = witness.violations
        return Result(
            plan, violations, digest, world.processes, witness.requests, witness.pages, urls, over_at, real_s, memory
        )

    try:
        logging.disable()  # the log of the operator
        with (
            on_virtual_time(),
            quiet_engine(plan.look_every_s),
            patch("crawler.store.sql.offers.new_key", lambda: 0),  # the order of URLs follows from it
        ):
            return run_virtual(main)
    finally:
        logging.disable(logging.NOTSET)
        shutil.rmtree(place, ignore_errors=True)


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def shrink(plan: Plan, fails: Callable[[Plan], bool], most: int = 60) -> Plan:
    """A smaller plan that still fails: fewer events by halving, then fewer hosts. Runs ``most`` worlds at most."""
    left = most

    def still_fails(smaller: Plan) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(smaller)

    size = len(plan.events)
    while size >= 1:
        start = 0
        while start < len(plan.events):
            smaller = plan.without(range(start, start + size))
            if still_fails(smaller):
                plan = smaller
            else:
                start += size
        size //= 2
    hosts = plan.hosts
    while hosts > 1:
        hosts //= 2
        events = tuple(replace(event, host=min(event.host, hosts - 1)) for event in plan.events)
        smaller = replace(plan, hosts=hosts, events=events)
        if not still_fails(smaller):
            break
        plan = smaller
    return plan


def report(result: Result) -> str:
    """A failed world in lines: the violations, the events, and the command that replays it."""
    shown = result.violations[:_SHOWN]
    more = len(result.violations) - len(shown)
    lines = [str(result), *(f"  {violation}" for violation in shown), *([f"  and {more} more"] if more else [])]
    return "\n".join([*lines, *(f"  event at {event}" for event in result.plan.events)])
