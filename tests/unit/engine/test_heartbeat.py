"""The figures of the gate for the heartbeat."""

from __future__ import annotations

import json

from crawler.clock import SystemClock
from crawler.engine.alarm import Alarm
from crawler.engine.gate import Fetcher
from crawler.engine.outbox import Outbox
from crawler.model import FetchResult, Request
from tests.simulation.crawls import gate_on


class Proxied(Fetcher):
    """A fetcher that looks no name up."""

    async def fetch(self, request: Request) -> FetchResult:
        raise NotImplementedError


async def test_without_look_ups_their_counts_are_empty() -> None:
    clock = SystemClock()
    gate = gate_on(Proxied(), clock, Outbox(clock, Alarm()))
    assert json.loads(gate.look_ups) == {}
