"""Measure what an event costs the workbench as the requests that wait grow in number.

Half of the groups have an address each, the others share crowded ones. A request is let go, answered at once, and asks
again. Nothing is sent: the figure is the processor time of the decisions.
"""

from __future__ import annotations

import argparse
import time
from heapq import heapify, heappop, heappush

from crawler.engine.workbench import GiveBack, Go, Wait, Workbench
from crawler.frontier.politeness import Pace, PauseFacts, PolitenessSettings
from tests.bench.table import Row

_SIZES = (500, 5_000, 50_000)
_NAMES_AT_ONE = 80  # of the groups that share an address
_SLOTS = 1_000
_AT_ONCE = 100  # groups that ask


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=20_000, help="requests let go for each size [%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    rows = [
        Row(f"processor time of a request, {groups:,} groups", _measure(groups, options.events), "µs")
        for groups in _SIZES
    ]
    growth = rows[-1].figure / rows[0].figure
    rows.append(Row("growth, 50,000 ÷ 500 groups", growth, "×", must="≤ 3", ok=growth <= 3))
    return rows


def _measure(groups: int, events: int) -> float:
    """The processor time of one request from its first question to its answer, in microseconds."""
    bench = Workbench(PolitenessSettings(delay_s=1.0), _SLOTS)
    names = [f"n{n}.d{n}.test" for n in range(groups)]
    own = groups // 2
    at = {name: _address(n if n < own else own + (n - own) // _NAMES_AT_ONE) for n, name in enumerate(names)}
    for name in names:
        bench.enter(name, Pace())
    now, sent = 1_000_000.0, 0
    later: list[tuple[float, str]] = [(now, name) for name in names]  # groups in their pauses, and given back
    heapify(later)
    began = time.process_time()
    while sent < events:
        asking = bench.woken(now)
        while later and later[0][0] <= now and len(asking) < _AT_ONCE:
            asking.append(bench.open(heappop(later)[1], ""))
        for ticket in asking:
            name = ticket.group
            match bench.ask(ticket, now, at[name]):
                case Go():
                    pace = bench.done(ticket, now, PauseFacts(now, now, 200), 1, None)
                    bench.close(ticket, now)
                    heappush(later, (pace.next_at, name))
                    sent += 1
                case Wait(until) if until > now and until != float("inf"):
                    bench.close(ticket, now)
                    heappush(later, (until, name))
                case GiveBack(until):
                    bench.close(ticket, now)
                    heappush(later, (until, name))
                case _:
                    pass  # it is woken
        now = max(now, min(bench.next_at(), later[0][0]))
    return (time.process_time() - began) / events * 1e6


def _address(number: int) -> str:
    return f"198.{18 + number // 65_536}.{number // 256 % 256}.{number % 256}"
