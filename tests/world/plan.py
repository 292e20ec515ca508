"""The disturbances of a world, drawn from its seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from enum import StrEnum

from crawler.frontier.politeness import GroupBy, PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.model import Reading
from crawler.robots.response import RobotsSettings

DAY_S = 86_400.0

#: How long a request of the crawler may take, in seconds: longer than a server of these webs keeps silent.
LONGEST_REQUEST_S = 65.0


class Act(StrEnum):
    """The kinds of disturbances."""

    KILL = "kill"  # at a moment
    KILL_AT_CALL = "kill at call"  # at one of the next calls of the store
    FULL = "disk full"  # for a while
    STOP = "stop"
    PAUSE = "pause"  # and resume after a while
    BLOCK = "block"  # a host, and unblock it after a while
    JUMP = "clock jumps"  # noticed by the next process
    STALL = "stall"  # of one of several workers, for a while: its lease may run out


#: The acts that any world may have.
_COMMON = tuple(act for act in Act if act is not Act.STALL)


@dataclass(frozen=True, slots=True)
class Event:
    """A disturbance at ``at_s``, in seconds since the world began. ``amount`` is a number of seconds or of calls.

    ``host`` also chooses the worker that is killed or stalls.
    """

    at_s: float
    act: Act
    amount: float = 0.0
    host: int = 0

    def __str__(self) -> str:
        return f"{self.at_s:.3f} s: {self.act} ({self.amount:g}, host {self.host})"


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole world: everything in it follows from these values."""

    seed: int
    hosts: int
    days: float  # until the web and the operator come to rest; 0: an hour, and no page is visited twice
    is_quiet: bool  # the web is constant, and nothing disturbs the crawl
    events: tuple[Event, ...] = ()
    politeness: PolitenessSettings = field(default_factory=PolitenessSettings)
    robots: RobotsSettings = field(default_factory=RobotsSettings)
    fetch: RequestSettings = field(default_factory=lambda: RequestSettings(total_timeout_s=LONGEST_REQUEST_S))
    concurrency: int = 64
    look_every_s: float = 5.0  # how often the crawl reads the orders of the operator
    workers: int = 1  # processes that crawl at the same time

    @property
    def rests_at_s(self) -> float:
        """The time from which on nothing changes any more."""
        return 0.0 if self.is_quiet else (self.days * DAY_S or 3600.0)

    @property
    def most_calls(self) -> float:
        """The calls of the store that one process of a small world makes at most."""
        return 60_000 * self.workers if self.hosts <= 100 and not self.days else math.inf

    def without(self, dropped: range) -> Plan:
        """The plan without some of its events."""
        return replace(self, events=tuple(e for n, e in enumerate(self.events) if n not in dropped))


def draw_plan(
    seed: int, hosts: int, days: float = 0.0, *, is_quiet: bool | None = None, workers: int | None = None
) -> Plan:
    """The plan of the world with this seed.

    One world in three is quiet, unless ``is_quiet`` says so. One world in four has two or three ``workers``.
    """
    chance = random.Random(f"plan {seed}")
    quiet = chance.random() < 1 / 3 and not days
    plan = Plan(
        seed,
        hosts,
        days,
        quiet if is_quiet is None else is_quiet,
        politeness=PolitenessSettings(
            delay_s=chance.choice((0.5, 1.0, 2.0, 5.0)),
            slow_factor=chance.choice((0.0, 2.0, 5.0)),
            crawl_delay_cap_s=chance.choice((None, None, 15.0)),
            backoff_first_s=chance.choice((5.0, 10.0)),
            backoff_max_s=chance.choice((60.0, 3600.0)),
            group=chance.choice((GroupBy.HOST, GroupBy.HOST, GroupBy.DOMAIN)),
        ),
        robots=RobotsSettings(
            reading=chance.choice((Reading.STRICT, Reading.STRICT, Reading.RFC9309)),
            min_fresh_s=chance.choice((20.0, 300.0)),
            give_up_after_s=chance.choice((3600.0, 20_000.0)) if not days else 3 * DAY_S,
        ),
        concurrency=chance.choice((1, 4, 16, 64)) if hosts < 100 else 256,
        look_every_s=5.0 if not days else 600.0,
    )
    chance = random.Random(f"workers {seed}")
    drawn = chance.choice((2, 3)) if chance.random() < 0.25 else 1
    plan = replace(plan, workers=drawn if workers is None else workers)
    if plan.workers > 1 and not days:  # workers that wait renew their leases all the time
        plan = replace(plan, robots=replace(plan.robots, give_up_after_s=3600.0))
    return plan if plan.is_quiet else replace(plan, events=_draw_events(plan))


def _draw_events(plan: Plan) -> tuple[Event, ...]:
    chance = random.Random(f"events {plan.seed}")
    count = chance.randint(1, 8) if not plan.days else math.ceil(3 * plan.days)
    acts = (*_COMMON, Act.KILL, Act.KILL_AT_CALL, Act.KILL_AT_CALL)
    events = [_draw_event(chance, plan, chance.choice(acts)) for _ in range(count)]
    if plan.workers > 1:
        events += [_draw_event(chance, plan, Act.STALL) for _ in range(chance.randint(1, 4))]
    return tuple(sorted(events, key=lambda event: event.at_s))


def _draw_event(chance: random.Random, plan: Plan, act: Act) -> Event:
    at_s = 10 ** chance.uniform(-1, 2.7) if chance.random() < 0.9 or not plan.days else 0.0
    if plan.days:
        at_s = chance.uniform(0, plan.days * DAY_S)
    amount = 0.0
    match act:
        case Act.KILL_AT_CALL:
            amount = float(chance.randint(1, 120))
        case Act.FULL | Act.PAUSE | Act.BLOCK:
            amount = 10 ** chance.uniform(-0.5, 3)
        case Act.STALL:
            amount = 10 ** chance.uniform(0.5, 3.3)
        case Act.JUMP:
            amount = chance.choice((-1, 1)) * 10 ** chance.uniform(0, 4.5)
    return Event(at_s, act, amount, chance.randrange(plan.hosts))
