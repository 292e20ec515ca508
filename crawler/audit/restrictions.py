"""The periods in which the operator's orders forbade requests (pure)."""

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

#: How long a crawl may take to obey a pause, in seconds; ``docs/dashboard.md`` promises it.
PAUSE_GRACE_S = 0.5


class Period(NamedTuple):
    """A period without requests, in seconds since the epoch."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The pauses of the crawl, and the blocks of each host or site. Periods are in order and do not overlap."""

    pauses: Sequence[Period] = ()
    blocks: Mapping[str, Sequence[Period]] = field(default_factory=dict)

    @classmethod
    def from_orders(cls, orders: Iterable[Order]) -> Self:
        """The restrictions that follow from ``orders``, which are in the order of their numbers.

        A pause begins :data:`PAUSE_GRACE_S` after the order; a block begins when a crawl has carried it out
        (``done_at``). If none has, the block begins like a pause: every request after it is against the order. Either
        ends when the opposite order is given or carried out, whichever is earlier: the two times come from different
        clocks.
        """
        pauses: list[Period] = []
        blocks: dict[str, list[Period]] = {}
        for order in orders:
            lifted_at = min(order.asked_at, order.done_at or inf)
            match order.command:
                case Command.PAUSE:
                    _begin(pauses, order.asked_at + PAUSE_GRACE_S)
                case Command.RESUME:
                    _end(pauses, lifted_at)
                case Command.BLOCK:
                    begins = order.asked_at + PAUSE_GRACE_S if order.done_at is None else order.done_at
                    _begin(blocks.setdefault(order.name, []), begins)
                case Command.UNBLOCK:
                    _end(blocks.get(order.name, []), lifted_at)
                case _:
                    pass  # the order to stop a run
        return cls(pauses, blocks)

    @property
    def any(self) -> bool:
        return bool(self.pauses or self.blocks)

    def violation_by(self, request: LoggedRequest) -> tuple[str, str] | None:
        """The requirement and the fact, if ``request`` began in a forbidden period."""
        if period := _containing(self.pauses, request.started_at):
            asked_at = period.since - PAUSE_GRACE_S
            return f"no request while the crawl is paused, ordered at {instant(asked_at)}", _late(request, asked_at)
        for name in (request.site, host_of(request.site).removesuffix(".")) if self.blocks else ():
            if period := _containing(self.blocks.get(name, ()), request.started_at):
                return f"no request to {name}, blocked since {instant(period.since)}", _late(request, period.since)
        return None


def _begin(periods: list[Period], at: float) -> None:
    if not periods or periods[-1].until < inf:
        periods.append(Period(at, inf))


def _end(periods: list[Period], at: float) -> None:
    if periods and periods[-1].until == inf:
        last = periods.pop()
        if last.since < at:
            periods.append(Period(last.since, at))


def _containing(periods: Sequence[Period], at: float) -> Period | None:
    n = bisect_right(periods, at - TOLERANCE_S, key=lambda period: period.since)
    return periods[n - 1] if n and at < periods[n - 1].until - TOLERANCE_S else None


def _late(request: LoggedRequest, since: float) -> str:
    return f"sent {seconds(request.started_at - since)} later"
