"""What the gate tells for the heartbeat."""

from __future__ import annotations

import json

from crawler.clock import SystemClock
from crawler.engine.alarm import Alarm
from crawler.engine.gate import Fetcher, Gate, Transport
from crawler.engine.outbox import Outbox
from crawler.engine.workbench import Workbench
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import FetchResult, Request


class Proxied(Fetcher):
    """A fetcher that looks no name up."""

    async def fetch(self, request: Request) -> FetchResult:
        raise NotImplementedError


async def test_without_look_ups_their_counts_are_empty() -> None:
    clock = SystemClock()
    gate = Gate(Transport(fetcher=Proxied()), clock, Workbench(PolitenessSettings(), 1), Outbox(clock, Alarm()))
    assert json.loads(gate.look_ups) == {}
