"""The store of a crawl: all that SQLite and PostgreSQL share. A subclass for each has the connections.

A crawl commits in batches. A commit is one transaction: it stores what the workers have finished (outcomes,
requests, robots copies), releases the groups that they are done with, and claims the next groups. A claim is a
politeness group with a batch of its URLs. No other worker gets the group before it is released. A crash releases it,
with its pause still to be kept.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.errors import StoreError, StoreFull
from crawler.frontier.buckets import Bucket
from crawler.frontier.domain_addresses import with_addresses
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import Pace, PolitenessSettings, group_name
from crawler.model import Body, Fetched, Purpose, RobotsCopy, SiteFile, State
from crawler.reasons import EndCode, Reason, ReasonCode, RunEnd, group_waits_for
from crawler.robots.mirrors import MIN_ALIKE, judge_alike
from crawler.robots.text import SMALL_BYTES
from crawler.store.computed import Computed
from crawler.store.named_rows import Parameters
from crawler.store.retrying import retrying, while_full
from crawler.store.rows import (
    ClaimedSite,
    CommitBatch,
    CommitResult,
    Counts,
    Heard,
    RobotsTarget,
    RobotsWait,
    SiteNews,
    SkippedSeed,
    Waiting,
)
from crawler.store.sql.bodies import Bodies, find_url
from crawler.store.sql.contents import answer_rows, set_rows
from crawler.store.sql.control import Control
from crawler.store.sql.maintenance import Maintenance
from crawler.store.sql.offers import FoundOffer, Offers, best_offers, own_page_limit
from crawler.store.sql.results import Results
from crawler.store.sql.revisits import RevisitRows, Revisits
from crawler.store.sql.samples import Samples
from crawler.store.sql.schema import require_whole
from crawler.store.sql.section import in_transaction
from crawler.store.sql.site_rows import claimed_site, heard_from, robots_copy
from crawler.store.sql.tables import Row, StoreStatements
from crawler.store.sql.unread import answer_of
from crawler.store.sql.workers import Workers, is_alive, pace_of, pace_row, processes
from crawler.store.sql.wrong_clock import set_right
from crawler.store.statements import Queries
from crawler.version import VERSION

if TYPE_CHECKING:
    from crawler.store.sql.commit import Committer
    from crawler.store.sql.subscriptions import Subscriptions

T = TypeVar("T")

_SEEDS_AT_ONCE = 5000


def _waiting(row: Any) -> Waiting:
    reason = group_waits_for(row.robots_problem, row.waits_for)
    return Waiting(row.name, row.ready_at, reason, row.robots_status, row.failing_since, row.site or "")


def bodies_of(batch: CommitBatch) -> dict[bytes, Body]:
    """The bodies of the pages in a batch, by SHA-256."""
    return {o.page.body.sha256: o.page.body for o in batch.outcomes if o.page is not None and o.page.body is not None}


class Store(ABC):
    """A store: runs and workers, the frontier, facts for all clients, and a section for each kind of client.

    Times are in seconds since the epoch. Every method raises :class:`crawler.errors.StoreError` if the store fails, and
    :class:`crawler.errors.ConnectionLost` if its database does not come back in time.
    """

    dialect: str
    _sql: StoreStatements  # on the connection of the one transaction that may be open
    _read: Queries  # outside of it
    _control_read: Queries  # see StoreSection
    _offers: Offers
    _workers: Workers
    _revisits: RevisitRows
    control: Control
    bodies: Bodies
    revisits: Revisits
    samples: Samples
    results: Results
    maintenance: Maintenance
    _politeness: PolitenessSettings
    _run_id = 0

    def _make_sections(self) -> None:
        """Make the sections that are the same for both databases."""
        self._waits_for_room: Callable[[StoreFull], bool] = lambda _: False
        self._revisits = RevisitRows(self._sql, self._offers)
        self.bodies = Bodies(self)
        self.control = Control(self)
        self.revisits = Revisits(self)
        self.samples = Samples(self)
        self.results = Results(self)
        self.maintenance = Maintenance(self)

    @cached_property
    def rup(self) -> Subscriptions:
        """The registrations with servers of the Remote Update Protocol."""
        from crawler.store.sql.subscriptions import Subscriptions  # loads the forms and mails of the protocol

        return Subscriptions(self)

    # --- provided by a subclass ---------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the store in messages."""

    @cached_property
    def _committer(self) -> Committer:
        """Executes the commits of this worker."""
        from crawler.store.sql.commit import Committer  # only a crawl commits

        return Committer(self)

    @abstractmethod
    def _writing(self) -> AbstractAsyncContextManager[None]:
        """A transaction on the connection of ``_sql``, rolled back whole if anything fails in it."""

    async def _transact(self, work: Callable[[], Coroutine[Any, Any, T]], /) -> T:
        """Execute ``work`` in one transaction, which is rolled back whole if anything fails in it.

        ``work`` awaits nothing but statements of the transaction. SQLite executes it on its own thread: it changes
        nothing that the event loop reads meanwhile, and reads nothing that the event loop changes.
        """
        async with self._writing():
            return await work()

    @abstractmethod
    async def _end_crashed(self, now: float) -> None:
        """End the workers that are known to be dead although their leases have not ended."""

    @abstractmethod
    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        """The rows of a query on the views (docs/store.md), whole.

        Parameters are given by name (``:site``), or by position (``?``). Raises
        :class:`crawler.errors.StatementError` for SQL that the database rejects, and
        :class:`crawler.errors.UsageError` for a statement that does not only read. Text of the user is in a
        :class:`crawler.store.statements.UserSql` only.
        """

    async def rows(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[Any, None]:
        """The rows of a query one after the other, as named tuples, in bounded memory.

        The caller must close the generator if it stops early.
        """
        async with aclosing(self.batches(sql, parameters)) as batches:
            async for batch in batches:
                for row in batch:
                    yield row

    @abstractmethod
    def batches(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[list[Any], None]:
        """As :meth:`rows`, some rows at a time. No batch is empty."""

    @abstractmethod
    def deadline(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Interrupt the query under way when this time is over, or when the task inside is cancelled.

        The query raises :class:`crawler.errors.QueryInterrupted`, and so does each further one inside.
        """

    @abstractmethod
    def is_held(self) -> bool:
        """Whether a process may be writing to the store; False if certainly none is."""

    @abstractmethod
    async def close(self) -> None: ...

    async def _retry(self, attempt: Callable[[], Awaitable[T]], /) -> T:
        """Retry an attempt as long as it may succeed. An error of a file is final, but for a disk that gets room."""
        return await while_full(attempt, self._waits_for_room)

    def wait_for_room(self, waits: Callable[[StoreFull], bool]) -> None:
        """Try again what the disk or the system has no room for, as long as ``waits`` returns true for the error."""
        self._waits_for_room = waits

    async def _count(self, statement: str) -> list[Any]:
        """The rows of a statement that may run for minutes. The crawl continues at the same time."""
        return await self._read.fetch(statement)

    @property
    def warning(self) -> str:
        """A sentence for the user on what is unsafe about the way in which the store was opened; "" if nothing is."""
        return ""

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[None]:
        """A context in which one process at a time begins or joins a run."""
        yield  # the process that has the lock of the file is alone

    @property
    def away_s(self) -> float | None:
        """For how long the database or the object store has been away, in seconds; ``None`` if both answer."""
        return self.bodies.away_s  # a file is always there

    def give_up(self) -> None:
        """Wait no longer: all calls that wait for the database or the object store fail at once."""
        self.bodies.give_up()

    def lock_fds(self) -> tuple[int, ...]:
        """Open files that a child process must inherit for the store to stay locked while the child lives."""
        return ()

    # --- runs ---------------------------------------------------------------------------------

    @property
    def lease_s(self) -> float | None:
        """The length of a lease in seconds; ``None`` if no other worker is possible."""
        return self._workers.lease_s

    @property
    def run_id(self) -> int:
        """The number of the run that this process began or joined; 0 before."""
        return self._run_id

    @property
    def worker_id(self) -> int:
        """The number of this process among the workers."""
        return self._workers.id

    async def start_run(self, settings: dict[str, Any], now: float, *, at_work: bool = True) -> int:
        """Begin a run, after :meth:`recover`. A minimum pause longer than before holds from its first request on.

        A process that is ``at_work`` joins the run as a worker; otherwise workers are about to start. A run whose
        settings name an ``auxiliary_run`` is no crawl: :meth:`last_settings` skips it. Returns the number of the run.
        """
        await self.recover(now)
        run_id = await self._insert_run(settings, now)
        await self.bodies.delete_dropped()
        await self.register_in_run(run_id, now, at_work=at_work)
        return self._run_id

    @in_transaction
    async def _insert_run(self, settings: dict[str, Any], now: float) -> int:
        if "auxiliary_run" not in settings:
            await self._sql.clear("change_under_way")
        await self._revisits.sweep()
        await self._sql.execute("sweep_unread")
        if rows := await self._sql.fetch("abandon_robots_waits"):  # their sites ask again
            waited = json.dumps([row.site_id for row in rows])
            await self._sql.execute("set_robots_until", until=0.0, needs=None, sites=waited)
            sites = {number for row in rows for number in (row.site_id, row.target_id)}
            await self._offers.refresh(await self._offers.groups_of(sites))
        run = await self._sql.fetch_one("insert_run", now=now, version=VERSION, settings=json.dumps(settings))
        return int(run.id)

    async def register_in_run(self, run_id: int, now: float, *, at_work: bool) -> None:
        """Register for a run, as a worker or as a supervisor of workers that are about to start."""
        self._run_id = run_id
        if at_work:
            await self.join_run(run_id, now)
        elif self.lease_s is not None:
            await self._transact(lambda: self._workers.join(run_id, now, as_placeholder=True))

    @retrying
    async def join_run(self, run_id: int, now: float) -> None:
        """Register as a worker of a run. Releases the groups that this process had claimed as another worker."""
        await self._join_run(run_id, now)
        self._run_id = run_id
        self._committer.begin(run_id)

    @in_transaction
    async def _join_run(self, run_id: int, now: float) -> None:
        if self._workers.id:
            await self._workers.end(None, RunEnd(EndCode.REPLACED), now)
            await self._release_lost(now)
        await self._workers.join(run_id, now)
        await self._sql.execute("reopen_run", run_id=run_id)

    @retrying
    async def rejoin(self, now: float) -> bool:
        """Join our run once more after our lease was lost; False if another run has begun since."""
        async with self.beginning():
            last = await self.last_run()
            if last is None or last["id"] != self._run_id:
                return False
            await self.join_run(self._run_id, now)
        return True

    async def last_run(self) -> dict[str, Any] | None:
        """The row of the last run, as in the view ``runs``; auxiliary runs are skipped."""
        row = await self._read.fetch_one("last_run")
        return None if row is None else row._asdict()

    async def computed(self) -> dict[Computed, bool]:
        """The results computed from the crawl; True for each that is behind the pages, which have changed since."""
        rows = await self._read.fetch("computations")
        return {Computed(row.name): bool(row.is_behind) for row in rows}

    async def last_request(self) -> int:
        """The number of the last request (``requests_by_id.request_id``); 0 if there is none."""
        return int((await self._read.fetch_one("last_request")).id)

    async def last_settings(self) -> dict[str, Any] | None:
        """The settings of the run before this one; empty after :meth:`begin_change`."""
        row = await self._read.fetch_one("last_settings", run_id=self._run_id)
        return None if row is None else dict(json.loads(row.settings))

    async def run_under_way(self, now: float) -> tuple[int, dict[str, Any]] | None:
        """Number and settings of the run that other workers are at work on; auxiliary runs are skipped."""
        row = await self._read.fetch_one("run_under_way", now=now)
        return None if row is None else (row.id, json.loads(row.settings))

    @retrying
    @in_transaction
    async def renew(self, now: float) -> None:
        """Renew the lease of this worker, and release the groups of workers whose lease has ended.

        Raises :class:`crawler.errors.LeaseLost` if another worker has ended this one.
        """
        await self._workers.renew(None, now)
        await self._release_lost(now)

    @retrying
    @in_transaction
    async def end_worker(self, worker: int, end: RunEnd, now: float) -> None:
        """End a worker that is known to be dead, and release its groups at once."""
        await self._workers.end(worker, end, now)
        await self._release_lost(now)

    async def known_dead(self) -> set[int]:
        """The workers that are not marked as ended and whose processes have certainly ended."""
        if not self.is_held():
            return {row.id for row in await self._read.fetch("workers_not_ended")}
        neighbours = await self._read.fetch("neighbours", processes=processes(), worker=0)
        return {neighbour.id for neighbour in neighbours if not is_alive(neighbour.pid)}

    async def sent_last_request(self) -> bool:
        """Whether this run sent the last request in the log; True also if another of its workers sent the request."""
        last = await self._read.fetch_one("last_asking_run")
        return last is not None and last.run_id == self.run_id

    async def others_at_work(self, before: float = math.inf) -> bool:
        """Whether other workers may still find URLs for this one.

        That is so if they hold groups, or have just released one that can be asked ``before`` that time.
        """
        return bool((await self._read.fetch_one("others_at_work", worker=self._workers.id, before=before)).any_other)

    @in_transaction
    async def begin_change(self, now: float) -> None:
        """Note that the store is being adapted to changed options.

        Until :meth:`start_run` the store conforms to no options, and :meth:`last_settings` is empty.
        """
        await self._sql.insert("change_under_way", [{"since": now}])

    @retrying
    @in_transaction
    async def recover(self, now: float) -> None:
        """Release the groups that a crashed run had claimed or reserved, with pauses counted from ``now``."""
        await set_right(self._sql, self._offers, now, self.name)
        await self._end_crashed(now)
        await self._release_lost(now)

    async def _release_lost(self, now: float) -> None:
        """Release the groups of lost workers, within a transaction."""
        lost = await self._workers.lost_groups(now)
        await self._offers.refresh(lost, released=lost)

    async def end_run(self, end: RunEnd, now: float) -> None:
        """End this worker. The last worker of a run ends the run."""
        await self._retry(lambda: self._transact(lambda: self._end_run(end, now)))
        await self.bodies.delete_dropped()

    async def _end_run(self, end: RunEnd, now: float) -> None:
        await self._workers.end(None, end, now)
        await self._revisits.sweep()
        await self._sql.execute("sweep_unread")
        await self._sql.execute("end_run", now=now, ended_code=end.code, ended_by=end.sentence, run_id=self._run_id)

    async def leave(self, now: float) -> None:
        """End this worker in a run that stopped or failed before its crawl began.

        Waits for nothing: if the database is away, the lease runs out.
        """
        if self._workers.id:
            with suppress(StoreError):
                await self._leave(now)

    @in_transaction
    async def _leave(self, now: float) -> None:
        if await self._workers.is_at_work():
            await self._end_run(RunEnd(EndCode.NOT_BEGUN), now)

    # --- the frontier -------------------------------------------------------------------------

    async def commit(self, batch: CommitBatch) -> CommitResult:
        """Store a batch, release its groups and claim others, in one transaction; renews the lease.

        All or nothing of the batch is stored. If the call is cancelled, the transaction is rolled back, unless it was
        already being committed. After a lost connection the commit is retried, and takes effect once. Raises
        :class:`crawler.errors.LeaseLost` if another worker has ended this one; its ``committed`` says whether the
        batch was stored.
        """
        bodies = bodies_of(batch)
        stored = await while_full(lambda: self.bodies.stored(bodies), self._waits_for_room) if bodies else {}
        is_here = self.bodies.location is None
        contents: dict[str, list[Row]] = {
            "body": [{"sha256": sha256, "data": data if is_here else None} for sha256, data in sorted(stored.items())],
            "preference_set": set_rows(batch.outcomes),
            "answer": answer_rows(batch.outcomes),
        }
        return await self._commit(batch, contents)

    @retrying
    async def _commit(self, batch: CommitBatch, contents: dict[str, list[Row]]) -> CommitResult:
        """Store a batch, with the rows that it names by their content, by table."""
        result = await self._execute_commit(batch, contents)
        self._workers.commits += 1
        return result

    @in_transaction
    async def _execute_commit(self, batch: CommitBatch, contents: dict[str, list[Row]]) -> CommitResult:
        await self._workers.renew(batch, batch.now)
        await self._committer.put_contents(contents)
        return await self._committer.commit(batch)

    @retrying
    @in_transaction
    async def commit_late(self, news: SiteNews) -> None:
        """Log the requests of a worker that has lost its lease, and store the news of their sites; nothing else.

        If another worker has news of the same site, the newer robots copy is in force, and the longer wait holds.
        """
        if await self._workers.count_late(len(news.requests)):
            await self._committer.commit_late(news)

    async def unread_answer(self, url_id: int) -> Fetched | None:
        """The answer for a queued URL that was logged, and not read before its worker ended."""
        row = await self._read.fetch_one("unread_answer", url_id=url_id)
        return None if row is None else answer_of(row)

    async def add_seeds(
        self, urls: Sequence[tuple[str, Reason | None]], domains: Collection[str] = frozenset()
    ) -> None:
        """Store seeds, each with the reason to exclude it or ``None``. Those in ``domains`` stand for a domain."""
        for start in range(0, len(urls), _SEEDS_AT_ONCE):
            batch = {
                url: FoundOffer(Offer(url, 0, refusal, seed=True, by_domain=url in domains), None)
                for url, refusal in urls[start : start + _SEEDS_AT_ONCE]
            }
            await self._add_seeds(batch)
        await self._transact(self._drop_known)

    @in_transaction
    async def _add_seeds(self, seeds: Mapping[str, FoundOffer]) -> None:
        stored = await self._offers.store(seeds, None)
        named = [{"id": n, "by_domain": int(seeds[url].offer.by_domain)} for url, n in stored.numbers.items()]
        await self._sql.execute_many("set_seed", named)
        await self._offers.refresh(stored.touched)
        self._offers.forget()  # seeds are of many sites: few of them are worked on first

    @retrying
    @in_transaction
    async def note_skipped(self, source: str, lines: Sequence[SkippedSeed]) -> None:
        """Note the lines of a list of seeds that were no URLs, in place of those of its last reading.

        A line is left out, and dropped later, once the store knows all URLs that it perhaps meant.
        """
        await self._sql.delete("skipped_seed", "source", [source])
        await self._sql.insert("skipped_seed", [{"source": source, **line._asdict()} for line in lines])
        await self._drop_known()

    async def _drop_known(self) -> None:
        lines = await self._sql.fetch("skipped_and_meant")
        known = await self._offers.numbers({url for line in lines for url in line.meant.split()})
        for line in lines:
            if known.keys() >= set(line.meant.split()):
                await self._sql.execute("drop_skipped", source=line.source, line=line.line)

    async def unfetched_seed(self) -> str | None:
        """A seed that was not fetched, if possible on a site that this run has asked; ``None`` if there is none."""
        row = await self._read.fetch_one("unfetched_seed", run_id=self._run_id)
        return None if row is None else str(row.url)

    async def seed_states(self) -> list[tuple[State, str]]:
        """The states of the seeds with the sentences of their reasons, each once, most frequent first."""
        return [(State(row.state), row.reason) for row in await self._read.fetch("seed_states")]

    async def seed_causes(self) -> list[tuple[State, ReasonCode, str, int]]:
        """The outcomes of seeds without a page, at the end of their redirects: (state, code, sentence, URLs)."""
        rows = await self._read.fetch("seed_causes")
        return [(State(row.state), ReasonCode(row.reason_code), row.reason, row.urls) for row in rows]

    async def seeds(self) -> list[str]:
        return [row.url for row in await self._read.fetch("seeds")]

    async def scope_urls(self) -> list[str]:
        """The URLs that define the scope: the seeds, and the other addresses of the domains among them."""
        return with_addresses(await self.seeds(), await self.domains())

    async def domains(self) -> list[str]:
        """The seeds that stand for a domain (:mod:`crawler.frontier.domain_addresses`)."""
        return [row.url for row in await self._read.fetch("domains")]

    async def excluded(self, after: int, limit: int) -> list[tuple[int, str, ReasonCode, int, bool]]:
        """Excluded and failed URLs by number: (number, URL, reason code, depth, is a seed or named by a sitemap)."""
        states = json.dumps([State.EXCLUDED, State.FAILED])
        rows = await self._read.fetch("urls_in", states=states, after=after, limit=limit)
        return [(row.id, row.url, ReasonCode(row.reason_code), row.depth, bool(row.is_asked_for)) for row in rows]

    async def queued(self, after: int, limit: int) -> list[tuple[int, str, int, bool]]:
        """Queued URLs by number: (number, URL, depth, is a seed or named by a sitemap)."""
        rows = await self._read.fetch("urls_in", states=json.dumps([State.QUEUED]), after=after, limit=limit)
        return [(row.id, row.url, row.depth, bool(row.is_asked_for)) for row in rows]

    @retrying
    @in_transaction
    async def exclude(self, numbers: Sequence[tuple[int, Reason]]) -> None:
        """Take queued URLs out of the frontier, each with its reason."""
        await self._offers.locked([number for number, _ in numbers])  # a commit may be postponing one of them
        await self._offers.dequeue([number for number, _ in numbers])
        await self._sql.execute_many(
            "exclude", [{"id": number, "reason_code": r.code, "reason": r.sentence} for number, r in numbers]
        )
        await self._offers.refresh(await self._offers.groups([number for number, _ in numbers]))
        self._offers.forget()

    @retrying
    @in_transaction
    async def requeue(self, numbers: Sequence[int]) -> None:
        """Put excluded URLs back into the frontier."""
        await self._offers.requeue(numbers)
        await self._offers.refresh(await self._offers.groups(numbers))
        self._offers.forget()

    @retrying
    @in_transaction
    async def prepare(self, pages_per_site: int | None) -> None:
        """Recompute when each group is ready, under limits and pauses that may have changed since the last run."""
        await self._sql.execute("keep_longer_pauses", pause_s=self._politeness.delay_s)
        await self._sql.execute("clear_page_limits")
        for rule in sorted(self._politeness.sites, key=lambda rule: len(rule.name)):  # the longest name counts
            await self._sql.execute("set_page_limit", name=rule.name, max_pages=own_page_limit(rule))
        await self._offers.refresh_all(pages_per_site)

    @in_transaction
    async def regroup(self) -> None:
        """Put every site into its politeness group under another rule than before; pauses are kept."""
        latest: dict[str, Pace] = {}
        sites = await self._sql.fetch("all_sites")
        for site in sites:
            name = group_name(site.site, self._politeness.group)
            pace = pace_of(site)
            if name not in latest or latest[name].next_at < pace.next_at:
                latest[name] = pace
        await self._sql.execute_many("add_groups", [{"name": name} for name in latest])
        await self._sql.execute_many(
            "regroup_site",
            [{"group_name": group_name(site.site, self._politeness.group), "id": site.id} for site in sites],
        )
        await self._sql.execute_many("set_pace", [pace_row(name, pace) for name, pace in latest.items()])
        self._offers.forget()

    @retrying
    @in_transaction
    async def claim_group(self, site: str) -> int | None:
        """Claim the group of a site, which the store then knows, whether it has a URL to request or not.

        Returns the number of the group; ``None`` while another worker holds it. :meth:`commit` releases it.
        """
        await self._offers.sites([site])
        name = group_name(site, self._politeness.group)
        row = await self._sql.fetch_one("claim_group", worker=self._workers.id, group_name=name)
        return None if row is None else int(row.id)

    async def robots_waits(self, target: RobotsTarget) -> list[RobotsWait]:
        """The sites that wait for ``target``."""
        rows = await self._read.fetch("robots_waits", site=target.site, path=target.path)
        return [
            RobotsWait(row.site_id, row.name, target._replace(hops=row.hops), tuple(json.loads(row.seen or "[]")))
            for row in rows
        ]

    async def robots_copy_from(self, url: str, now: float) -> RobotsCopy | None:
        """The copy that came from ``url``, behind a redirect to a path of another site, if it has not run out."""
        row = await self._read.fetch_one("robots_copy_from", url=url, now=now, small=SMALL_BYTES)
        return None if row is None else robots_copy(row)

    @retrying
    @in_transaction
    async def fail_circles(self) -> None:
        """Fail the redirects that are in a circle or lead into one, once all of them have been seen."""
        await self._sql.execute("fail_circles", sentence=ReasonCode.REDIRECT_CIRCLE.sentence)

    async def group_pace(self, name: str) -> Pace:
        row = await self._read.fetch_one("group_pace", name=name)
        return Pace() if row is None else pace_of(row)

    async def site_file(self, site_id: int, path: str) -> SiteFile | None:
        """The last answer for a file of a site; ``None`` if it was never requested."""
        row = await self._read.fetch_one("site_file", site_id=site_id, path=path)
        if row is None:
            return None
        about = (row.status, bytes(row.body), row.note, row.valid_until, row.failures, row.failing_since, row.moved_to)
        return SiteFile(row.path, Purpose(row.purpose), row.fetched_at, *about)

    async def next_ready(self, now: float = math.inf) -> Waiting | None:
        """The unclaimed group that is ready first. Its robots.txt is named if that is waited for at ``now``."""
        row = await self._read.fetch_one("waiting_groups", now=now, first=1, longest=0)
        return None if row is None else _waiting(row)

    async def waiting(self, now: float, limit: int) -> list[Waiting]:
        """The unclaimed groups with the longest wait."""
        rows = await self._read.fetch("waiting_groups", now=now, first=0, longest=limit)
        return [_waiting(row) for row in rows]

    # --- robots.txt and mirrors ---------------------------------------------------------------

    async def site(self, name: str) -> ClaimedSite | None:
        """A site with the robots copy of its last answer, whether still valid or not; ``None`` for an unknown one.

        Here and in a claim, a copy has no ``body`` if that is larger than 32 KiB: see :meth:`robots_text`.
        """
        row = await self._read.fetch_one("site_named", name=name, small=SMALL_BYTES)
        return None if row is None else claimed_site(row)

    @retrying
    @in_transaction
    async def keep_robots_text(self, sha256: bytes, text: bytes) -> None:
        """Store the text of a robots.txt before the copy that it belongs to, by its SHA-256. No-op if it is there."""
        await self._sql.insert("robots_text", [{"sha256": sha256, "body": text}], known="kept")

    async def robots_text(self, sha256: bytes) -> bytes:
        """The text of a robots.txt that is stored."""
        row = await self._read.fetch_one("robots_text", sha256=sha256)
        assert row is not None, "it was put there when the file arrived"
        return bytes(row.body)

    @in_transaction
    async def expire_robots(self, now: float, *, unreached: bool = False) -> None:
        """Expire every robots copy: it was judged under another reading or token.

        ``unreached``: only those of sites to which no connection was made, because no address was permitted or the
        certificate was not valid, and those of sites that were given up.
        """
        await self._sql.execute("end_robots_wait", unreached=unreached)
        await self._sql.execute("expire_robots", now=now, unreached=unreached)

    @in_transaction
    async def expire_robots_of(self, sites: Sequence[str], now: float) -> None:
        """Expire the robots copies of ``sites``. The pause of a site that gives no usable answer so far stands."""
        await self._sql.execute("expire_robots_of", now=now, sites=json.dumps(list(sites)))

    @retrying
    @in_transaction
    async def forget_refusals(self, sites: Sequence[str], now: float) -> None:
        """Open those of ``sites`` that rest or are closed because they refused, and queue what they refused."""
        await self._committer.forget_refusals(sites, now)
        self._offers.forget()

    async def heard(self) -> Heard:
        """All that answers have told about main sites and seeds, in this run and before."""
        return heard_from(await self._read.fetch("heard_since", since=-math.inf))

    @retrying
    async def find_content_mirrors(self, now: float) -> int:
        """Find sites with the same pages at the same paths, and store them with the evidence ``content``; how many."""
        pairs = await self._read.fetch("alike_sites", least=MIN_ALIKE)
        judged = [(pair, judge_alike(alike=pair.alike, sample=pair.compared, pages=pair.pages)) for pair in pairs]
        rows: list[Row] = [
            {
                "site": pair.site,
                "main_site": pair.main_site,
                "evidence": "content",
                "sample": alike.sample,
                "confidence": alike.confidence,
                "seen_at": now,
            }
            for pair, alike in judged
            if alike is not None
        ]
        await self._replace_content_mirrors(rows)
        return len(rows)

    @in_transaction
    async def _replace_content_mirrors(self, rows: list[Row]) -> None:
        await self._sql.delete("mirror", "evidence", ["content"])
        await self._sql.insert("mirror", rows, known="kept")

    # --- queries ------------------------------------------------------------------------------

    async def counts(self) -> Counts:
        found = {row.what: row.n for row in await self._count("counts")}
        states = {state: int(found.get(state, 0)) for state in State}
        states[State.FETCHED] = found["urls"] - sum(states.values())
        return Counts(states, found["pages"], found["links"], found["requests"], found["sites"])

    async def fetched_count(self) -> int:
        return int((await self._read.fetch_one("fetched_count")).n)

    async def fetched_by_run(self) -> int:
        """How many pages the store has more than before the run, whichever worker fetched them."""
        return int((await self._read.fetch_one("fetched_by_run", run_id=self._run_id)).n)

    async def queued_count(self) -> int:
        return int((await self._count("queued_count"))[0].n)

    async def excluded_count(self) -> int:
        return int((await self._count("excluded_count"))[0].n)

    async def find(self, url: str) -> int | None:
        """The number of a URL (``urls.url_id``), or ``None`` if the store does not know it."""
        return await find_url(self._read, url)

    async def way_to(self, number: int) -> list[str]:
        """The URLs from a seed to this one, as it was first found; at most 30 of them."""
        return list(dict.fromkeys(row.url for row in await self._read.fetch("way_to", number=number)))

    # --- the bucket of a dataset --------------------------------------------------------------

    @property
    def bucket(self) -> Bucket | None:
        """The bucket of a dataset that the store has; ``None`` if it has a whole crawl."""
        return self._offers.bucket

    async def open_bucket(self) -> None:
        """Find out which bucket of a dataset this store has."""
        row = await self._read.fetch_one("bucket")
        self._offers.bucket = None if row is None else Bucket(row.number, row.buckets)

    async def keep_bucket(self, bucket: Bucket) -> None:
        """Become the store of a bucket, before the first run."""
        if bucket != self.bucket:
            assert self.bucket is None, "a store has the same bucket for good"
            await self._transact(lambda: self._sql.insert("bucket", [{"number": bucket.number, "buckets": bucket.of}]))
            self._offers.bucket = bucket

    @retrying
    @in_transaction
    async def receive_offers(self, offers: Sequence[Offer], max_depth: int | None, pages_per_site: int | None) -> None:
        """Store offers of other buckets, in one transaction. Those that are known already change nothing."""
        stored = await self._offers.store(best_offers(FoundOffer(offer, None) for offer in offers), max_depth)
        await self._offers.refresh(stored.touched, pages_per_site)

    @in_transaction
    async def site_numbers(self, sites: Sequence[str]) -> dict[str, int]:
        """The numbers of sites; those that the store does not know are added."""
        return dict(await self._offers.sites(sites))

    @retrying
    @in_transaction
    async def receive_news(self, news: SiteNews) -> None:
        """Store news of sites of other buckets."""
        await self._committer.commit_late(news)

    async def asks(self) -> list[tuple[str, str]]:
        """The sites that wait for the robots.txt or a licence of another bucket, each with the URL."""
        return [(row.site, row.url) for row in await self._read.fetch("asks")]

    @retrying
    @in_transaction
    async def pause_after(self, over_at: float, pauses: Mapping[str, float]) -> None:
        """Another process may have ended a request to any group at ``over_at``: its pause follows.

        ``pauses`` are those that it has learned, in seconds by group. :meth:`prepare` must follow.
        """
        await self._sql.execute_many("add_groups", [{"name": name} for name in pauses])
        for name, pause_s in pauses.items():
            await self._sql.execute("lengthen_pause", name=name, pause_s=pause_s)
        await self._sql.execute("pause_all_groups", over_at=over_at)

    @in_transaction
    async def end_address_waits(self, now: float) -> None:
        """Nothing is asked any more at the addresses that groups wait for: they wait for their own pauses only.

        :meth:`prepare` must follow.
        """
        await self._sql.execute("end_address_waits", now=now)

    async def unread_urls(self) -> list[int]:
        """The URLs whose answers are in the request log, and were not read yet."""
        return [row.url_id for row in await self._read.fetch("unread_urls")]

    @retrying
    @in_transaction
    async def delete_outgoing(self) -> None:
        """Delete the offers to other buckets, after they were written to the dataset."""
        await self._sql.clear("outgoing")

    # --- snapshots and copies -----------------------------------------------------------------

    async def begin_snapshot(self) -> None:
        """From now on read one state of the store, without later writes."""
        await self.query("BEGIN")

    async def begin_notes(self) -> None:
        """From now on read one state of the store. The caller may make and write temporary tables."""
        await self.query("BEGIN")

    async def end_notes(self) -> None:
        """Drop the temporary tables, and read the newest state of the store again."""
        await self.query("ROLLBACK")

    @in_transaction
    async def empty(self, tables: Sequence[str]) -> None:
        """Delete all rows of ``tables``."""
        await self._sql.clear(*tables)

    @in_transaction
    async def insert_rows(self, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows of another store into a table, in one transaction."""
        await self._sql.insert(table, rows, columns=columns)

    @in_transaction
    async def begin_copy(self, source: str) -> None:
        """Note that this store becomes a copy of another store."""
        await self._sql.insert("store_copy", [{"source": source}])

    @in_transaction
    async def reopen_copy(self) -> None:
        """Note that this complete copy is being brought up to date."""
        await self._sql.execute("reopen_copy")

    @in_transaction
    async def finish_copy(self, now: float) -> None:
        """Note that this store is a complete copy."""
        await self._sql.execute("finish_copy", now=now)

    async def require_whole(self) -> None:
        """Raise :class:`crawler.errors.UsageError` for a copy that is not complete."""
        await require_whole(self._read, self.name)
