"""The invariants of the workbench hold for drawn webs, whatever is asked, answered, held and cancelled, and when."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from crawler.engine.workbench import LOOK_UP_S, GiveBack, Go, LookUp, Ticket, Wait, Workbench
from crawler.frontier.politeness import Pace, PauseFacts, PolitenessSettings
from crawler.url import registered_domain

NOW = 1_000_000.0
_MOST_WAITING_OF_DOMAIN, _MOST_WAITING_AT_ADDRESS = 16, 64


@dataclass
class Web:
    """Groups, each with the address of its host, the time that its answers take, and the number of its requests."""

    address: dict[str, str]
    took_s: dict[str, float]
    requests: int


@dataclass
class Crawl:
    """Drives a workbench through a web by events at drawn times, and checks each request that is let go."""

    web: Web
    settings: PolitenessSettings
    slots: int
    chance: random.Random
    now: float = NOW
    sent: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.bench = Workbench(self.settings, self.slots, lambda domain: domain not in self.full)
        self.full: set[str] = set()  # domains without room for a further answer
        self.held = False
        self.known: set[str] = set()  # hosts that were looked up
        self.looking_up = 0
        self.in_flight: dict[Ticket, float] = {}
        self.stored: dict[str, Pace] = {}
        self.over_at: dict[str, float] = {}  # when the last request of a group was answered
        self.started_at: dict[str, float] = {}  # the last request to an address
        self.asked: dict[str, set[str]] = defaultdict(set)  # groups that have come to an address
        self.queues: dict[tuple[str, str], list[Ticket]] = defaultdict(list)  # waiting, by domain and address
        self.numbers = count()
        self.events: list[tuple[float, int, str, object]] = []

    def run(self) -> None:
        """Crawl to the end. Fails if a request is let go too early, or never."""
        for group in self.web.address:
            self.at(self.now + self.chance.uniform(0, 5), "claim", group)
        for _ in range(3):
            since = self.now + self.chance.uniform(0, 30)
            self.at(since, "hold", True)
            self.at(since + self.chance.uniform(0, 5), "hold", False)
            domain = registered_domain(self.chance.choice(list(self.web.address)))
            self.at(since, "fill", domain)
            self.at(since + self.chance.uniform(0, 5), "empty", domain)
        while self.events or self.bench.next_at() < math.inf:
            self.step()
        assert all(self.sent[group] >= self.web.requests for group in self.web.address), "a request was never let go"

    def at(self, when: float, what: str, of: object) -> None:
        heappush(self.events, (when, next(self.numbers), what, of))

    def step(self) -> None:
        next_event = self.events[0][0] if self.events else math.inf
        self.now = max(self.now, min(next_event, self.bench.next_at()))
        if next_event <= self.now:
            _, _, what, of = heappop(self.events)
            getattr(self, what)(of)
        self.wake()

    def wake(self) -> None:
        while woken := self.bench.woken(self.now):
            for ticket in woken:
                self.again(ticket)

    # --- events -------------------------------------------------------------------------------

    def claim(self, group: str) -> None:
        if group in self.bench._groups:
            return
        self.bench.enter(group, self.stored.get(group, Pace()))
        self.ask(self.bench.open(group, group))

    def ask(self, ticket: Ticket) -> None:
        address = self.web.address[ticket.group]
        reply = self.bench.ask(ticket, self.now, address if ticket.host in self.known else None)
        queue = self.queues[ticket.domain, address]
        if ticket.waits_in is not None and ticket.target and ticket not in queue:
            queue.append(ticket)
        elif ticket.waits_in is None and ticket in queue and not isinstance(reply, Go):
            queue.remove(ticket)  # its slot was granted, and something else holds it back by now
        match reply:
            case Go():
                self.check(ticket, address)
                came_first = queue[: queue.index(ticket)] if ticket in queue else queue
                assert all(each.waits_in is None for each in came_first), "7: those that came first go first"
                if ticket in queue:
                    queue.remove(ticket)
                self.in_flight[ticket] = self.now
                self.at(self.now + self.web.took_s[ticket.group], "answer", ticket)
            case Wait(until):
                if until < math.inf:
                    self.at(until, "again", ticket)
                elif self.chance.random() < 0.05:
                    self.at(self.now + self.chance.uniform(0, 2), "cancel", ticket)
            case LookUp():
                self.looking_up += 1
                assert self.looking_up <= 256
                slow = self.chance.random() < 0.1
                self.at(self.now + (LOOK_UP_S if slow else self.chance.uniform(0, 0.5)), "found", (ticket, not slow))
            case GiveBack(until, _):
                self.give_back(ticket, until)

    def again(self, ticket: Ticket) -> None:
        group = self.bench._groups.get(ticket.group)
        if group is not None and group.ticket is ticket:
            self.ask(ticket)

    def found(self, of: tuple[Ticket, bool]) -> None:
        ticket, in_time = of
        self.looking_up -= 1
        self.known.add(ticket.host)  # a look-up that takes long goes on
        late = self.bench.looked_up(ticket, self.now, in_time=in_time)
        if late is None:
            self.ask(ticket)
        else:
            self.give_back(ticket, late.until)

    def give_back(self, ticket: Ticket, until: float) -> None:
        assert until > self.now, "a group that is given back comes later"
        self.close(ticket)
        self.at(until, "claim", ticket.group)

    def cancel(self, ticket: Ticket) -> None:
        if ticket.waits_in is not None:
            self.close(ticket)
            self.at(self.now + 1, "claim", ticket.group)

    def answer(self, ticket: Ticket) -> None:
        started_at = self.in_flight.pop(ticket)
        self.over_at[ticket.group] = self.now
        self.sent[ticket.group] += 1
        pace = self.bench.done(ticket, self.now, PauseFacts(started_at, self.now, 200), None)
        self.close(ticket)
        if self.sent[ticket.group] < self.web.requests:
            self.at(self.now if self.chance.random() < 0.5 else pace.next_at, "claim", ticket.group)

    def close(self, ticket: Ticket) -> None:
        queue = self.queues[ticket.domain, self.web.address[ticket.group]]
        if ticket in queue:
            queue.remove(ticket)
        self.bench.close(ticket, self.now)
        self.stored[ticket.group] = self.bench.leave(ticket.group)

    def hold(self, held: bool) -> None:
        self.held = held
        self.bench.hold(held)

    def fill(self, domain: str) -> None:
        self.full.add(domain)

    def empty(self, domain: str) -> None:
        """There is room again, and the store gives all groups of the domain out that nobody has."""
        self.full.discard(domain)
        for group in self.web.address:
            if registered_domain(group) == domain:
                self.at(self.now, "claim", group)

    # --- the invariants -----------------------------------------------------------------------

    def check(self, ticket: Ticket, address: str) -> None:
        """The numbers are those of the invariants in the description of :class:`Workbench`."""
        group, delay_s = ticket.group, self.settings.delay_s
        flying = list(self.in_flight)
        assert all(other.group != group for other in flying), "1: alone in its group"
        assert self.now >= self.over_at.get(group, -math.inf) + delay_s - 1e-6, "1: after the pause"
        assert not self.held, "2"
        assert ticket.domain not in self.full, "2: no room"
        assert len(flying) < self.slots, "3"
        of_domain = sum(other.domain == ticket.domain for other in flying)
        assert of_domain < max(1, math.ceil(self.slots / 4)), "4"
        at_address = sum(self.web.address[other.group] == address for other in flying)
        assert at_address < self.settings.per_address, "6"
        self.asked[address].add(group)
        if len(self.asked[address]) > 5:
            apart_s = delay_s * self.settings.workers
            assert self.now >= self.started_at.get(address, -math.inf) + apart_s - 1e-6, "6: a crowded address"
        self.started_at[address] = self.now
        waiting = [each for queue in self.queues.values() for each in queue if each.waits_in is not None]
        assert all(n <= _MOST_WAITING_OF_DOMAIN for n in Counter(each.domain for each in waiting).values()), "9"
        assert all(n <= _MOST_WAITING_AT_ADDRESS for n in Counter(each.target for each in waiting).values()), "9"


@st.composite
def crawls(draw: st.DrawFn) -> Crawl:
    chance = random.Random(draw(st.integers(0, 1 << 32)))
    domains, hosts = draw(st.sampled_from(((1, 60), (3, 40), (12, 12), (120, 1))))
    addresses = draw(st.integers(1, 20))
    names = [f"h{host}.d{domain}.test" for domain in range(domains) for host in range(hosts)]
    slow = draw(st.floats(0, 1))
    web = Web(
        {name: f"203.0.113.{chance.randrange(addresses)}" for name in names},
        {name: chance.uniform(5, 20) if chance.random() < slow else chance.uniform(0.01, 1) for name in names},
        draw(st.integers(1, 4)),
    )
    settings = PolitenessSettings(
        delay_s=draw(st.sampled_from((0.0, 0.1, 1.0))),
        slow_factor=0.0,
        per_address=draw(st.integers(1, 8)),
        workers=draw(st.integers(1, 3)),
    )
    return Crawl(web, settings, draw(st.integers(1, 40)), chance)


@given(crawls())
def test_the_invariants_hold_and_every_request_goes(crawl: Crawl) -> None:
    crawl.run()
