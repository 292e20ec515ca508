"""The one door through which every request leaves: politeness is kept here, and nowhere else."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.lease import Lease
from crawler.frontier.operator import Blocks
from crawler.frontier.politeness import Pace, PolitenessSettings, after_answer, with_crawl_delay
from crawler.model import Answer, Failed, FetchResult, Redirected, Request
from crawler.reasons import ErrorKind
from crawler.robots.http_dates import retry_after_s
from crawler.store.protocols import RequestRow
from crawler.url import split

T = TypeVar("T")


class Blocked(Exception):
    """The operator has blocked the site while a request to it waited: nothing was sent."""


class Fetcher(Protocol):
    """Sends one request. Whatever a server does is in the result; it raises nothing but cancellation."""

    async def fetch(self, request: Request) -> FetchResult: ...


@dataclass(frozen=True, slots=True)
class FetchPermit:
    """Under what a request is sent: its site, the robots copy in force until ``valid_until``, the line that allows."""

    site_id: int
    group: str
    valid_until: float = math.inf
    robots_id: int | None = None
    verdict_line: int | None = None
    crawl_delay_s: float | None = None
    for_site_id: int | None = None  # of a robots.txt asked behind a redirect: the site that it is for


@dataclass(slots=True)
class _Group:
    """A politeness group that somebody here is working on, or whose pace the store does not have yet."""

    pace: Pace
    users: int = 0
    unsaved: bool = False
    in_flight: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    crawl_delays: dict[int, float | None] = field(default_factory=dict)  # by site, as far as heard of here


class Gate:
    """One request in flight per group, its pause kept between end and start, ``concurrency`` in all."""

    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        settings: PolitenessSettings,
        concurrency: int,
        log: Callable[[RequestRow, str, Pace], None],
        blocks: Blocks | None = None,
        lease: Lease | None = None,
        has_room: asyncio.Event | None = None,
    ) -> None:
        self.blocks = blocks or Blocks()
        self._lease = lease
        self._fetcher = fetcher
        self._clock = clock
        self._settings = settings
        self._slots = asyncio.Semaphore(concurrency)
        self._groups: dict[str, _Group] = {}
        self._log = log
        self._closed = False
        self._open = asyncio.Event()  # not while the operator holds everything
        self._open.set()
        self._has_room = has_room or self._open  # cleared while the pages received wait to be read
        self._idle: set[asyncio.Task[object]] = set()

    def close(self) -> None:
        """Nothing is sent from now on: whoever waits here is cancelled, who is past waiting is left to finish."""
        self._closed = True
        for task in self._idle:
            task.cancel()

    def hold(self, held: bool) -> None:
        """While held, nothing new is sent; who waits here goes on waiting, and paces run on."""
        if held:
            self._open.clear()
        else:
            self._open.set()

    async def idle(self, waiting: Awaitable[T]) -> T:
        """Wait for something; when the gate closes, the wait is cut off, and with it the task."""
        if self._closed:
            if asyncio.iscoroutine(waiting):
                waiting.close()
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        self._idle.add(task)
        try:
            return await waiting
        finally:
            self._idle.discard(task)

    async def _acquire(self, lock: asyncio.Lock | asyncio.Semaphore) -> None:
        if self._closed or lock.locked():
            await self.idle(lock.acquire())
        else:
            await lock.acquire()  # at once

    def enter(self, group: str, pace: Pace) -> None:
        """Begin to work on a group whose stored pace is ``pace``. Every ``enter`` needs a ``leave``."""
        self._groups.setdefault(group, _Group(pace)).users += 1
        self.keep(group, pace)

    def keep(self, group: str, pace: Pace) -> None:
        """Keep ``pace`` too, in a group that was entered."""
        live = self._groups[group]
        if pace.next_at > live.pace.next_at:
            live.pace = pace

    def leave(self, group: str) -> Pace:
        """Done with a group; returns the pace to be kept. It is remembered here until it is :meth:`stored`."""
        live = self._groups[group]
        live.users -= 1
        self._forget_if_idle(group, live)
        return live.pace

    def stored(self, paces: Mapping[str, Pace]) -> None:
        """The store has these paces now, and gives them to whoever enters their groups next."""
        for group, pace in paces.items():
            live = self._groups.get(group)
            if live is not None and live.pace == pace:
                live.unsaved = False
                self._forget_if_idle(group, live)

    def _forget_if_idle(self, group: str, live: _Group) -> None:
        if live.users == 0 and not live.unsaved:
            del self._groups[group]

    def wait_s(self, group: str) -> float:
        """How long this group has to be left alone from now on, in seconds."""
        return self._groups[group].pace.next_at - self._clock.now()

    async def pause(self, group: str) -> None:
        """Wait until this group need no longer be left alone."""
        while (wait_s := self.wait_s(group)) > 0:
            await self.idle(self._clock.sleep(wait_s))

    def pace(self, group: str) -> Pace:
        return self._groups[group].pace

    def in_flight(self, group: str) -> bool:
        return self._groups[group].in_flight

    def slowest(self) -> tuple[str, Pace] | None:
        """The group worked on whose next request is furthest away."""
        paces = ((name, live.pace) for name, live in self._groups.items() if live.users)
        return max(paces, key=lambda item: item[1].next_at, default=None)

    def heed_crawl_delay(self, group: str, site_id: int, answer: Answer, crawl_delay_s: float | None) -> None:
        """A robots.txt was just read: its ``Crawl-delay`` holds from that very answer on, for requests waiting too."""
        live = self._groups[group]
        live.crawl_delays[site_id] = crawl_delay_s
        live.pace = with_crawl_delay(live.pace, answer.finished_at, crawl_delay_s, self._settings)
        live.unsaved = True

    async def send(self, request: Request, permit: FetchPermit) -> FetchResult | None:
        """Wait for the group's turn, send, and set when its next turn is. Logs every request sent.

        ``None``: the robots copy ran out while this waited, nothing was sent, ask robots.txt again.
        Raises :class:`Blocked` where the operator has blocked its site by now.
        """
        live = self._groups[permit.group]
        await self._acquire(live.turn)
        try:
            await self._slot(permit.group)
            try:
                if self.blocks.covers(request.url):
                    raise Blocked
                started_at = self._clock.now()
                if started_at >= permit.valid_until:
                    return None
                live.in_flight = True
                try:
                    answer = await self._fetcher.fetch(request)
                except BaseException as error:  # it may have been sent: that counts as sent
                    self._settle(live, request, permit, _no_answer(request, started_at, self._clock.now(), error))
                    raise
                finally:
                    live.in_flight = False
            finally:
                self._slots.release()
            self._settle(live, request, permit, answer)
            return answer
        finally:
            live.turn.release()

    async def _slot(self, group: str) -> None:
        """Wait until the group's pause is over, nobody holds the gate and our lease lasts, with a slot then."""
        while True:
            await self.pause(group)
            if not self._open.is_set():
                await self.idle(self._open.wait())
                continue
            if not self._has_room.is_set():
                await self.idle(self._has_room.wait())
                continue
            await self._acquire(self._slots)
            covered = self._lease is None or self._lease.covers_request()
            if self._open.is_set() and self._has_room.is_set() and covered:
                return
            self._slots.release()  # held, or out of touch with the store, while this waited for it
            if self._lease is not None and not covered:
                await self.idle(self._lease.renewed())

    def forget(self) -> None:
        """Groups that nobody here works on any more, and that others may be working on: the store knows their paces."""
        self._groups.clear()

    def _settle(self, live: _Group, request: Request, permit: FetchPermit, answer: FetchResult) -> None:
        crawl_delay_s = live.crawl_delays.get(permit.site_id, permit.crawl_delay_s)
        before = live.pace
        live.pace = after_answer(before, answer, crawl_delay_s, self._settings)
        operator_log.paced(permit.group, before, live.pace)
        live.unsaved = True
        over_at = answer.finished_at
        if self._lease is not None:
            over_at = self._lease.over_by(answer.started_at, over_at)
        self._log(_row(request, permit, answer, over_at), permit.group, live.pace)


def _no_answer(request: Request, started_at: float, ended_at: float, error: BaseException) -> Failed:
    if isinstance(error, asyncio.CancelledError):
        return Failed(request.url, started_at, ended_at, kind=ErrorKind.STOPPED)
    # The message of the error may repeat a secret that the URL holds.
    return Failed(request.url, started_at, ended_at, kind=ErrorKind.FAULT, detail=type(error).__name__)


def shown_location(request: Request, answer: Redirected) -> str:
    """Where a redirect leads; ``-`` where the URL asked for holds a secret, for the answer may repeat it."""
    return answer.location if request.shown_url is None else "-"


def _row(request: Request, permit: FetchPermit, answer: FetchResult, over_at: float) -> RequestRow:
    return RequestRow(
        site_id=permit.site_id,
        path=split(request.shown_url or request.url).path,
        purpose=request.purpose,
        started_at=answer.started_at,
        finished_at=over_at,
        status=answer.status,
        error=answer.error if isinstance(answer, Failed) else None,
        bytes=answer.wire_bytes,
        retry_after_s=retry_after_s(answer.headers, answer.finished_at)
        if isinstance(answer, Failed | Redirected)
        else None,
        robots_id=permit.robots_id,
        verdict_line=permit.verdict_line,
        for_site_id=permit.for_site_id,
        location=shown_location(request, answer) if isinstance(answer, Redirected) else None,
    )
