"""Answers to robots, within a rate for each network address: a token bucket for each, in bounded memory.

A thread makes an answer to GetIndex, one at a time, and its size counts in the rate.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from crawler.rup.protocol.forms import BadForm, GetIndex, Leave, ModifyPreferences, RupRequest
from crawler.rup.protocol.server import (
    TOO_MUCH,
    Client,
    FormAnswer,
    Known,
    answer_index,
    decide,
    refuse,
)
from crawler.rup.server.publish import Publisher


@dataclass(slots=True)
class RateLimiter:
    """Allows ``burst`` requests at once, then ``per_s`` per second.

    It forgets the idlest of more than ``most`` addresses.
    """

    burst: float = 120
    per_s: float = 2
    most: int = 10_000
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)  # tokens, and when

    def wait_s(self, address: str, now: float, cost: float = 1) -> float:
        """Seconds until the address may send a request of weight ``cost`` (at most ``burst``); 0 if it may now."""
        tokens, at = self._levels.pop(address, (self.burst, now))
        tokens = min(self.burst, tokens + max(0.0, now - at) * self.per_s)
        is_granted = tokens >= cost
        self._levels[address] = (tokens - cost if is_granted else tokens, now)
        if len(self._levels) > self.most:
            self._levels.popitem(last=False)
        return 0.0 if is_granted else (cost - tokens) / self.per_s


def client_network(address: str) -> str:
    """The address that stands for a client.

    For IPv6 it is the network of 64 bits, because a client has a whole network.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)


#: The most changes in an answer, and how many changes count as one more request.
MAX_INDEX_CHANGES = 100_000
CHANGES_PER_REQUEST = 1000


@dataclass(frozen=True, slots=True)
class Responder:
    """Answers the requests of robots to the server of ``publisher``. Its methods raise :class:`StoreError`."""

    publisher: Publisher
    limiter: RateLimiter = field(default_factory=RateLimiter)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def refusal(self, client: Client, cost: float = 1, what: str = "requests") -> FormAnswer | None:
        """The answer to a client that has sent too much; ``None`` if it may send a request of this cost."""
        wait_s = self.limiter.wait_s(client.address, self.publisher.clock.now(), cost)
        return refuse(429, f"too many {what} from your network address", wait_s) if wait_s > 0 else None

    async def answer(self, asked: RupRequest | BadForm, client: Client, *, may_change: bool = True) -> FormAnswer:
        """The answer to a request. One about a registration is carried out in one transaction if it ``may_change``."""
        if isinstance(asked, GetIndex):
            return await self._index(asked, client)
        store, known = self.publisher.store, Known()
        async with store.transaction():
            if isinstance(asked, Leave):
                known = Known(await store.registration_of_token(asked.token))
            elif not isinstance(asked, BadForm):
                new_email = asked.new_email if isinstance(asked, ModifyPreferences) else None
                known = await store.known(asked.email, new_email, client.address)
            answer, changed = decide(
                asked,
                known,
                client,
                self.publisher.offer,
                now=self.publisher.clock.now(),
                new_key=secrets.token_urlsafe(24),
                new_token=secrets.token_urlsafe(24),
            )
            if not may_change:
                return answer
            for registration in changed:
                await store.put(registration)
        if changed:
            self.publisher.report_now()
        return answer

    async def _index(self, asked: GetIndex, client: Client) -> FormAnswer:
        """The changes of the span that the site's robots.txt allows the client to know."""
        offer, store = self.publisher.offer, self.publisher.store
        if asked.span.seconds > offer.max_query_span.seconds:
            return refuse(400, f"Span={asked.span} is longer than MaxQuerySpan: {offer.max_query_span}")
        since = self.publisher.clock.now() - asked.span.seconds
        count: int = await store.value("count_since", found_at=since, limit=MAX_INDEX_CHANGES + 1)
        if count > MAX_INDEX_CHANGES:
            return refuse(400, TOO_MUCH.format(asked.span))
        if (refusal := self.refusal(client, count // CHANGES_PER_REQUEST, "large indexes")) is not None:
            return refusal
        allows = await self.publisher.robots.allows()
        if allows is None:
            return refuse(400, "the site's robots.txt is unavailable, so the server reports nothing for now")
        allowed = allows(client.agent)
        async with self._turn:
            changes = await store.changes_since(since, MAX_INDEX_CHANGES)
            return await asyncio.to_thread(
                lambda: answer_index(asked, offer, (each for each in changes if allowed(each.path)))
            )
