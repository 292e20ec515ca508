"""Fixtures of the search's tests. The index is the same for either database, which only its building reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.postgres import Cluster
from tests.unit.search.crawled import Crawled, crawled


@pytest.fixture
async def crawl(tmp_path: Path) -> AsyncIterator[Crawled]:
    async with crawled(str(tmp_path / "crawl.db")) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
async def crawl_in_either(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Crawled]:
    monkeypatch.chdir(tmp_path)  # where the index of a database is
    db = str(tmp_path / "crawl.db")
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        db = cluster.make_store()
    async with crawled(db) as made:
        yield made
