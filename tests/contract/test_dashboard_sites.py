"""The sites that the dashboard lists, from both databases."""

from __future__ import annotations

from crawler.dashboard.snapshot import SnapshotReader
from tests.contract.visits import Harness, fetched


async def test_sites_at_their_limit_are_listed(harness: Harness) -> None:
    harness.pages_per_site = 1
    await harness.seed("http://a.test/", "http://a.test/x", "http://a.test/y", "http://b.test/")
    claims = {claim.urls[0].url[7]: claim for claim in await harness.claim()}
    await harness.commit(fetched(claims["a"].urls[0]), released=[claim.group_id for claim in claims.values()])
    sites = (await SnapshotReader(harness.store, "postgresql://here/crawl").snapshot(harness.now))["sites"]
    assert [(site["site"], site["queued"], bool(site["at_limit"])) for site in sites] == [
        ("http://b.test", 1, False),
        ("http://a.test", 2, True),
    ]
