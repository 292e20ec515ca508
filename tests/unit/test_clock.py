"""Following a shared clock that somebody may set meanwhile."""

from __future__ import annotations

import time

import pytest

from crawler import clock
from crawler.clock import SystemClock, brief_time, iso


class Shared:
    """A clock that others go by too, and that is ``ahead`` by so many seconds; asking it takes no time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 1_000_000.0
        self._passed = 50.0
        monkeypatch.setattr(clock, "boot_s", lambda: self._passed)
        self.follower = SystemClock()

    def pass_s(self, seconds: float) -> float:
        """Let so much time pass, and have the clock followed; how much has passed by the clock that follows."""
        before = self.follower.now()
        self._passed += seconds
        self.follower.follow(self._passed + self.ahead, self._passed + self.ahead, self._passed)
        return self.follower.now() - before

    def behind(self) -> float:
        return self._passed + self.ahead - self.follower.now()


def test_the_first_reading_is_adopted_and_a_step_forward_shortens_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(monkeypatch)
    shared.pass_s(0)
    assert shared.behind() == 0
    assert shared.pass_s(10) == pytest.approx(10)
    shared.ahead += 30
    assert shared.pass_s(5) == pytest.approx(5), "it is not known before"
    assert shared.pass_s(5) == pytest.approx(5 * 1.01)
    assert shared.pass_s(0) == 0
    assert shared.pass_s(1000) == pytest.approx(1000 * 1.01)
    assert shared.pass_s(10_000) == pytest.approx(10_000 + 30 - 1005 * 0.01), "it is caught up with in the end"
    assert shared.behind() == pytest.approx(0)


def test_a_late_step_is_not_made_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(monkeypatch)
    shared.pass_s(0)
    shared.ahead += 30
    assert shared.pass_s(3600) == pytest.approx(3600)
    assert shared.pass_s(5) == pytest.approx(5 * 1.01)


def test_a_step_backward_is_followed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(monkeypatch)
    shared.pass_s(0)
    shared.ahead -= 30
    assert shared.pass_s(5) == pytest.approx(5 - 30)
    assert shared.behind() == 0


def test_the_delay_of_the_network_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(monkeypatch)
    shared.pass_s(0)
    before = shared.follower.now()
    shared.follower.follow(before - 1, before + 1, 50.0)
    assert shared.follower.now() == before


def test_displayed_times_are_in_utc_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert brief_time(1_800_000_000, now=1_800_003_600) == "08:00:00Z"
        assert brief_time(1_800_000_000, now=1_800_100_000) == "2027-01-15T08:00Z"
        assert brief_time(1e300, now=1_800_000_000) == "the end of time"
        assert iso(1_800_000_000) == "2027-01-15T08:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()
