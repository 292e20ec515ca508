"""The dashboard and ``crawler status`` say the same of a wait."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from crawler.dashboard.snapshot import SnapshotReader
from crawler.inspect.unknown_hosts import describe_wait
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness, deferred


async def test_a_wait_for_robots_txt_is_described_as_in_status(tmp_path: Path) -> None:
    path = tmp_path / "crawl.db"
    harness = Harness(lambda: SqliteStore.open(path))
    await harness.reopen(settings=asdict(Settings()))
    await harness.seed("http://a.test/")
    (claim,) = await harness.claim()
    await harness.news(claim.urls[0].site_id, "http://a.test", deferred(NOW, NOW + 60))
    await harness.commit(released=[claim.group_id])
    (wait,) = await harness.store.waiting(NOW + 1, 5)
    (site,) = (await SnapshotReader(harness.store, str(path)).snapshot(NOW + 1))["sites"]
    assert site["waits_for"] == describe_wait(wait, Settings().robots, NOW + 1)
    assert "tried again until" in site["waits_for"]
    await harness.close()
