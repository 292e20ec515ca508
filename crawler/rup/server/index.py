"""Answers to GetIndex. A thread makes an answer, one at a time, and its size counts in the rate limit."""

from __future__ import annotations

import asyncio

from crawler.clock import Clock
from crawler.rup.protocol.forms import GetIndex
from crawler.rup.protocol.server import TOO_MUCH, Client, FormAnswer, ServerOffer, answer_index, refuse, refuse_for_now
from crawler.rup.server.own_robots import OwnRobots
from crawler.rup.server.rate_limit import RateLimiter
from crawler.rup.server.store import RupStore

#: The most changes in an answer, and how many changes count as one more request.
MAX_INDEX_CHANGES = 100_000
CHANGES_PER_REQUEST = 1000


class IndexResponder:
    """Answers GetIndex, one request at a time."""

    def __init__(
        self, store: RupStore, offer: ServerOffer, robots: OwnRobots, clock: Clock, buckets: RateLimiter
    ) -> None:
        self._store, self._offer, self._robots, self._clock, self._buckets = store, offer, robots, clock, buckets
        self._turn = asyncio.Lock()

    async def answer(self, asked: GetIndex, client: Client) -> FormAnswer:
        """The changes of the span that the site's robots.txt allows the client to know.

        Raises :class:`StoreError`.
        """
        most = self._offer.max_query_span
        if asked.span.seconds > most.seconds:
            return refuse(400, f"Span={asked.span} is longer than MaxQuerySpan: {most}")
        since = self._clock.now() - asked.span.seconds
        count = await self._store.count_since(since, MAX_INDEX_CHANGES)
        if count > MAX_INDEX_CHANGES:
            return refuse(400, TOO_MUCH.format(asked.span))
        wait_s = self._buckets.wait_s(client.address, self._clock.now(), count // CHANGES_PER_REQUEST)
        if wait_s > 0:
            return refuse_for_now(429, "too many large indexes for your network address", wait_s)
        allows = await self._robots.allows()
        if allows is None:
            return refuse(400, "the site's robots.txt is unavailable, so the server reports nothing for now")
        allowed = allows(client.agent)
        async with self._turn:
            changes = await self._store.changes_since(since, MAX_INDEX_CHANGES)
            return await asyncio.to_thread(
                lambda: answer_index(asked, self._offer, (each for each in changes if allowed(each.path)))
            )
