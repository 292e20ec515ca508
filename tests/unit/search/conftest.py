"""Fixtures of the search's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.postgres import Cluster
from tests.unit.search.crawled import Crawled, crawled


@pytest.fixture(params=["sqlite", "postgres"])
async def crawl(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Crawled]:
    db = str(tmp_path / "crawl.db")
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        db = cluster.make_store()
    async with crawled(db) as made:
        yield made
