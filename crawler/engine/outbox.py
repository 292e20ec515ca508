"""What the workers have brought since the last turn of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from crawler.frontier.decide import Outcome
from crawler.frontier.politeness import Pace
from crawler.model import Recorded
from crawler.store.protocols import ClaimLimits, CommitBatch, RequestRow, RobotsNews


class Waiters(dict[int, asyncio.Future[int]]):
    """Who waits, by site, for the number that the store gives a robots copy."""

    def wait(self, site_id: int) -> asyncio.Future[int]:
        waiter = self[site_id] = asyncio.get_running_loop().create_future()
        return waiter

    def tell(self, robots_ids: Mapping[int, int]) -> None:
        for site_id, robots_id in robots_ids.items():
            waiter = self.pop(site_id, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(robots_id)


class Load(NamedTuple):
    """Bounds on what is on hand, each by itself."""

    outcomes: int
    links: int  # in these: a page with a thousand takes as much memory as dozens of others
    bytes: int  # of their bodies


@dataclass(slots=True)
class Outbox:
    """What the next turn takes in."""

    outcomes: list[Outcome] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    robots: list[RobotsNews] = field(default_factory=list)
    paces: dict[str, Pace] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)
    visited: set[str] = field(default_factory=set)
    recorded: list[Recorded] = field(default_factory=list)  # for the archive, which has it before the store
    since: float | None = None
    links: int = 0  # in outcomes
    bytes: int = 0  # of the bodies in outcomes, and of what is recorded

    def reaches(self, load: Load) -> bool:
        """Whether so much is on hand."""
        return len(self.outcomes) >= load.outcomes or self.links >= load.links or self.bytes >= load.bytes

    def book(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.links += len(outcome.links)
        self.bytes += 0 if outcome.page is None or outcome.page.body is None else len(outcome.page.body)

    def record(self, recorded: Recorded) -> None:
        exchange = recorded.answer.exchange
        self.recorded.append(recorded)
        self.bytes += 0 if exchange is None else len(exchange.response)

    def take_back(self, sent: Outbox) -> None:
        """What was sent and not committed, with what was learnt by it; the rest of ``sent`` is void with its claims."""
        self.requests[:0] = sent.requests
        self.paces = sent.paces | self.paces

    def late(self, now: float) -> CommitBatch:
        """As much of it as holds without a lease."""
        return CommitBatch(now, ClaimLimits(0), requests=self.requests, paces=self.paces)

    def turn(self, now: float, limits: ClaimLimits, worst_lag_s: float) -> CommitBatch:
        """All of it, for the store to take in."""
        return CommitBatch(
            now,
            limits,
            self.outcomes,
            self.requests,
            self.robots,
            self.paces,
            self.released,
            sorted(self.visited),
            worst_lag_s=worst_lag_s,
        )
