"""The gate: every request passes it. It alone enforces politeness.

:mod:`crawler.engine.workbench` decides when a request may be sent. The gate waits for that, asks for the lease, sends
the request and logs it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar, assert_never

import msgspec

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.body_memory import BodyMemory
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag
from crawler.engine.outbox import Outbox
from crawler.engine.workbench import (
    LOOK_UP_S,
    GiveBack,
    Go,
    Hold,
    LookUp,
    Ticket,
    Wait,
    Workbench,
)
from crawler.errors import CrawlerError
from crawler.frontier.decide import Allowed
from crawler.frontier.operator import Blocks
from crawler.frontier.politeness import Pace, PauseFacts, facts_of
from crawler.model import Failed, FetchResult, Redirected, Request, RobotsCopy
from crawler.reasons import ErrorKind
from crawler.robots.readings import SiteRules
from crawler.store.rows import ClaimedSite, RequestRow
from crawler.url import host_of, path_of

if TYPE_CHECKING:
    from crawler.engine.parser_pool import PageReader
    from crawler.fetch.idle_connections import IdleConnections

#: Failures after which the same request is sent once more.
_SENT_AGAIN = frozenset({ErrorKind.CLOSING, ErrorKind.SIGNATURE})
#: The number of addresses that one request is tried with, if no connection to those before is possible.
_MOST_ADDRESSES = 4

T = TypeVar("T")


class Unsent(Exception):
    """A request was not sent. Its URL is still queued."""


class Blocked(Unsent):
    """The operator blocked the site while a request to it waited."""


class GivenBack(Unsent):
    """The group should be given back to the store, with the pace that it has at the gate."""


class AddressTaken(Exception):
    """Another process asks the address of a host, ``until`` a time in seconds since the epoch."""

    def __init__(self, network: str, until: float) -> None:
        super().__init__(network)
        self.network = network
        self.until = until


class Fetcher(Protocol):
    """Sends one request. Whatever a server does is in the result; only cancellation is raised."""

    async def fetch(self, request: Request) -> FetchResult: ...


class AddressBook(Protocol):
    """Knows the addresses of hosts."""

    def is_limited(self, host: str) -> bool:
        """Whether requests to ``host`` count at their addresses; not if the operator has chosen where they go."""
        ...

    def cached(self, host: str) -> str | None:
        """The address that the next request to a limited ``host`` goes to, in text; ``None`` if it must be looked up.

        It is empty if ``host`` has none.
        """
        ...

    async def look_up(self, host: str) -> str:
        """As :meth:`cached`, looked up if necessary. A look-up goes on if the task that waits for it is cancelled.

        Raises :class:`AddressTaken` if another process asks the address.
        """
        ...

    def refused(self, host: str, address: str) -> bool:
        """No connection to ``address`` was possible: the next requests to ``host`` go to another one.

        False if there is none that has not refused since the host was looked up. Then all may be tried again.
        """
        ...

    def look_ups(self) -> str:
        """How many look-ups there were, with their seconds, by outcome, as JSON. For the heartbeat."""
        ...


class FetchPermit(msgspec.Struct, frozen=True):
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
        allowed: Allowed,
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


class FetcherSide(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run that sends requests and reads the answers.

    ``reader`` reads pages and bounds the answers that wait to be read, ``lease`` permits requests, and ``lag`` is taken
    out of the times of answers. ``book`` knows the addresses of hosts, ``connections`` keeps idle connections, and
    ``memory`` bounds large bodies. A fetcher leaves out what it does not have: with a proxy, the addresses.
    """

    fetcher: Fetcher
    reader: PageReader
    lease: Lease
    lag: LoopLag
    book: AddressBook | None = None
    connections: IdleConnections | None = None
    memory: BodyMemory | None = None


class Gate:
    """Sends requests, each when the :class:`~crawler.engine.workbench.Workbench` lets it go.

    Invariants, for every request that leaves the process, beside those of the workbench:

    1. No order of the operator had blocked the site or paused the crawl, but for orders of the last half second; of a
       longer time, if the store takes more than a quarter of a second to read them.
    2. The robots copy of its permit was in force.
    3. The lease lasted for longer than a request may take, and the time of the crawl was not over.
    4. It is in the log, with the pace that its answer asks for, also if it was cancelled or failed.
    5. It went to the address at which it was counted, unless the operator has chosen the address.
    """

    def __init__(
        self, side: FetcherSide, clock: Clock, bench: Workbench, log: Outbox, blocks: Blocks | None = None
    ) -> None:
        self._fetcher = side.fetcher
        self._lease = side.lease
        self._book = side.book
        self._lag = side.lag
        self._connections = side.connections
        self._memory = side.memory or BodyMemory()
        self._clock = clock
        self.bench = bench
        self._log = log
        self._blocks = blocks or Blocks()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._idle: set[asyncio.Task[object]] = set()
        self._in_flight = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._orders_known_until = math.inf  # without an operator
        self._orders_read = asyncio.Event()

    @property
    def look_ups(self) -> str:
        """The number of look-ups of names, with their seconds, by outcome, as JSON."""
        return "{}" if self._book is None else self._book.look_ups()

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
        self.bench.hold(held, by)
        self._wake(self._clock.now())

    def knows_orders(self, until: float) -> None:
        """All orders that bind requests before ``until`` (epoch seconds) hold now. To be called again before then."""
        self._orders_known_until = until
        self._orders_read.set()

    async def wait_while_open(self, waiting: Awaitable[T]) -> T:
        """Wait for something. When the gate closes, the task that waits is cancelled."""
        if self._closed:
            if asyncio.iscoroutine(waiting):
                waiting.close()
            raise asyncio.CancelledError
        task = asyncio.current_task(self._loop)
        assert task is not None
        self._idle.add(task)
        try:
            return await waiting
        finally:
            self._idle.discard(task)

    def is_blocked(self, url: str) -> bool:
        """Whether the operator has blocked the site of a URL."""
        return self._blocks.covers(url)

    # --- groups -------------------------------------------------------------------------------

    def leave(self, group: str) -> Pace:
        """End the work on a group; returns its pace (:meth:`Workbench.leave`)."""
        self._memory.release(group)
        return self.bench.leave(group)

    def close_connections(self, group: str) -> None:
        """Close the idle connections of a group that is given back: another worker may send its next request."""
        if self._connections is not None:
            self._connections.close(group)

    def should_release(self, group: str) -> bool:
        """See :meth:`Workbench.should_release`."""
        return self.bench.should_release(group, self._clock.now())

    def pauses_long(self, group: str) -> bool:
        """See :meth:`Workbench.pauses_long`."""
        return self.bench.pauses_long(group, self._clock.now())

    async def pause(self, group: str) -> None:
        """Wait until the pause of this group is over."""
        while (until := self.bench.pace(group).next_at) > self._clock.now():
            await self.wait_until(until)

    async def wait_until(self, at: float) -> None:
        """Wait until ``at``, in seconds since the epoch. When the gate closes, the task that waits is cancelled."""
        while (left_s := at - self._clock.now()) > 0:
            self.bench.fall_asleep()
            try:
                await self.wait_while_open(self._clock.sleep(left_s))
            finally:
                self.bench.wake_up()

    def give_way_to_readings(self, group: str) -> NoReturn:
        """See :meth:`Workbench.behind_readings`. Raises :class:`GivenBack`."""
        raise GivenBack(self.bench.behind_readings(group, self._clock.now()).why)

    # --- requests -----------------------------------------------------------------------------

    async def send(self, request: Request, permit: FetchPermit) -> FetchResult | None:
        """Wait until the group may be asked, send the request, log it, and set the group's next time.

        Returns ``None`` without sending if the robots copy ran out while the request waited: robots.txt is to be
        requested first. Raises :class:`Unsent` without sending: :class:`Blocked` if the operator has blocked the site,
        :class:`GivenBack` if the group should be given back: until its domain or its address has room, until the host
        may be asked by its hours, or while the look-up of its name takes long.

        A request that is lost because the server was closing its idle connection is sent once more, on a new
        connection. So is one whose answer asks for another signature. Both are requests like any other: each is logged
        and followed by its pause.

        Cancellation while the request waits sends nothing. It leaves no trace, but the group keeps a pause of its
        address that it was waiting for. Cancellation in flight, and an error of the fetcher, count as sent: the request
        is logged as failed, and the pause runs from then on.
        """
        await self.pause(permit.group)
        ticket = self.bench.open(permit.group, host_of(request.url))
        try:
            answer = await self._send_once(request, permit, ticket)
            if isinstance(answer, Failed) and answer.kind in _SENT_AGAIN:
                answer = await self._send_once(request, permit, ticket, fresh=True)
            return answer
        finally:
            now = self._clock.now()
            self.bench.close(ticket, now)
            self._wake(now)

    async def _send_once(
        self, request: Request, permit: FetchPermit, ticket: Ticket, *, fresh: bool = False
    ) -> FetchResult | None:
        """As :meth:`send`, without the second request.

        A host may have several addresses. If no connection to the first is possible, nothing was sent, and the request
        waits for a place at the next one. The book remembers the addresses that have refused, also if the group is
        given back meanwhile: so a host whose addresses all refuse is found to fail.
        """
        refusals: list[Failed] = []
        while True:
            address = await self._wait_to_send(ticket)
            if self.is_blocked(request.url):
                raise Blocked
            now = self._clock.now()
            if now >= permit.valid_until:
                return None
            sent = msgspec.structs.replace(
                request, address=address, group=permit.group, fresh=fresh, body_waits=self._body_waits
            )
            answer = await self._fetch(sent, permit, ticket, now)
            if isinstance(answer, Failed) and answer.unsent and address is not None:
                refusals.append(answer)
                assert self._book is not None, "it has the address"
                if self._book.refused(ticket.host, address) and len(refusals) < _MOST_ADDRESSES:
                    now = self._clock.now()
                    self.bench.unsent(ticket, now, answer.finished_at - answer.started_at)
                    self._wake(now)
                    continue
                answer = _decisive(refusals)
            self._log_answer(request, permit, ticket, answer)
            return answer

    async def _fetch(self, request: Request, permit: FetchPermit, ticket: Ticket, now: float) -> FetchResult:
        """Send a request that may go. One that is cancelled, or fails with an error of the fetcher, is logged."""
        self._in_flight += 1
        try:
            return await self._fetcher.fetch(request)
        except BaseException as error:
            self._log_answer(request, permit, ticket, _no_answer(request, now, self._clock.now(), error))
            raise
        finally:
            self._in_flight -= 1

    async def _wait_to_send(self, ticket: Ticket) -> str | None:
        """Wait until all that holds a request back is over. Returns the address to send it to.

        It is empty if the host has none, and ``None`` if the operator has chosen it. Raises :class:`GivenBack`.
        """
        book = self._book if self._book is not None and self._book.is_limited(ticket.host) else None
        while True:
            now = self._clock.now()
            if now > self._orders_known_until or not self._lease.covers_request():
                await self._wait_for_orders_or_lease(ticket, now)
                continue
            address = "" if book is None else book.cached(ticket.host)
            reply = self.bench.ask(ticket, now, address)
            self._wake(now)
            match reply:
                case Go():
                    return None if book is None else ticket.target
                case Wait(until):
                    await self._wait(ticket, until)
                case LookUp():
                    assert book is not None, "it does not know the host"
                    await self._look_up(book, ticket)
                case GiveBack(until, why):
                    operator_log.given_back(ticket.group, until, why)
                    raise GivenBack(why)
                case _:
                    assert_never(reply)

    async def _wait_for_orders_or_lease(self, ticket: Ticket, now: float) -> None:
        """Wait until requests may be sent. A slot that was granted before is given back then, as time has passed.

        So the requests that are sent now are the pauses apart that their address and domain demand. Meanwhile the slot
        is of no use to others, which would all wait here and lose their turns.
        """
        if now > self._orders_known_until:
            self._orders_read.clear()
            await self.wait_while_open(self._orders_read.wait())
        else:
            await self.wait_while_open(self._lease.renewed())
        now = self._clock.now()
        self.bench.put_back(ticket, now)
        self._wake(now)

    async def _wait(self, ticket: Ticket, until: float) -> None:
        if until < math.inf:
            await self.wait_until(until)
            return
        waiter = ticket.waiter = self._loop.create_future()
        try:
            await self.wait_while_open(waiter)
        finally:
            ticket.waiter = None

    async def _look_up(self, book: AddressBook, ticket: Ticket) -> None:
        """Look a host up, for two seconds at most: a stranger's name server may be slow, too."""
        in_time, taken = True, None
        try:
            async with asyncio.timeout(LOOK_UP_S):
                await self.wait_while_open(book.look_up(ticket.host))
        except TimeoutError:
            in_time = False
        except AddressTaken as error:
            taken = error
        now = self._clock.now()
        if taken is None:
            late = self.bench.looked_up(ticket, now, in_time=in_time)
        else:
            late = self.bench.address_taken(ticket, now, taken.network, taken.until)
        self._wake(now)
        if late is not None:
            raise GivenBack(late.why)

    def _wake(self, now: float) -> None:
        """Let the tickets that may go now ask again, and set the timer for the next ones."""
        for ticket in self.bench.woken(now):
            if isinstance(ticket.waiter, asyncio.Future) and not ticket.waiter.done():
                ticket.waiter.set_result(None)
        next_at = self.bench.next_at()
        if next_at == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = next_at
        self._timer = None if next_at == math.inf else self._loop.call_later(next_at - now, self._wake_in_time)

    def _wake_in_time(self) -> None:
        self._timer, self._timer_at = None, math.inf  # the loop may call this a little early: it is set again then
        self._wake(self._clock.now())

    def _body_waits(self, group: str) -> None:
        now = self._clock.now()
        self.bench.body_waits(group, now)
        self._wake(now)

    def begin_reading(self, group: str) -> None:
        """The answer to the last request of ``group`` is being read until :meth:`end_reading`. To be called at once."""
        self.bench.begin_reading(group, self._clock.now())

    def end_reading(self, group: str) -> None:
        """The answer to a request of ``group`` has been read."""
        now = self._clock.now()
        self._memory.release(group)
        self.bench.end_reading(group, now)
        self._wake(now)

    def _log_answer(self, request: Request, permit: FetchPermit, ticket: Ticket, answer: FetchResult) -> None:
        """Set the pace that follows from an answer, and log the request.

        The lag of the own event loop is no slowness of the server: the pause does not count it, and the log says it.
        :meth:`send` wakes those that wait for the slot as soon as it goes on.
        """
        facts = facts_of(answer, self._lag.in_answer(answer.started_at, answer.finished_at))
        now = self._clock.now()
        if (waits_s := self.bench.charge(ticket.domain, answer.loop_s, now)) > 0:
            operator_log.loop_used(ticket.domain, answer.loop_s, waits_s)
        before = self.bench.pace(permit.group)
        pace = self.bench.done(ticket, now, facts, permit.crawl_delay_s)
        if isinstance(answer, Failed):
            operator_log.request_failed(request.shown_url or request.url, answer)
        operator_log.paced(permit.group, before, pace)
        over_at = self._lease.over_by(answer.started_at, answer.finished_at)
        self._log.add_request(_row(request, permit, answer, over_at, facts), permit.group, pace)
        if self._connections is not None:
            self._connections.expect(permit.group, pace.next_at - now)


def _decisive(failures: Sequence[Failed]) -> Failed:
    """Of the failures of several addresses the last one that is not the crawler's own refusal, if there is one."""
    return next((failed for failed in reversed(failures) if failed.kind is not ErrorKind.ADDRESS), failures[-1])


def _no_answer(request: Request, started_at: float, ended_at: float, error: BaseException) -> Failed:
    if isinstance(error, asyncio.CancelledError | CrawlerError):  # the crawl ends, and the site has not failed
        return Failed(request.url, started_at, ended_at, kind=ErrorKind.STOPPED)
    # The message of the error may repeat a secret that the URL holds.
    return Failed(request.url, started_at, ended_at, kind=ErrorKind.FAULT, detail=type(error).__name__)


def _row(request: Request, permit: FetchPermit, answer: FetchResult, over_at: float, facts: PauseFacts) -> RequestRow:
    """The row of a request in the log. The URL may hold a secret, which the target of a redirect may repeat."""
    location = answer.location if isinstance(answer, Redirected) else None
    return RequestRow(
        site_id=permit.site_id,
        path=path_of(request.shown_url or request.url),
        purpose=request.purpose,
        started_at=answer.started_at,
        finished_at=over_at,
        status=answer.status,
        error=answer.error if isinstance(answer, Failed) else None,
        bytes=answer.wire_bytes,
        retry_after_s=facts.retry_after_s,
        robots_id=permit.robots_id,
        verdict_line=permit.verdict_line,
        for_site_id=permit.for_site_id,
        location=location if location is None or request.shown_url is None else "-",
        lag_s=facts.lag_s,
        tls=answer.tls,
        address=answer.address or None,
    )
