"""One task: it crawls one bucket until the deadline of the round, and writes what came of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crawler.clock import Clock
from crawler.dataset.records import TASK_TABLES, Answer, Ask, Dataset, Done, Plan, Task, done_key, part
from crawler.dataset.tables import SQL, write_table
from crawler.engine.crawl import Crawl
from crawler.engine.gate import FetcherSide
from crawler.engine.hooks import Hooks
from crawler.errors import StoreError
from crawler.frontier.buckets import Bucket
from crawler.frontier.domain_addresses import with_addresses
from crawler.frontier.offers import Offer
from crawler.frontier.scope import Scope
from crawler.reasons import EndCode, RunEnd
from crawler.rounds.addresses import OwnAddresses
from crawler.rounds.asks import answers_to, news_of, permissions_in, receive_answers, wait_for
from crawler.rounds.plan import usual_pause_s
from crawler.session.crawl_session import finish_crawl, run_inputs
from crawler.settings.changes import begin
from crawler.settings.crawl_scope import crawl_scope
from crawler.store.open import open_working_copy
from crawler.store.rows import SiteNews, Waiting

if TYPE_CHECKING:
    from crawler.store.sections import SqliteStore

_LOG = logging.getLogger("crawler.rounds")
_TRY_AGAIN_S = 5.0
#: Many engines share a process, and a lost task loses its store whole: so commits are rarer. With ``AHEAD_EVERY_S``,
#: the log of a lost task is written after 9 s.
_RARER = 8.0


@dataclass(frozen=True)
class RoundWork:
    """What the tasks of one worker in a round have in common."""

    dataset: Dataset
    plan: Plan
    side: FetcherSide
    clock: Clock
    hooks: Hooks | None
    folder: Path
    name: str  # of this worker alone
    share: int  # the number of tasks that share the concurrency

    @cached_property
    def scope(self) -> Scope:
        """The scope of all seeds, of which each task has a copy."""
        head = self.dataset.head
        return crawl_scope(self.dataset.settings, with_addresses(head.seeds, head.domains), self.clock.now())


class BucketTask:
    """The task of a bucket in a round, which this process has claimed.

    Invariants:

    1. Nothing is sent at or after the deadline, which ``side.lease`` holds.
    2. The object ``done`` comes last; without it, nothing that the task has written counts.
    3. A pause that is longer than the usual one is in the dataset before it is in the store. The round waits for the
       usual pause after the last request that a lost task can have sent; so its next task knows every pause that
       lasts beyond that.
    4. An address is asked by the one task of the round that has taken it.
    5. The task stops before the deadline, by the time that the last task of the bucket took to write its results. So
       the next round does not wait for a very large site.
    6. A task that gets no news from other buckets, and can ask no site before the deadline, does not read its store. It
       writes only that nothing has changed.
    """

    def __init__(self, work: RoundWork, task: Task) -> None:
        self._work = work
        self._dataset = dataset = work.dataset
        self._plan = plan = work.plan
        self._clock = work.clock
        self._task = task
        self._bucket = Bucket(task.bucket, dataset.head.buckets)
        self._crawl: Crawl | None = None
        self._store: SqliteStore | None = None
        self._written_ahead = 0  # the number of the last request that was
        self._ends_at = plan.deadline - min(task.writing_s, (plan.deadline - plan.begins_at) / 2)
        self._usual_s = usual_pause_s(dataset.settings)
        self._kept_pauses: dict[str, float] = {}  # in the dataset, by group
        self._kept_parts = 0
        self._permissions = set[tuple[str, int]]()  # robots.txt that other buckets need for sitemaps
        self._end: RunEnd | None = None
        self._writing_since: float | None = None
        self._others_have_addresses = False

    async def run(self) -> None:
        """Crawl the bucket, and write the results. Raises :class:`StoreError` if the storage or the disk fails."""
        task, news = self._task, news_of(self._dataset, self._task)
        first = await asyncio.to_thread(next, news, None)
        if first is not None or task.is_ready or task.lost is not None or task.asks or task.answers:
            done = await self._run(chain([first] if first else (), news))
        else:
            done = Done(task.bucket, dict.fromkeys(TASK_TABLES, 0), {}, None, "", is_unchanged=True)
        content = msgspec.json.encode(done)
        await asyncio.to_thread(self._dataset.objects.create, done_key(self._plan.round, task.bucket), content)
        _LOG.info("bucket %d is done: %s", task.bucket, done.ended or "no news")

    async def _run(self, offers: Iterator[list[Offer]]) -> Done:
        """Take in what other buckets bring, crawl, and write all but the result of the task, which is returned."""
        path = self._work.folder / f"{self._task.bucket:05}.db"
        if self._task.store:
            await asyncio.to_thread(self._dataset.fetch_store, self._task.store, self._task.bucket, path)
        settings = self._dataset.settings
        store = await open_working_copy(path, settings.politeness, settings.workers.patience_s)
        try:
            await store.keep_bucket(self._bucket)
            begun_at = self._clock.now()
            unread = msgspec.json.encode(await store.unread_urls()).decode()
            (ahead,) = await store.query(SQL["ahead_of_clock"], {"since": begun_at})
            self._written_ahead = await store.last_request()
            scope = await self._begin(store, begun_at)
            terms = {"since": begun_at, **ahead, "unread": unread, "run_id": store.run_id}
            left_s = max(0.0, self._ends_at - self._clock.now())
            concurrency = max(1, settings.limits.concurrency // self._work.share)
            limits = replace(settings.limits, max_time_s=left_s, max_pages=None, concurrency=concurrency)
            settings = replace(settings, store=replace(settings.store, db=str(path)), limits=limits)
            inputs = run_inputs(settings, store, scope, self._clock, self._side_of_task())
            inputs = replace(inputs, hooks=self._work.hooks, write_ahead=self._write_ahead, rarer=_RARER)
            crawl = Crawl(inputs)
            await receive_answers(await self._answers(), store, settings.robots, begun_at)
            await wait_for(self._task.asks, store, crawl.outbox)
            while (batch := await asyncio.to_thread(next, offers, None)) is not None:
                await store.receive_offers(batch, limits.max_depth, limits.max_pages_per_site)
            done = await self._crawl_and_write(crawl, store, terms)
        finally:
            self._crawl = self._store = None
            await store.leave(self._clock.now())
            await store.close()
        assert self._writing_since is not None, "the crawl has ended"
        await asyncio.to_thread(self._dataset.put_store, self._plan.round, self._task.bucket, path)
        return msgspec.structs.replace(done, writing_s=self._clock.now() - self._writing_since)

    async def _crawl_and_write(self, crawl: Crawl, store: SqliteStore, terms: Mapping[str, Any]) -> Done:
        if self._end is not None:
            crawl.stop(self._end)
        self._crawl, self._store = crawl, store
        end = await crawl.run()
        if end.code is EndCode.MAX_TIME:  # the engine's limit of time is the end of the task in its round
            end = RunEnd(EndCode.ROUND_OVER)
        self._crawl = None
        self._writing_since = began_writing = self._clock.now()
        await self.say_writing()
        if not crawl.stopped:
            await finish_crawl(crawl.progress, store, self._clock)
        if self._others_have_addresses:
            await store.end_address_waits(began_writing)
            await store.prepare(self._dataset.settings.limits.max_pages_per_site)
        await store.end_run(end, self._clock.now())
        return await self._write(store, terms, end)

    async def _begin(self, store: SqliteStore, now: float) -> Scope:
        """Begin a run with the seeds of the bucket, under the scope of all seeds; returns the scope."""
        pages_per_site = self._dataset.settings.limits.max_pages_per_site
        if (lost := self._task.lost) is not None:
            await store.pause_after(lost.over_at, lost.pauses)
            await store.prepare(pages_per_site)
        scope = self._work.scope.copy()
        unknown = sorted(self._dataset.seeds.get(self._task.bucket, set()).difference(await store.seeds()))
        domains, settings = set(self._dataset.head.domains).intersection(unknown), self._dataset.head.settings
        await begin(store, scope, settings, unknown, now, pages_per_site=pages_per_site, domains=domains)
        return scope

    def _side_of_task(self) -> FetcherSide:
        """The connections of the worker, with an address book of this task."""
        if self._work.side.book is None:
            return self._work.side
        # After the deadline, so that the crawl does not wait for it.
        settings, until = self._dataset.settings.politeness, self._plan.quiet_at
        book = OwnAddresses(self._work.side.book, settings, self._take_address, until)
        return msgspec.structs.replace(self._work.side, book=book)

    async def _take_address(self, network: str) -> bool:
        is_own = await asyncio.to_thread(
            self._dataset.take_address, self._plan.round, network, f"{self._task.bucket} {self._work.name}"
        )
        self._others_have_addresses |= not is_own
        return is_own

    async def _write_ahead(self, news: SiteNews) -> None:
        """Keep the pauses of a commit that are longer than usual, and than what is known of their groups.

        If the storage fails, this is tried again until the deadline: the commit waits, and the task asks nobody. The
        permissions in the commit are published with the results.
        """
        self._permissions.update(permissions_in(news, self._bucket))
        longer = {
            group: pace.pause_s
            for group, pace in news.paces.items()
            if pace.pause_s > self._kept_pauses.get(group, self._usual_s)
        }
        if longer:
            self._kept_parts += 1
            numbers = self._plan.round, self._task.bucket, self._kept_parts
            while True:
                try:
                    await asyncio.to_thread(self._dataset.keep_pauses, *numbers, longer)
                    break
                except StoreError:
                    if self._end is not None or self._clock.now() >= self._plan.deadline:
                        raise
                await self._clock.sleep(_TRY_AGAIN_S)
            self._kept_pauses |= longer

    async def _answers(self) -> list[Answer]:
        """The answers that other buckets have for this one."""
        results = [await asyncio.to_thread(self._dataset.read, key, Done) for key in self._task.answers]
        answers = [answer for result in results if result is not None for answer in result.answers]
        return [answer for answer in answers if self._task.bucket in answer.askers]

    async def _write(self, store: SqliteStore, terms: Mapping[str, Any], end: RunEnd) -> Done:
        """Write the results and the offers, and take offers and bodies out of the store; returns the task's result."""
        counts, number = dict[str, int](), self._plan.round
        path = self._work.folder / f"{self._task.bucket:05}.parquet"
        write = partial(write_table, bucket=self._bucket, number=number, parameters=terms, path=path, counts=counts)
        for table in TASK_TABLES:
            await store.read_in_steps(partial(write, table=table))
            if counts[table]:
                await asyncio.to_thread(self._dataset.objects.put, part(table, number, self._task.bucket), path)
        await store.delete_outgoing()
        await store.bodies.empty()
        states = {row["state"]: row["n"] for row in await store.query(SQL["states"])}
        ready = await store.next_ready()
        return Done(
            self._task.bucket,
            counts,
            states,
            None if ready is None else ready.until,
            end.code.value,
            [Ask(self._task.bucket, site, url) for site, url in await store.asks()],
            await answers_to(sorted({*((ask.url, ask.asker) for ask in self._task.asks), *self._permissions}), store),
        )

    # --- for the worker, which looks at all its tasks ------------------------------------------

    def remove_files(self) -> None:
        """Delete the files of the task on this machine, also if it was lost: the disk may be full."""
        for path in self._work.folder.glob(f"{self._task.bucket:05}.*"):
            path.unlink()

    async def say_writing(self) -> None:
        """Say that nothing is sent any more and results are being written, if so."""
        if self._writing_since is not None:
            await asyncio.to_thread(self._dataset.say_writing, self._plan.round, self._task.bucket, self._clock.now())

    def stop(self, end: RunEnd) -> None:
        """End soon; what was crawled is written. Called again, it gives requests in flight no more time."""
        if self._crawl is not None:
            self._crawl.stop(end)
            if self._end is not None:
                self._crawl.end_grace()
        self._end = self._end or end

    @property
    def waits(self) -> Waiting | None:
        """The group that the whole bucket waits for."""
        return None if self._crawl is None else self._crawl.progress.idle_for

    async def ahead(self) -> list[dict[str, Any]]:
        """The requests that were committed and are not yet :meth:`written_ahead`."""
        if self._store is None:
            return []
        found = await self._store.query(SQL["ahead"], {"after": self._written_ahead})
        return [row | {"bucket": self._task.bucket} for row in found]

    def written_ahead(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """These requests of :meth:`ahead` are in the dataset."""
        if rows:
            self._written_ahead = rows[-1]["request_id"]
