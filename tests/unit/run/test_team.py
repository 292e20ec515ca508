"""The workers of one command: when they are told to end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from crawler.clock import SystemClock
from crawler.reasons import EndCode, RunEnd
from crawler.run.team import Team
from crawler.run.worker import Assignment
from crawler.settings.loading import settings_from

HOUR_S = 3600.0


class Drowsy:
    """A clock of a machine that sleeps for an hour whenever somebody waits."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += HOUR_S
        await asyncio.sleep(0)


def test_a_worker_counts_no_max_time_from_its_own_start(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Assignment] = []
    monkeypatch.setattr(Assignment, "send", lambda part, *_: sent.append(part))
    given = {"limits.max_time": 10, "limits.concurrency": 5, "politeness.per_address": 4, "workers.count": 3}
    settings = settings_from(given, source="test")
    store, forks = SimpleNamespace(run_id=7, lock_fds=tuple), [SimpleNamespace(above=None)] * 3
    team = Team(settings, store, SystemClock(), print, forks)  # type: ignore[arg-type]
    for place in range(3):
        team._start(place)
    assert [part.settings.limits.max_time_s for part in sent] == [None] * 3
    assert [part.settings.limits.concurrency for part in sent] == [2, 2, 1]
    assert [part.settings.politeness.per_address for part in sent] == [2, 1, 1]
    assert [part.settings.politeness.workers for part in sent] == [3, 3, 3]


async def test_max_time_is_over_although_the_machine_slept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fill(team: Team, place: int) -> None:
        while team._stopping is None:  # noqa: ASYNC110  as a worker that runs until it is told to end
            await asyncio.sleep(0)

    monkeypatch.setattr(Team, "_fill", fill)
    settings = SimpleNamespace(limits=SimpleNamespace(max_time_s=10 * HOUR_S), workers=SimpleNamespace(count=2))
    team = Team(settings, None, Drowsy(), print, [])  # type: ignore[arg-type]
    assert await asyncio.wait_for(team.run(), 60) == RunEnd(EndCode.MAX_TIME)
