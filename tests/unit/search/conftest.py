from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.search.crawled import Crawled, crawled


@pytest.fixture
async def crawl(tmp_path: Path) -> AsyncIterator[Crawled]:
    async with crawled(tmp_path) as made:
        yield made
