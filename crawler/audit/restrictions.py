"""What the operator had asked of the crawls, as far as an audit can hold them to it: when nothing was to be sent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Self

from crawler.audit.records import TOLERANCE_S, LoggedRequest
from crawler.formatting import instant, seconds
from crawler.frontier.operator import Command, Order
from crawler.url import host_of

#: How long a crawl may take to hear of a pause, in seconds; ``docs/dashboard.md`` promises it.
PAUSE_GRACE_S = 0.5


class Period(NamedTuple):
    """Between these times, in seconds since the epoch, nothing was to be sent."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Pauses, and blocks by name, each in the order of time and without overlap."""

    pauses: Sequence[Period] = ()
    blocks: Mapping[str, Sequence[Period]] = field(default_factory=dict)

    @classmethod
    def of(cls, orders: Iterable[Order]) -> Self:
        """A pause holds half a second after it was asked for, a block once a crawl heeded it (``done_at``); both until
        the contrary is asked, or heeded, whichever comes first: the two are times of different clocks."""
        pauses: list[Period] = []
        blocks: dict[str, list[Period]] = {}
        for order in orders:
            lifted_at = min(order.asked_at, order.done_at or inf)
            match order.command:
                case Command.PAUSE:
                    _begin(pauses, order.asked_at + PAUSE_GRACE_S)
                case Command.RESUME:
                    _end(pauses, lifted_at)
                case Command.BLOCK if order.done_at is not None:
                    _begin(blocks.setdefault(order.name, []), order.done_at)
                case Command.UNBLOCK:
                    _end(blocks.get(order.name, []), lifted_at)
                case _:
                    pass  # a block that no crawl came to heed, or the end of a run
        return cls(pauses, blocks)

    @property
    def any(self) -> bool:
        return bool(self.pauses or self.blocks)

    def broken_by(self, sent: LoggedRequest) -> tuple[str, str] | None:
        """What was required, and what was done, where a request should not have begun."""
        if span := _within(self.pauses, sent.started_at):
            asked_at = span.since - PAUSE_GRACE_S
            return f"no request while the crawl is paused, asked for at {instant(asked_at)}", _late(sent, asked_at)
        for name in (sent.site, host_of(sent.site).removesuffix(".")) if self.blocks else ():
            if span := _within(self.blocks.get(name, ()), sent.started_at):
                return f"no request to {name}, blocked since {instant(span.since)}", _late(sent, span.since)
        return None


def _begin(spans: list[Period], at: float) -> None:
    if not spans or spans[-1].until < inf:
        spans.append(Period(at, inf))


def _end(spans: list[Period], at: float) -> None:
    if spans and spans[-1].until == inf:
        spans[-1] = spans[-1]._replace(until=at)


def _within(spans: Sequence[Period], at: float) -> Period | None:
    n = bisect_right(spans, at - TOLERANCE_S, key=lambda span: span.since)
    return spans[n - 1] if n and at < spans[n - 1].until - TOLERANCE_S else None


def _late(sent: LoggedRequest, since: float) -> str:
    return f"sent {seconds(sent.started_at - since)} later"
