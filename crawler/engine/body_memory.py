"""The memory for large bodies: the octets of answers from the socket until they have been read, over all domains.

A request that was sent cannot be taken back, and its answer may be as long as the settings permit. So the bound is at
the socket: the fetcher asks for memory before it receives a large body, and receives nothing of it until it has the
memory. The server waits meanwhile, as for any slow receiver.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import msgspec

from crawler.model import Request
from crawler.url import host_of, registered_domain

#: The octets of large bodies of the domains that were read fast, and as many of all others. Parser processes and the
#: store hold copies of a few of them.
MOST_OCTETS = 64 << 20
#: If so many bodies of one of the two kinds wait, or have waited and were not read yet, no further page of domains of
#: that kind should be requested. Each that waits has up to half a megabyte in memory.
MOST_WAITING = 64


class _Body(msgspec.Struct, eq=False):
    """A large body that was asked for."""

    domain: str
    octets: int
    granted: asyncio.Future[None]
    has_waited: bool = False


class _Share:
    """The bodies of the domains that were read fast, or of all others, with a bound of their own."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._held_by: Counter[str] = Counter()  # octets, by domain
        self._waiting: list[_Body] = []  # the one that has waited longest is first
        self.waited = 0  # bodies that wait, or have waited and were not read yet

    def add(self, body: _Body) -> None:
        self._waiting.append(body)
        self._serve()
        if not body.granted.done():
            body.has_waited = True
            self.waited += 1

    def remove(self, body: _Body) -> None:
        """A body was read, or is not wanted."""
        self.waited -= body.has_waited
        self.change(body, 0)

    def change(self, body: _Body, octets: int) -> None:
        """A body takes so many octets from now on, or none; one that waits, waits no more."""
        if body in self._waiting:
            self._waiting.remove(body)
        else:
            self._count(body.domain, octets - body.octets)
            body.octets = octets
        self._serve()

    def _serve(self) -> None:
        for body in tuple(self._waiting):
            its_domain = self._held_by[body.domain]
            is_full = its_domain and its_domain + body.octets > self._most // 4
            if is_full or body.granted.cancelled():  # its task runs later, and takes it away
                continue
            if self._held and self._held + body.octets > self._most:
                return
            self._waiting.remove(body)
            self._count(body.domain, body.octets)
            body.granted.set_result(None)

    def _count(self, domain: str, octets: int) -> None:
        self._held += octets
        self._held_by[domain] += octets
        if not self._held_by[domain]:
            del self._held_by[domain]


class BodyMemory:
    """Says which large body may be received next.

    Invariants:

    1. The large bodies of domains whose last document was read fast take at most ``MOST_OCTETS``, and so do those of
       all other domains. A single body is admitted in any case.
    2. A domain holds at most a quarter of that, or one body.
    3. Bodies get their memory in the order in which they asked, but for those of a domain that holds its quarter.
    4. A body asks once, for all that it may need. So no two bodies wait for each other.
    """

    #: How many requests may wait for memory, beside those that hold slots.
    most_waiting = 2 * MOST_WAITING

    def __init__(self, is_fast: Callable[[str], bool] = lambda _: False, most: int = MOST_OCTETS) -> None:
        """``is_fast`` says of a registered domain whether its last document was read fast."""
        self._is_fast = is_fast
        self._shares = {True: _Share(most), False: _Share(most)}
        self._bodies: dict[str, tuple[_Share, _Body]] = {}  # by politeness group, which has one request at a time

    def has_room(self, domain: str) -> bool:
        """Whether another page of a registered domain should be requested, by how many bodies wait."""
        return self._shares[self._is_fast(domain)].waited < MOST_WAITING

    async def hold(self, request: Request, octets: int) -> None:
        """Wait for the memory of the body of a request, which may have so many octets."""
        group, domain = request.group, registered_domain(host_of(request.url))
        share = self._shares[self._is_fast(domain)]
        body = _Body(domain, octets, asyncio.get_running_loop().create_future())
        self.release(group)
        self._bodies[group] = share, body
        share.add(body)
        if not body.granted.done():
            request.body_waits(group)
        try:
            await body.granted
        except asyncio.CancelledError:
            self.release(group)
            raise

    def shrink(self, group: str, octets: int) -> None:
        """The body of ``group`` has been received, and takes so many octets."""
        if group in self._bodies:
            share, body = self._bodies[group]
            share.change(body, octets)

    def release(self, group: str) -> None:
        """The body of ``group``, if there is one, has been read, or is not wanted."""
        if (known := self._bodies.pop(group, None)) is not None:
            share, body = known
            share.remove(body)
