"""The sites that the dashboard lists, from both databases."""

from __future__ import annotations

from dataclasses import asdict, replace

from crawler.dashboard.snapshot import SnapshotReader
from crawler.inspect.status import read_status
from crawler.settings.settings import Settings
from tests.contract.visits import Harness, fetched


async def test_sites_at_their_limit_are_listed(harness: Harness) -> None:
    harness.pages_per_site = 1
    limits = replace(Settings().limits, max_pages_per_site=1)
    await harness.reopen(settings=asdict(replace(Settings(), limits=limits)))
    await harness.seed("http://a.test/", "http://a.test/x", "http://a.test/y", "http://b.test/")
    claims = {claim.urls[0].url[7]: claim for claim in await harness.claim()}
    await harness.commit(fetched(claims["a"].urls[0]), released=[claim.group_id for claim in claims.values()])
    sites = (await SnapshotReader(harness.store, "postgresql://here/crawl").snapshot(harness.now))["sites"]
    assert [(site["site"], site["queued"], bool(site["at_limit"])) for site in sites] == [
        ("http://b.test", 1, False),
        ("http://a.test", 2, True),
    ]


async def test_a_site_at_its_limit_is_told_from_the_other_sites_of_its_group(harness: Harness) -> None:
    """The limit is per site, as in ``crawler status``."""
    harness.pages_per_site = 1
    limits = replace(Settings().limits, max_pages_per_site=1)
    await harness.reopen(settings=asdict(replace(Settings(), limits=limits)))
    await harness.seed("http://a.test/", "http://a.test/x", "http://a.test:81/")
    (claim,) = await harness.claim()
    done = next(queued for queued in claim.urls if queued.url.startswith("http://a.test/"))
    await harness.finish(claim, fetched(done))
    shown = (await SnapshotReader(harness.store, "postgresql://here/crawl").snapshot(harness.now))["sites"]
    status = (await read_status(harness.store, harness.now)).sites
    assert {site["site"]: bool(site["at_limit"]) for site in shown} == {
        "http://a.test": True,
        "http://a.test:81": False,
    }
    assert {site["site"]: bool(site["at_limit"]) for site in status} == {
        "http://a.test": True,
        "http://a.test:81": False,
    }
