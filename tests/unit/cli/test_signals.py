"""Signals during a command that crawls."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from crawler.cli import signals as signals_module
from crawler.cli.signals import END_WITHIN_S, ForcedEnd, Signals
from crawler.reasons import RunEnd


class Crawl:
    """A crawl that notes how it was told to end."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def stop(self, why: RunEnd) -> None:
        self.told.append(f"stop by {why.detail}")

    def end_grace(self) -> None:
        self.told.append("end the grace")


class Forced(ForcedEnd):
    """Notes when the process would be ended by force."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[float] = []

    def after(self, seconds: float) -> None:
        self.limits.append(seconds)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_a_second_signal_ends_the_grace_and_a_signal_sent_twice_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter((100.0, 100.1, 101.0))
    monkeypatch.setattr(signals_module, "boot_s", lambda: next(times))
    crawl, forced = Crawl(), Forced()
    Signals(forced_end=forced).stop_from_now_on(crawl)
    for _ in range(3):
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
    assert crawl.told == ["stop by SIGINT", "stop by SIGINT", "stop by SIGINT", "end the grace"]
    assert forced.limits == [END_WITHIN_S, 2.0]
