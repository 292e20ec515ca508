"""How ``crawler status`` is set on a terminal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from crawler.frontier.operator import Standing
from crawler.inspect.status import _next, _sites_table, _until, _vain_claims
from crawler.inspect.unknown_hosts import describe_wait
from crawler.robots.response import RobotsSettings
from crawler.store.rows import Beat, Waiting

NOW = 1_800_000_000.0
SITE = "https://www.a-rather-long-name.example.org"
ROW = {"site": SITE, "fetched": 5194, "robots_status": "200", "delay_s": 2.0, "at_limit": 0, "next_at": NOW}
ROW |= {"robots_action": "parse", "waits_for": "robots.txt: 503"}


@pytest.mark.parametrize(
    ("site", "queued", "headings"),
    [(SITE, 0, "robots       pause"), ("http://mini-01.test:8080", 12, "robots       pause  next")],
)
def test_a_sites_name_has_the_room_that_others_leave(site: str, queued: int, headings: str) -> None:
    row = ROW | {"site": site, "queued": queued, "next_at": NOW + 60, "waits_for": "rest after walls or refusals"}
    row["robots_status"] = "dns_no_name"
    status: Any = SimpleNamespace(at=NOW, sites=[row], standing=Standing(), frame=None, crawl_at_limit=False)
    console = Console(width=80, highlight=False)
    with console.capture() as shown:
        console.print(_sites_table(status, console.width))
    head, *rows = (line.rstrip() for line in shown.get().splitlines())
    assert head.endswith(headings)
    assert rows[0].split()[0] == site


@pytest.mark.parametrize(
    ("row", "crawl_at_limit", "said"),
    [
        ({}, False, "now"),
        ({"at_limit": 1}, False, "at its limit"),
        ({"at_limit": 1}, True, "crawl at its limit"),
        ({"at_limit": 1, "robots_action": "defer", "next_at": NOW + 60}, True, "robots.txt, 08:01:00Z"),
        ({"robots_action": "defer"}, False, "robots.txt, now"),
        ({"next_at": NOW + 60, "waits_for": ""}, False, "08:01:00Z"),
    ],
)
def test_a_robots_txt_that_fails_is_named_before_a_limit(row: dict[str, Any], crawl_at_limit: bool, said: str) -> None:
    status: Any = SimpleNamespace(at=NOW, standing=Standing(), frame=None, crawl_at_limit=crawl_at_limit)
    assert _next(ROW | {"queued": 1} | row, status) == said


@pytest.mark.parametrize(
    ("until_s", "said"), [(10, "tried again until 08:00:20Z"), (20, "then tried for the last time")]
)
def test_a_robots_txt_is_requested_for_the_last_time_after_the_limit(until_s: float, said: str) -> None:
    wait = Waiting("dead.test", NOW + until_s, "robots.txt: refused", "refused", NOW)
    assert (
        describe_wait(wait, RobotsSettings(give_up_after_s=20), NOW)
        == f"robots.txt: refused ({said}: robots.give_up_after)"
    )


@pytest.mark.parametrize(
    ("finished_at", "is_held", "said"),
    [
        (None, True, "until 08:00:10Z"),
        (None, False, "until the crawl goes on, at 08:00:10Z at the earliest"),
        (NOW - 1, True, "until the crawl goes on, at 08:00:10Z at the earliest"),
    ],
)
def test_a_wait_ends_only_while_a_run_is_in_progress(finished_at: float | None, is_held: bool, said: str) -> None:
    status: Any = SimpleNamespace(at=NOW, last_run={"finished_at": finished_at}, is_held=is_held, workers=[])
    assert _until(Waiting("dead.test", NOW + 10, ""), status) == said


@pytest.mark.parametrize(
    ("status", "name", "limit_s"),
    [
        ("connect", "no_connection_after", 86_400),
        ("timeout", "no_connection_after", 86_400),
        ("dns_no_name", "unknown_host_after", 3_600),
        ("dns_timeout", "give_up_after", 30 * 86_400),
        ("503", "give_up_after", 30 * 86_400),
    ],
)
def test_a_dead_host_is_given_up_within_a_day_and_the_setting_is_named(status: str, name: str, limit_s: int) -> None:
    robots = RobotsSettings()
    assert robots.patience_s(status) == limit_s
    wait = Waiting("dead.test", NOW, "robots.txt: refused", status, NOW - limit_s)
    assert describe_wait(wait, robots, NOW).endswith(f"(then tried for the last time: robots.{name})")
    assert RobotsSettings(give_up_after_s=60).patience_s(status) == 60, "the limit on all failures bounds each"


@pytest.mark.parametrize(("in_vain", "is_shown"), [(999, False), (1_000, True), (0, False)])
@pytest.mark.parametrize(("requests", "are_many"), [(2_000, True), (5_000, False)])
def test_claims_in_vain_are_shown_when_they_cost_time(
    in_vain: int, is_shown: bool, requests: int, are_many: bool
) -> None:
    beats = [Beat(3, 7, NOW, None, 0.0, vain_claims=in_vain), Beat(2, 7, NOW, None, 0.0, vain_claims=9_999)]
    status: Any = SimpleNamespace(last_run={"id": 3}, beats=beats, workers=[{"requests": requests}])
    said = [text for _, text in _vain_claims(status)]
    assert bool(said) is (is_shown and are_many)
    assert not said or "1,000 brought no request, beside 2,000 requests" in said[0]
