"""What ``status`` and ``why`` say of sites that get no request: they rest, are closed, or have all their pages."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from rich.console import Console

from crawler.engine.crawl_settings import LimitSettings
from crawler.frontier.refusals import RefusalNews, Refusals
from crawler.inspect.status import read_status, render
from crawler.inspect.why import explain
from crawler.inspect.why import render as render_why
from crawler.model import RobotsAction, RobotsCopy
from crawler.settings.settings import Settings
from tests.contract.visits import NOW, Harness, fetched

A, B = "http://a.test", "http://b.test"


async def status_of(harness: Harness) -> list[str]:
    console: Any = Console(width=400, highlight=False)
    with console.capture() as shown:
        render(await read_status(harness.store, NOW), "c.db", console)
    return [" ".join(line.split()) for line in shown.get().splitlines()]


async def why(harness: Harness, url: str) -> list[str]:
    console: Any = Console(width=400, highlight=False)
    with console.capture() as shown:
        render_why(await explain(harness.store, url, now=NOW), "c.db", console)
    return [" ".join(line.split()) for line in shown.get().splitlines()]


async def test_refusing_sites_come_first_with_what_an_operator_may_do(harness: Harness) -> None:
    await harness.seed(f"{A}/", f"{A}/1", f"{B}/", "http://c.test/")
    claims = {claim.group: claim for claim in await harness.claim()}
    sites = {name: next(iter(claim.sites)) for name, claim in claims.items()}
    resting = RefusalNews(sites["a.test"], Refusals(walls=3, rest_count=1, probe=claims["a.test"].urls[0].id), NOW + 60)
    closed = RefusalNews(sites["b.test"], Refusals(walls=6, rest_count=3, closed=True))
    await harness.commit(refusals=[resting, closed], released=[claim.group_id for claim in claims.values()])
    wall = RobotsCopy(RobotsAction.DEFER, "wall", NOW, NOW + 90, failures=1, failing_since=NOW, retry_at=NOW + 90)
    await harness.news(sites["c.test"], "http://c.test", wall)
    advice = "write to its owner, sign requests and publish a page about the crawler (`crawler identity`); `crawler run"
    assert (await status_of(harness))[:4] == [
        f"Refused {B} answers by walls or refusals; it is closed: nothing of it is requested any more",
        f"{A} answers by walls or refusals; it rests until 08:01:00Z, then one URL is requested",
        "http://c.test answers by a wall in place of robots.txt; it rests until 08:01:30Z, "
        "then /robots.txt is requested",
        f"What to do {advice} --refresh SITE --db c.db` asks it again",
    ]
    said = await why(harness, f"{A}/1")
    assert "next 08:01:00Z, waits for the end of the rest of its site, which answers by walls or refusals" in said
    assert f"site {A} answers by walls or refusals; it rests until 08:01:00Z, then one URL is requested" in said
    assert f"{advice} --refresh {A} --db c.db` asks it again" in said


@pytest.mark.parametrize(
    ("limits", "at_limit"),
    [
        (LimitSettings(), set()),
        (LimitSettings(max_pages_per_site=1), {A}),
        (LimitSettings(max_pages=1), {A, f"{A}:81"}),
    ],
)
async def test_a_site_that_has_its_pages_is_at_its_limit_beside_others_of_its_group(
    harness: Harness, limits: LimitSettings, at_limit: set[str]
) -> None:
    settings = asdict(replace(Settings(), limits=limits))
    harness.pages_per_site = limits.max_pages_per_site
    await harness.reopen(settings=settings)
    await harness.seed(f"{A}/", f"{A}:81/")
    (claim,) = await harness.claim()
    first = next(queued for queued in claim.urls if queued.url == f"{A}/")
    await harness.finish(claim, fetched(first, [f"{A}/1"]))
    sites = {row["site"]: row for row in (await read_status(harness.store, NOW)).sites}
    assert {site for site, row in sites.items() if row["at_limit"]} == at_limit
    said = await why(harness, f"{A}/1")
    assert any("higher --max-pages" in line for line in said) == bool(at_limit)
