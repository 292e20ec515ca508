"""The gate: every request passes it. It alone enforces politeness."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NoReturn, Protocol, TypeVar

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.addresses import Address, AddressBook, Addresses, Places
from crawler.engine.lease import Lease
from crawler.engine.limiter import Limiter
from crawler.engine.loop_lag import LoopLag
from crawler.engine.slots import Slots
from crawler.frontier.decide import Fetch
from crawler.frontier.hours import window, window_of
from crawler.frontier.operator import Blocks
from crawler.frontier.politeness import Pace, PolitenessSettings, after_answer, facts_of, with_crawl_delay
from crawler.model import Answer, Failed, FetchResult, Redirected, Request, RobotsCopy
from crawler.reasons import ErrorKind, WaitCode, WaitReason
from crawler.robots.http_dates import retry_after_s
from crawler.robots.readings import SiteRules
from crawler.store.protocols import ClaimedSite, RequestRow
from crawler.url import host_of, registrable_domain, split

#: Look-ups of names under way. Only those of the last seconds count: a request does not wait longer for one.
_LOOK_UPS = 256
_LOOK_UP_S = 2.0
#: A group whose look-up takes longer is given back for so long. Resolvers keep the answer for longer than that.
_LOOK_UP_AGAIN_S = 4.0

#: The number of addresses that one request waits for, if no connection to those before is possible.
_MOST_ADDRESSES = 4

T = TypeVar("T")


class Unsent(Exception):
    """A request was not sent. Its URL is still queued."""


class Blocked(Unsent):
    """The operator blocked the site while a request to it waited."""


class GiveBack(Unsent):
    """The group should be given back to the store. Its pause lasts ``until`` then, in seconds since the epoch."""

    def __init__(self, why: str, until: float) -> None:
        super().__init__(why)
        self.until = until


class QueueFull(GiveBack):
    """Too many requests wait for the domain or the address of the site."""


class SlowLookUp(GiveBack):
    """The look-up of the host takes long. It goes on meanwhile."""


class ReaderBusy(GiveBack):
    """Other large robots.txt files are being read."""


class OutOfHours(GiveBack):
    """The site is not to be asked at this time of the day."""


class Fetcher(Protocol):
    """Sends one request. Whatever a server does is in the result; only cancellation is raised."""

    async def fetch(self, request: Request) -> FetchResult: ...


class Connections(Protocol):
    """The idle connections of a fetcher, by politeness group."""

    def expect(self, group: str, wait_s: float) -> None:
        """The next request to ``group`` may be sent in ``wait_s`` seconds."""
        ...

    def close(self, group: str) -> None:
        """Close the connections of ``group``: no request is likely to come."""
        ...


class _NoConnections:
    """For fetchers without connections."""

    def expect(self, group: str, wait_s: float) -> None:
        return None

    def close(self, group: str) -> None:
        return None


class RoomForPages(Protocol):
    """Says how much waits to be read: see :class:`crawler.engine.parser_pool.PageReader`."""

    def has_room(self, domain: str) -> bool: ...

    async def room(self, domain: str) -> None: ...


class _AlwaysRoom:
    """For requests whose answers no parser reads."""

    def has_room(self, domain: str) -> bool:
        return True

    async def room(self, domain: str) -> None:
        return None


class RequestLog(Protocol):
    """Takes every request that was sent, with the pace of its group since."""

    def add_request(self, row: RequestRow, group: str, pace: Pace) -> None: ...


@dataclass(frozen=True, slots=True)
class FetchPermit:
    """The permission for a request: its site, the robots copy in force until ``valid_until``, the line that allows it.

    ``for_site_id`` is set for a robots.txt that is requested behind a redirect: the site that it is for.
    """

    site_id: int
    group: str
    valid_until: float = math.inf
    robots_id: int | None = None
    verdict_line: int | None = None
    crawl_delay_s: float | None = None
    for_site_id: int | None = None

    @classmethod
    def under(
        cls,
        site: ClaimedSite,
        group: str,
        copy: RobotsCopy,
        rules: SiteRules | None,
        allowed: Fetch,
        for_site_id: int | None = None,
    ) -> FetchPermit:
        """The permission that ``copy`` gives, by its ``rules`` and its verdict ``allowed``."""
        return cls(
            site.id,
            group,
            valid_until=copy.expires_at,
            robots_id=site.robots_id,
            verdict_line=None if allowed.verdict is None else allowed.verdict.line,
            crawl_delay_s=None if rules is None else rules.crawl_delay_s,
            for_site_id=for_site_id,
        )


@dataclass(slots=True)
class _Group:
    """A politeness group that a task of this process works on, or whose pace the store does not have yet."""

    pace: Pace
    domain: str
    users: int = 0
    unsaved: bool = False
    slot: asyncio.Lock = field(default_factory=asyncio.Lock)  # held by the task whose request is sent or next
    crawl_delays: dict[int, float | None] = field(default_factory=dict)  # by site, if read during this run


class Hold(Enum):
    """A cause that holds the whole crawl back."""

    OPERATOR = auto()
    DISK = auto()  # a disk has too little free space


class Gate:
    """Sends requests: one at a time per group, its pause kept between end and start, ``concurrency`` slots in all.

    Invariants, for every request that leaves the process:

    1. Its group had no other request in flight, and its pause was over when the request began.
    2. Nothing held the crawl (:class:`Hold`), and the operator had not blocked the site.
    3. The robots copy of its permit was in force.
    4. The lease lasted for longer than a request may take.
    5. It is in the log, with the pace that its answer asks for, also if it was cancelled or failed.
    6. It held one of the slots. No registered domain held more than a quarter of them, or started requests faster than
       so many of its hosts may (:class:`Slots`).
       A look-up of its name held none of them.
    7. No more than ``per_address`` requests were in flight to its address, and it started a pause after the one before
       it if the address has more than four groups (:class:`Address`). This holds for each process by itself.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        settings: PolitenessSettings,
        concurrency: int,
        log: RequestLog,
        blocks: Blocks | None = None,
        lease: Lease | None = None,
        room: RoomForPages | None = None,
        lag: LoopLag | None = None,
        book: AddressBook | None = None,
        connections: Connections | None = None,
    ) -> None:
        self._connections: Connections = _NoConnections() if connections is None else connections
        self._blocks = blocks or Blocks()
        self._lag = lag or LoopLag(clock)
        self._lease = lease
        self._fetcher = fetcher
        self._clock = clock
        self._settings = settings
        self._slots = Slots(concurrency, clock, settings.delay_s)
        self._look_ups = Slots(_LOOK_UPS, clock)
        self._addresses = Addresses(settings, book)
        self._groups: dict[str, _Group] = {}
        self._log = log
        self._closed = False
        self._holds = set[Hold]()
        self._open = asyncio.Event()  # set while nothing holds the crawl
        self._open.set()
        self._room = room or _AlwaysRoom()
        self._idle: set[asyncio.Task[object]] = set()
        self._in_flight = 0

    @property
    def look_ups(self) -> str:
        """The number of look-ups of names, with their seconds, by outcome, as JSON."""
        return self._addresses.book.look_ups()

    @property
    def requests_in_flight(self) -> int:
        """How many requests have been sent and not answered."""
        return self._in_flight

    def close(self) -> None:
        """Send nothing from now on. Tasks that wait at the gate are cancelled; a request in flight may finish."""
        self._closed = True
        for task in self._idle:
            task.cancel()

    def hold(self, held: bool, by: Hold = Hold.OPERATOR) -> None:
        """Send nothing new while ``held`` by any of :class:`Hold`. Tasks at the gate wait, and pauses run on."""
        if held:
            self._holds.add(by)
            self._open.clear()
        else:
            self._holds.discard(by)
            if not self._holds:
                self._open.set()

    async def wait_while_open(self, waiting: Awaitable[T]) -> T:
        """Wait for something. When the gate closes, the task that waits is cancelled."""
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

    async def _acquire(self, lock: asyncio.Lock) -> None:
        if self._closed or lock.locked():
            await self.wait_while_open(lock.acquire())
        else:
            await lock.acquire()  # at once

    async def _take_slot(self, slots: Slots, live: _Group, address: Address | None = None) -> None:
        """Take one of ``slots``, and a place at ``address``. Raises :class:`QueueFull`."""
        if self._closed or not slots.take(live.domain, address):
            if (full := slots.full(live.domain, address)) is not None:
                self._give_way(live, full, address)
            await self.wait_while_open(slots.wait(live.domain, address))

    # --- groups -------------------------------------------------------------------------------

    def enter(self, group: str, pace: Pace) -> None:
        """Begin to work on a group whose stored pace is ``pace``. Every ``enter`` needs a ``leave``."""
        if group not in self._groups:
            self._groups[group] = _Group(pace, registrable_domain(group))
        self._groups[group].users += 1
        self.keep(group, pace)

    def keep(self, group: str, pace: Pace) -> None:
        """Keep ``pace`` in a group that was entered, if it is longer than the group's own."""
        live = self._groups[group]
        if pace.next_at > live.pace.next_at:
            live.pace = pace

    def is_entered(self, group: str) -> bool:
        """Whether a task of this process works on the group."""
        live = self._groups.get(group)
        return live is not None and live.users > 0

    def leave(self, group: str) -> Pace:
        """End the work on a group. Returns its pace, which is remembered here until it is :meth:`stored`."""
        live = self._groups[group]
        live.users -= 1
        self._forget_if_idle(group, live)
        return live.pace

    def stored(self, paces: Mapping[str, Pace]) -> None:
        """The store has these paces, and gives them to the worker that claims their groups next."""
        for group, pace in paces.items():
            live = self._groups.get(group)
            if live is not None and live.pace == pace:
                live.unsaved = False
                self._forget_if_idle(group, live)

    def _forget_if_idle(self, group: str, live: _Group) -> None:
        if live.users == 0 and not live.unsaved:
            del self._groups[group]

    def forget(self) -> None:
        """Forget all groups: the lease was lost, no task works on them, and the store knows their paces."""
        for group in self._groups:
            self._connections.close(group)
        self._groups.clear()

    def close_connections(self, group: str) -> None:
        """Close the idle connections of a group that is given back: another worker may send its next request."""
        self._connections.close(group)

    def wait_s(self, group: str) -> float:
        """How long the pause of this group lasts from now on, in seconds; negative if it is over."""
        return self._groups[group].pace.next_at - self._clock.now()

    async def pause(self, group: str) -> None:
        """Wait until the pause of this group is over."""
        while (wait_s := self.wait_s(group)) > 0:
            await self.wait_while_open(self._clock.sleep(wait_s))

    def groups_in_pause(self) -> int:
        """How many of the groups that tasks work on may not be asked yet."""
        now = self._clock.now()
        return sum(live.pace.next_at > now for live in self._groups.values() if live.users)

    def pace(self, group: str) -> Pace:
        """The pace of a group that was entered."""
        return self._groups[group].pace

    def slowest(self) -> tuple[str, Pace] | None:
        """The group with the latest next request among those worked on."""
        paces = ((name, live.pace) for name, live in self._groups.items() if live.users)
        return max(paces, key=lambda item: item[1].next_at, default=None)

    def heed_crawl_delay(self, group: str, site_id: int, answer: Answer, crawl_delay_s: float | None) -> None:
        """Apply the ``Crawl-delay`` of a robots.txt that was just read, in seconds.

        It counts from the end of that answer on, also for requests that wait here already.
        """
        live = self._groups[group]
        live.crawl_delays[site_id] = crawl_delay_s
        live.pace = with_crawl_delay(live.pace, answer.finished_at, crawl_delay_s, self._settings)
        live.unsaved = True

    # --- requests -----------------------------------------------------------------------------

    async def send(self, request: Request, permit: FetchPermit) -> FetchResult | None:
        """Wait until the group may be asked, send the request, log it, and set the group's next time.

        Returns ``None`` without sending if the robots copy ran out while the request waited: robots.txt is to be
        requested first. Raises :class:`Unsent` without sending: :class:`Blocked` if the operator has blocked the site,
        :class:`GiveBack` if the group should be given back: until its domain or its address has room, until the host
        may be asked by its hours, or while the look-up of its name takes long.

        A request that is lost because the server was closing its idle connection is sent once more, on a new
        connection. Both are requests like any other: each is logged and followed by its pause.

        Cancellation while the request waits sends nothing. It leaves no trace, but the group keeps a pause of its
        address that it was waiting for. Cancellation in flight, and an error of the fetcher, count as sent: the request
        is logged as failed, and the pause runs from then on.
        """
        live = self._groups[permit.group]
        await self._acquire(live.slot)
        try:
            answer = await self._send_once(request, permit, live)
            if isinstance(answer, Failed) and answer.kind is ErrorKind.CLOSING:
                answer = await self._send_once(replace(request, fresh=True), permit, live)
            return answer
        finally:
            live.slot.release()

    async def _send_once(self, request: Request, permit: FetchPermit, live: _Group) -> FetchResult | None:
        """As :meth:`send`, with the slot of the group. One that is lost on a closing connection is not repeated."""
        waited_for = set[Address]()
        while True:
            address = await self._wait_to_send(permit.group, live, request)
            places = Places(self._addresses, self._clock, host_of(request.url), permit.group, address)
            try:
                if self._blocks.covers(request.url):
                    raise Blocked
                started_at = self._clock.now()
                if started_at >= permit.valid_until:
                    return None
                self._in_flight += 1
                try:
                    answer = await self._fetch(replace(request, group=permit.group), places)
                except BaseException as error:
                    self._settle(live, request, permit, _no_answer(request, started_at, self._clock.now(), error))
                    raise
                finally:
                    self._in_flight -= 1
            finally:
                self._slots.release(live.domain, address)
            if not (isinstance(answer, Failed) and answer.unsent and self._waits_for_another(places, waited_for)):
                break
        self._settle(live, request, permit, answer)
        return answer

    async def _fetch(self, request: Request, places: Places) -> FetchResult:
        """Send a request that has a slot, and the first of its ``places``."""
        if not self._addresses.book.is_limited(places.host):
            return await self._fetcher.fetch(request)
        try:
            return await self._fetcher.fetch(replace(request, may_connect=places.may_connect))
        finally:
            if places.taken:
                self._slots.release_places(places.taken)

    def _waits_for_another(self, places: Places, waited_for: set[Address]) -> bool:
        """Whether a request without a connection should wait for an address that was full when it was tried.

        The request goes to that address first then. ``waited_for`` has the addresses that it has waited for already.
        The request waits for four addresses at most: a name may have any number of them.
        """
        waited_for.update(places.taken)
        if places.first is not None:
            waited_for.add(places.first)
        other = next((text for text, address in places.full.items() if address not in waited_for), None)
        if other is None or len(waited_for) >= _MOST_ADDRESSES:
            return False
        waited_for.add(places.full[other])
        self._addresses.book.prefer(places.host, other)
        return True

    def reading(self, group: str) -> AbstractContextManager[None]:
        """A context in which the answer to a request of ``group`` is being read. To be entered at once after it."""
        return self._slots.reading(self._groups[group].domain)

    async def _wait_to_send(self, group: str, live: _Group, request: Request) -> Address | None:
        """Wait until all that holds a request back is over, and return with a slot and a place at the address.

        ``None``: the address has no limit, or the host has no address.
        """
        host = host_of(request.url)
        while True:
            await self.pause(group)
            self._require_hours(live, host)
            if not self._open.is_set():
                await self.wait_while_open(self._open.wait())
                continue
            if not self._room.has_room(live.domain):
                await self.wait_while_open(self._room.room(live.domain))
                continue
            if (text := self._addresses.book.cached(host)) is None:
                text = await self._look_up(host, live)
            address = self._addresses.at(text, group, self._clock.now())
            if address is not None and address.next_at > live.pace.next_at:
                wait = WaitReason(WaitCode.ADDRESS, address.name)
                live.pace = replace(live.pace, next_at=address.next_at, waits_for=wait)
            await self._take_slot(self._slots, live, address)
            covered = self._lease is None or self._lease.covers_request()
            in_hours = self._opens_at(host) is None
            known = self._addresses.book.extend(host)  # else the request would be looked up while it holds a slot
            has_room = self._room.has_room(live.domain)
            if self._open.is_set() and has_room and covered and in_hours and known:
                return address
            self._slots.release(live.domain, address)  # something else came to hold it back while it waited
            if self._lease is not None and not covered:
                await self.wait_while_open(self._lease.renewed())

    def _opens_at(self, host: str) -> float | None:
        """When ``host`` may be asked again by its hours, in seconds since the epoch; ``None``: now."""
        if not self._settings.hours:
            return None
        hours, now = window_of(host, self._settings.hours), self._clock.now()
        return None if hours is None or hours.is_open(now) else hours.opens_at(now)

    def _require_hours(self, live: _Group, host: str) -> None:
        """Let the group wait in the store for the hours of ``host``. Raises :class:`OutOfHours`."""
        until = self._opens_at(host)
        if until is None:
            return
        wait = WaitReason(WaitCode.HOURS, next(text for text in self._settings.hours if window(text).covers(host)))
        live.pace = replace(live.pace, next_at=max(until, live.pace.next_at), waits_for=wait)
        raise OutOfHours(f"{wait}", until)

    async def _look_up(self, host: str, live: _Group) -> str:
        """The address of ``host``. Raises :class:`SlowLookUp` after two seconds, and :class:`QueueFull`.

        A stranger's name server may be slow, too. So look-ups have slots of their own, shared by registered domain.
        """
        await self._take_slot(self._look_ups, live)
        try:
            async with asyncio.timeout(_LOOK_UP_S):
                return await self.wait_while_open(self._addresses.book.look_up(host))
        except TimeoutError:
            until = self._clock.now() + _LOOK_UP_AGAIN_S
            wait = WaitReason(WaitCode.LOOK_UP, host)
            live.pace = replace(live.pace, next_at=max(until, live.pace.next_at), waits_for=wait)
            raise SlowLookUp(f"{wait}", until) from None
        finally:
            self._look_ups.release(live.domain)

    def _give_way(self, live: _Group, full: Limiter, address: Address | None) -> NoReturn:
        """Let the group wait in the store, because the queue of ``full`` is full. Raises :class:`QueueFull`."""
        now = self._clock.now()
        until = full.book(live.domain, now)
        wait = WaitReason(WaitCode.DOMAIN, live.domain)
        if address is not None and (full is address or not address.is_open(now)):
            wait = WaitReason(WaitCode.ADDRESS, address.name)
        live.pace = replace(live.pace, next_at=max(until, live.pace.next_at), waits_for=wait)
        raise QueueFull(f"{wait}", until)

    def give_way_to_readings(self, group: str, until: float) -> NoReturn:
        """Let a group that was entered wait in the store until its robots.txt may be read. Raises :class:`ReaderBusy`.

        ``until`` is in seconds since the epoch.
        """
        live, wait = self._groups[group], WaitReason(WaitCode.READING)
        live.pace = replace(live.pace, next_at=max(until, live.pace.next_at), waits_for=wait)
        raise ReaderBusy(f"{wait}", until)

    def _settle(self, live: _Group, request: Request, permit: FetchPermit, answer: FetchResult) -> None:
        """Set the pace that follows from an answer, and log the request.

        The lag of the own event loop is no slowness of the server: the pause does not count it, and the log says it.
        """
        crawl_delay_s = live.crawl_delays.get(permit.site_id, permit.crawl_delay_s)
        before = live.pace
        lag_s = self._lag.in_answer(answer.started_at, answer.finished_at)
        self._slots.learn(live.domain, answer.finished_at - answer.started_at - lag_s)
        live.pace = after_answer(before, facts_of(answer, lag_s), crawl_delay_s, self._settings)
        if isinstance(answer, Failed):
            operator_log.request_failed(request.shown_url or request.url, answer)
        operator_log.paced(permit.group, before, live.pace)
        live.unsaved = True
        over_at = answer.finished_at
        if self._lease is not None:
            over_at = self._lease.over_by(answer.started_at, over_at)
        self._log.add_request(_row(request, permit, answer, over_at, lag_s), permit.group, live.pace)
        self._connections.expect(permit.group, self.wait_s(permit.group))


def _no_answer(request: Request, started_at: float, ended_at: float, error: BaseException) -> Failed:
    if isinstance(error, asyncio.CancelledError):
        return Failed(request.url, started_at, ended_at, kind=ErrorKind.STOPPED)
    # The message of the error may repeat a secret that the URL holds.
    return Failed(request.url, started_at, ended_at, kind=ErrorKind.FAULT, detail=type(error).__name__)


def shown_location(request: Request, answer: Redirected) -> str:
    """The target of a redirect; ``-`` if the URL requested holds a secret, which the target may repeat."""
    return answer.location if request.shown_url is None else "-"


def _row(request: Request, permit: FetchPermit, answer: FetchResult, over_at: float, lag_s: float) -> RequestRow:
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
        lag_s=lag_s,
        tls=answer.tls,
        address=answer.address or None,
    )
