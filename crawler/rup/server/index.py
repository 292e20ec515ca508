"""Answers to GetIndex.

A thread makes an answer, the server reuses it for a minute, and its size counts in the rate limit.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from crawler.clock import Clock
from crawler.rup.protocol import answers
from crawler.rup.protocol.forms import GetIndex
from crawler.rup.protocol.server import Client, FormAnswer, ServerOffer, answer_index, refuse, refuse_for_now
from crawler.rup.server.own_robots import OwnRobots
from crawler.rup.server.rate_limit import RateLimiter
from crawler.rup.server.store import RupStore

#: The most changes in an answer, and how many changes count as one more request.
MAX_INDEX_CHANGES = 100_000
CHANGES_PER_REQUEST = 1000

_KEPT = 8
_KEPT_S = 60.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """The key of an answer: what it depends on, except for the time."""

    allows: Callable[[str], Callable[[str], bool]]
    agent: str
    span_s: float
    log_end: int


class IndexResponder:
    """Answers GetIndex, one request at a time."""

    def __init__(
        self, store: RupStore, offer: ServerOffer, robots: OwnRobots, clock: Clock, buckets: RateLimiter
    ) -> None:
        self._store, self._offer, self._robots, self._clock, self._buckets = store, offer, robots, clock, buckets
        self._kept: OrderedDict[_Asked, tuple[float, FormAnswer]] = OrderedDict()
        self._turn = asyncio.Lock()

    async def answer(self, asked: GetIndex, client: Client) -> FormAnswer:
        """The changes of the span that the site's robots.txt allows the client to know.

        Raises :class:`StoreError`.
        """
        if asked.span.seconds > self._offer.max_query_span.seconds:
            return answer_index(asked, self._offer, ())
        since = self._clock.now() - asked.span.seconds
        count = await self._store.count_since(since, MAX_INDEX_CHANGES)
        if count > MAX_INDEX_CHANGES:
            return refuse(400, answers.too_much(asked.span))
        wait_s = self._buckets.wait_s(client.address, self._clock.now(), count // CHANGES_PER_REQUEST)
        if wait_s > 0:
            return refuse_for_now(429, "too many large indexes for your network address", wait_s)
        allows = await self._robots.allows()
        if allows is None:
            return refuse(400, "the site's robots.txt is unavailable, so the server reports nothing for now")
        key = _Asked(allows, client.agent, asked.span.seconds, await self._store.log_end())
        async with self._turn:
            at, answer = self._kept.get(key, (0.0, None))
            if answer is None or not 0 <= self._clock.now() - at < _KEPT_S:
                changes = await self._store.changes_since(since, MAX_INDEX_CHANGES)

                def make() -> FormAnswer:
                    allowed = allows(client.agent)
                    return answer_index(asked, self._offer, (change for change in changes if allowed(change.path)))

                answer = await asyncio.to_thread(make)
                self._keep(key, answer)
        return answer

    def _keep(self, key: _Asked, answer: FormAnswer) -> None:
        self._kept[key] = (self._clock.now(), answer)
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
