"""Measure what an event costs the workbench as the groups that wait grow in number.

A request is let go, answered at once, and asks again; nothing is sent. The webs: half of the groups with an address
each and the others 80 at one; all at one address; and all of one domain. The figures are the Python instructions that a
request executes, which do not depend on the load of the machine, and the processor time, which has the heaps and scans
of C as well. Groups that are given back count to the request that is let go next.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from types import FrameType
from typing import Any

from crawler.engine import workbench
from crawler.engine.workbench import GiveBack, Go, Wait, Workbench
from crawler.frontier.politeness import Pace, PauseFacts, PolitenessSettings
from tests.bench.table import Row

_SIZES = (500, 5_000, 50_000)
_NAMES_AT_ONE = 80  # of the groups that share an address
_SLOTS = 1_000
_AT_ONCE = 100  # groups that ask
#: The instructions of the events are counted for so many of the requests: counting takes long.
_COUNTED = 2_000
_ROUNDS = 3  # of the processor time; the least is taken


def _mixed(number: int, groups: int) -> tuple[str, str]:
    own = groups // 2
    return f"n{number}.d{number}.test", _address(number if number < own else own + (number - own) // _NAMES_AT_ONE)


def _one_address(number: int, groups: int) -> tuple[str, str]:
    return f"n{number}.d{number}.test", _address(0)


def _one_domain(number: int, groups: int) -> tuple[str, str]:
    return f"n{number}.test", _address(number)


#: The group and the address for a number, of so many groups.
Web = Callable[[int, int], tuple[str, str]]
_WEBS: dict[str, Web] = {"mixed web": _mixed, "one address": _one_address, "one domain": _one_domain}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000, help="events timed for each size [%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    for name, web in _WEBS.items():
        measured = []
        for groups in _SIZES:
            events = _Events(web, groups)
            least_s = min(events.timed(options.events) for _ in range(_ROUNDS))
            measured.append((events.counted(_COUNTED), least_s * 1e6))
            rows.append(Row(f"{name}, {groups:,} groups: Python instructions", measured[-1][0], ""))
            rows.append(Row(f"{name}, {groups:,} groups: processor time", measured[-1][1], "µs"))
        (count, time_us), (most, most_us) = measured[0], measured[-1]
        rows += [
            Row(f"{name}: growth of instructions", most / count, "×", must="≤ 1.5", ok=most <= 1.5 * count),
            Row(f"{name}: growth of time", most_us / time_us, "×", must="≤ 3", ok=most_us <= 3 * time_us),
        ]
    return rows


class _Events:
    """The events of a workbench with ``groups`` groups, each of which asks again after its pause or its turn."""

    def __init__(self, web: Web, groups: int) -> None:
        self._bench = Workbench(PolitenessSettings(delay_s=1.0), _SLOTS)
        self._at = dict(web(number, groups) for number in range(groups))
        for name in self._at:
            self._bench.enter(name, Pace())
        self._now = 1_000_000.0
        self._later = [(self._now, name) for name in self._at]  # groups in their pauses, and given back
        heapify(self._later)
        self._run(2 * groups)  # each group is known, and the queues are full

    def timed(self, events: int) -> float:
        """The processor time of an event, in seconds."""
        began = time.process_time()
        done = self._run(events)
        return (time.process_time() - began) / done

    def counted(self, events: int) -> float:
        """The instructions of the workbench for an event."""
        executed = 0

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal executed
            if frame.f_code.co_filename != workbench.__file__:
                return None
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
            executed += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            done = self._run(events)
        finally:
            sys.settrace(before)
        return executed / done

    def _run(self, events: int) -> int:
        """Let groups ask until so many have been answered or given back; returns how many."""
        bench, later, done = self._bench, self._later, 0
        while done < events:
            asking = bench.woken(self._now)
            while later and later[0][0] <= self._now and len(asking) < _AT_ONCE:
                asking.append(bench.open(heappop(later)[1], ""))
            for ticket in asking:
                match bench.ask(ticket, self._now, self._at[ticket.group]):
                    case Go():
                        until = bench.done(ticket, self._now, PauseFacts(self._now, self._now, 200), None).next_at
                    case GiveBack(until):
                        pass
                    case Wait(until) if self._now < until < float("inf"):
                        pass
                    case _:
                        continue  # it is woken
                bench.close(ticket, self._now)
                heappush(later, (until, ticket.group))
                done += 1
            if not asking:
                self._now = max(self._now, min(bench.next_at(), later[0][0] if later else float("inf")))
        return done


def _address(number: int) -> str:
    return f"198.{18 + number // 65_536}.{number // 256 % 256}.{number % 256}"
