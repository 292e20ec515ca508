"""The work that the tasks of a crawl have finished since the last commit. The tasks add it, the loop takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.frontier.decide import Outcome
from crawler.frontier.politeness import Pace
from crawler.frontier.refusals import RefusalNews
from crawler.model import Fetched, Recorded, SiteFile
from crawler.robots.mirrors import Contradiction
from crawler.store.rows import (
    BrokenBody,
    CommitBatch,
    Refuted,
    RequestRow,
    RobotsNews,
    RobotsTarget,
    RobotsWait,
    SiteHold,
)


class OutboxBounds(NamedTuple):
    """Bounds on the contents of an outbox. Each is a bound by itself."""

    outcomes: int
    links: int  # of these outcomes: a page with a thousand takes as much memory as dozens of others
    bytes: int  # of their bodies


#: From these bounds on, a commit is urgent. Larger batches cost less per page, but hold the store for longer.
FULL = OutboxBounds(150, 3_000, 16 << 20)
#: From these bounds on, claim tasks take up no further URL: the store, or the consumer of the pages, is slower.
OVERFULL = OutboxBounds(375, 6_000, 64 << 20)
#: Bound on the answers that one worker keeps in the store until they are read, in octets.
_MOST_UNREAD_BYTES = 64 << 20


@dataclass(slots=True)
class Contents(CommitBatch):
    """The batch of the next commit while it fills. The taker sets the fields that are known at the commit only."""

    recorded: list[Recorded] = field(default_factory=list)  # for the archive, which gets it before the store
    read: dict[int, Fetched] = field(default_factory=dict)  # answers that no task holds any longer, by URL
    since: float | None = None  # when the first of it was put in, in seconds since the epoch
    links: int = 0  # of outcomes
    bytes: int = 0  # of the bodies of outcomes, and of what is recorded
    is_over: asyncio.Event = field(default_factory=asyncio.Event)  # the commit has landed or failed

    def reaches(self, bounds: OutboxBounds) -> bool:
        """Whether one of the bounds is reached."""
        return len(self.outcomes) >= bounds.outcomes or self.links >= bounds.links or self.bytes >= bounds.bytes


class Outbox:
    """Collects the finished work until its commit, and rings the alarm when a commit is due.

    Invariants:

    1. What is put in is taken out once, by one :meth:`next_batch`; the news of sites again after :meth:`put_back`.
    2. A group is ``released`` in the same contents as its last outcome, or in later ones.
    3. An answer that may be kept is put in with its request. If the request is taken out before the outcome of the
       answer is put in, the answer is taken out with the request, up to ``_MOST_UNREAD_BYTES`` of such answers, and
       whatever its size when its task leaves it unread. An outcome whose commit did not land does not count.
    """

    def __init__(self, clock: Clock, alarm: Alarm) -> None:
        self._clock = clock
        self._alarm = alarm
        self._contents = Contents()
        self._room = asyncio.Event()
        self._room.set()
        self._waiters: dict[int, asyncio.Future[int]] = {}  # by site, for the number of its robots copy
        self._unread: dict[int, Fetched] = {}  # answers without an outcome, by URL
        self._stored_unread: dict[int, int] = {}  # the octets of those that were taken out, by URL

    # --- putting in ---------------------------------------------------------------------------

    def add_outcome(self, outcome: Outcome) -> None:
        """The outcome of a claimed URL."""
        contents = self._opened()
        if outcome.awaits_licence:
            contents.outcomes.append(outcome)
            return
        answer = self._unread.pop(outcome.queued.id, None)
        if self._stored_unread.pop(outcome.queued.id, None) is None and answer is not None:
            contents.read[outcome.queued.id] = answer
        contents.outcomes.append(outcome)
        contents.links += len(outcome.links)
        contents.bytes += 0 if outcome.page is None or outcome.page.body is None else outcome.page.body.held_bytes
        self._request_commit_if_full(contents)
        if contents.reaches(OVERFULL):
            self._room.clear()

    def add_refusals(self, news: RefusalNews) -> None:
        """New refusals of a site, added in the same turn as the outcome. Urgent if the site rests or is closed."""
        self._opened().refusals.append(news)
        if news.rests_until or news.refusals.closed:
            self._alarm.request_commit_now()

    def add_request(self, row: RequestRow, group: str, pace: Pace) -> None:
        """A request that was sent, and the pace of its group since. Urgent if the server asks for a longer pause."""
        contents = self._opened()
        contents.requests.append(row)
        contents.paces[group] = pace
        if pace.backoff_s > 0 or row.retry_after_s is not None:
            self._alarm.request_commit()

    def add_unread(self, url_id: int, answer: Fetched) -> None:
        """The answer to a request that was just added, until :meth:`add_outcome` of its URL. It may be stored."""
        self._unread[url_id] = answer

    def leave_unread(self, url_id: int) -> None:
        """A later claim reads the answer, from the store. Whichever worker reads it, this one holds it no longer."""
        self._stored_unread.pop(url_id, None)
        if (answer := self._unread.pop(url_id, None)) is not None:
            contents = self._opened()
            contents.read[url_id] = contents.unread[url_id] = answer

    def add_broken_body(self, broken: BrokenBody) -> None:
        """The body of an answer that could not be decoded. Its request was added before."""
        self._opened().broken_bodies.append(broken)

    def add_robots(self, news: RobotsNews, group: str, pace: Pace) -> asyncio.Future[int]:
        """A robots copy, urgent: no page is requested under it before it is committed. The future gives its number.

        ``pace`` has the ``Crawl-delay`` of the copy, which must survive a crash.
        """
        contents = self._opened()
        contents.robots.append(news)
        contents.paces[group] = pace
        self._alarm.request_commit()
        waiter = self._waiters[news.site_id] = asyncio.get_running_loop().create_future()
        return waiter

    def add_robots_elsewhere(self, news: RobotsNews) -> None:
        """A robots copy of a site that no task works on."""
        self._opened().robots.append(news)
        self._alarm.request_commit()

    def add_robots_wait(self, wait: RobotsWait) -> None:
        """A site that waits for a URL of another site."""
        self._opened().robots_waits.append(wait)

    def add_hold(self, hold: SiteHold) -> None:
        """A site whose pages are not due for a time."""
        self._opened().holds.append(hold)

    def add_target_answered(self, target: RobotsTarget) -> None:
        """A URL that sites have waited for. Their copies are added before."""
        self._opened().targets_answered.append(target)

    def add_file(self, site_id: int, file: SiteFile) -> None:
        """The last answer for a file of a site."""
        self._opened().files[site_id, file.path] = file

    def refute(self, refuted: Refuted) -> None:
        """A ``Host`` line that an answer has contradicted. Its outcome is added before."""
        self._opened().refuted.append(refuted)
        self._alarm.request_commit()

    def suspect_main(self, main_site: str, why: Contradiction) -> None:
        """A main site that may be none: the store judges it once the outcomes so far are stored."""
        self._opened().suspected_mains[main_site] = why
        self._alarm.request_commit()

    def add_record(self, recorded: Recorded) -> None:
        """A request and its answer, for the archive."""
        contents = self._opened()
        contents.recorded.append(recorded)
        contents.bytes += 0 if recorded.answer.exchange is None else len(recorded.answer.exchange.response)
        self._request_commit_if_full(contents)

    def release(self, group_id: int, group: str, pace: Pace) -> None:
        """Give a claimed group back. The loop decides by their number how soon they are committed."""
        contents = self._opened()
        contents.paces[group] = pace
        contents.released.append(group_id)
        self._alarm.ring()

    # --- waiting ------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether claim tasks may take up another URL."""
        return self._room.is_set()

    async def wait_for_room(self) -> None:
        """Wait until a commit has landed, if the outbox is overfull."""
        await self._room.wait()

    async def flush(self) -> None:
        """Ask for a commit at once and wait until it is over: every decision so far is committed or dropped."""
        self._alarm.request_commit_now()
        await self._contents.is_over.wait()

    # --- taking out ---------------------------------------------------------------------------

    @property
    def uncommitted_since(self) -> float | None:
        """When the oldest of the contents was put in, in seconds since the epoch; ``None`` if there is nothing."""
        return self._contents.since

    @property
    def released(self) -> int:
        """The number of groups that are to be given back."""
        return len(self._contents.released)

    def next_batch(self) -> Contents:
        """Take everything out. The caller ends with :meth:`committed`, or :meth:`put_back`."""
        contents, self._contents = self._contents, Contents()
        contents.unread |= self._storable_unread()
        self._alarm.begin_commit()
        return contents

    def _storable_unread(self) -> dict[int, Fetched]:
        storable = {}
        held = sum(self._stored_unread.values())
        for url_id, answer in self._unread.items():
            size = len(answer.plain or answer.gzipped or b"")
            if url_id not in self._stored_unread and held + size <= _MOST_UNREAD_BYTES:
                storable[url_id] = answer
                self._stored_unread[url_id] = size
                held += size
        return storable

    def committed(self, robots_ids: Mapping[int, int]) -> None:
        """The store has ``contents``; ``robots_ids`` are the numbers of the robots copies among them, by site."""
        for site_id, robots_id in robots_ids.items():
            waiter = self._waiters.pop(site_id, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(robots_id)

    def finish(self, contents: Contents) -> None:
        """The pages of ``contents`` have been handed on: claim tasks may continue."""
        self._room.set()
        contents.is_over.set()

    def put_back(self, contents: Contents) -> None:
        """``contents`` were not committed. Keep the news of sites; drop the rest, because its claims are lost."""
        self._contents.prepend(contents)
        for url_id in contents.unread:
            self._stored_unread.pop(url_id, None)
        self._unread |= contents.read
        contents.is_over.set()

    def forget_tasks(self) -> None:
        """No task waits for the number of a robots copy, or for an answer to be read: all were cancelled."""
        self._waiters.clear()
        self._unread.clear()
        self._stored_unread.clear()

    def _opened(self) -> Contents:
        contents = self._contents
        if contents.since is None:
            contents.since = self._clock.now()
            self._alarm.ring()
        return contents

    def _request_commit_if_full(self, contents: Contents) -> None:
        if contents.reaches(FULL):
            self._alarm.request_commit()
