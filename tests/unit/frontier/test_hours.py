"""Windows of the day, by the clocks of time zones (docs/protocols.md, section 6)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crawler.frontier.hours import window, window_of


def at(text: str) -> float:
    """A time in UTC, in seconds since the epoch."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "now", "is_open", "opens_at"),
    [
        ("22-06 Europe/Berlin", "2026-01-10 20:59:59", False, "2026-01-10 21:00"),
        ("22-06 Europe/Berlin", "2026-01-10 21:00:00", True, "2026-01-11 21:00"),
        ("22-06 Europe/Berlin", "2026-01-11 04:59:59", True, "2026-01-11 21:00"),
        ("22-06 Europe/Berlin", "2026-01-11 05:00:00", False, "2026-01-11 21:00"),
        ("22-06 Europe/Berlin", "2026-07-10 20:00:00", True, "2026-07-11 20:00"),  # summer time
        ("8:30-17 America/New_York", "2026-01-10 13:29:00", False, "2026-01-10 13:30"),
        ("8:30-17 America/New_York", "2026-01-10 22:00:00", False, "2026-01-11 13:30"),
        ("20-24 UTC", "2026-01-10 23:59:59", True, "2026-01-11 20:00"),
        ("20-24 UTC", "2026-01-11 00:00:00", False, "2026-01-11 20:00"),
        # 02:30 does not exist on this night: the window opens when the clock first shows a later time
        ("2:30-6 Europe/Berlin", "2026-03-29 00:59:00", False, "2026-03-29 01:30"),
        # 02:15 occurs twice on this night
        ("2:15-2:45 Europe/Berlin", "2026-10-25 00:20:00", True, "2026-10-26 01:15"),
    ],
)
def test_a_window_by_the_clock_of_its_zone(text: str, now: str, is_open: bool, opens_at: str) -> None:
    hours = window(text)
    assert hours.is_open(at(now)) is is_open
    assert hours.opens_at(at(now)) == at(opens_at)


def test_waiting_for_a_window_always_ends_in_it() -> None:
    """Over a year with both changes of the clock: the next opening is later, and a day ahead at most but for a gap."""
    for text in ("22-06 Europe/Berlin", "2:15-2:45 Europe/Berlin", "23:59-0:01 America/St_Johns"):
        hours = window(text)
        now = at("2026-01-01")
        for _ in range(400):
            then = hours.opens_at(now)
            assert now < then <= now + 25 * 3600
            assert hours.is_open(then) or text.startswith("2:15")
            now = then


@pytest.mark.parametrize(
    ("host", "zone"),
    [
        ("shop.example.de", "Europe/Berlin"),
        ("a.fr", "Europe/Paris"),
        ("a.fr.", "Europe/Paris"),
        ("fr", None),
        ("late.de", "UTC"),
        ("a.org", None),
    ],
)
def test_the_first_window_that_fits_a_host_counts(host: str, zone: str | None) -> None:
    hours = ("late.de=1-2 UTC", "*.de=22-06 Europe/Berlin", "*.fr=22-06 Europe/Paris")
    found = window_of(host, hours)
    assert (None if found is None else str(found.zone)) == zone
    assert window_of(host, (*hours, "3-4 Asia/Tokyo")) is not None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("22-06", "HH-HH ZONE"),
        ("22-06 Europe/Bärlin", "HH-HH ZONE"),
        ("22-06 Europe/Nowhere", "no time zone"),
        ("22-06 ../etc", "HH-HH ZONE"),
        ("25-06 UTC", "25:00 is no time of day"),
        ("22:60-06 UTC", "22:60 is no time of day"),
        ("22-99 UTC", "99:00 is no time of day"),
        ("22-24:30 UTC", "24:30 is no time of day"),
        ("6-6 UTC", "no length"),
        ("*de=22-06 UTC", "HH-HH ZONE"),
    ],
)
def test_what_is_no_window_is_refused_with_the_remedy(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        window(text)
