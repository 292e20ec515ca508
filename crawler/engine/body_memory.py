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

#: The octets of large bodies of the proven domains, and as many of all others. Parser processes and the
#: store hold copies of a few of them.
MOST_OCTETS = 64 << 20
#: If so many bodies of one of the two kinds wait, or have waited and were not read yet, no further page of domains of
#: that kind should be requested. Each that waits has up to half a megabyte in memory.
MOST_WAITING = 64


class _Body(msgspec.Struct, eq=False):
    """A large body that was asked for: of a proven domain, or of another one."""

    is_proven: bool
    domain: str
    octets: int
    granted: asyncio.Future[None]
    has_waited: bool = False


class BodyMemory:
    """Says which large body may be received next.

    Invariants:

    1. The large bodies of proven domains take at most ``MOST_OCTETS``, and so do those of
       all other domains. A single body is admitted in any case.
    2. A domain holds at most a quarter of that, or one body.
    3. Bodies get their memory in the order in which they asked, but for those of a domain that holds its quarter.
    4. A body asks once, for all that it may need. So no two bodies wait for each other.

    An event costs O(n) in the large bodies, which are few.
    """

    #: How many requests may wait for memory, beside those that hold slots.
    most_waiting = 2 * MOST_WAITING

    def __init__(self, is_proven: Callable[[str], bool] = lambda _: False, most: int = MOST_OCTETS) -> None:
        """``is_proven`` says of a registered domain whether several of its documents in a row were read fast."""
        self._is_proven = is_proven
        self._most = most
        #: By politeness group, which has one request at a time, in the order in which they asked.
        self._bodies: dict[str, _Body] = {}

    def has_room(self, domain: str) -> bool:
        """Whether another page of a registered domain should be requested, by how many bodies wait."""
        return not self._bodies or sum(body.has_waited for body in self._of(self._is_proven(domain))) < MOST_WAITING

    async def hold(self, request: Request, octets: int) -> None:
        """Wait for the memory of the body of a request, which may have so many octets."""
        group, domain = request.group, registered_domain(host_of(request.url))
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.release(group)
        body = self._bodies[group] = _Body(self._is_proven(domain), domain, octets, granted)
        self._serve(body.is_proven)
        if not granted.done():
            body.has_waited = True
            request.body_waits(group)
        try:
            await granted
        except asyncio.CancelledError:
            self.release(group)
            raise

    def shrink(self, group: str, octets: int) -> None:
        """The body of ``group`` has been received, and takes so many octets."""
        if (body := self._bodies.get(group)) is not None:
            body.octets = octets
            self._serve(body.is_proven)

    def release(self, group: str) -> None:
        """The body of ``group``, if there is one, has been read, or is not wanted."""
        if (body := self._bodies.pop(group, None)) is not None:
            self._serve(body.is_proven)

    def _of(self, is_proven: bool) -> list[_Body]:
        return [body for body in self._bodies.values() if body.is_proven is is_proven]

    def _serve(self, is_proven: bool) -> None:
        """Let the bodies of one of the two kinds have the memory that is free."""
        bodies, held, total = self._of(is_proven), Counter[str](), 0  # octets, by domain and in all
        for body in bodies:
            if body.granted.done() and not body.granted.cancelled():
                held[body.domain] += body.octets
                total += body.octets
        for body in bodies:
            its_domain = held[body.domain]
            is_full = its_domain and its_domain + body.octets > self._most // 4
            if is_full or body.granted.done():
                continue
            if total and total + body.octets > self._most:
                return
            held[body.domain] += body.octets
            total += body.octets
            body.granted.set_result(None)
