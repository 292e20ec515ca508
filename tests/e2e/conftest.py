"""The web and the store of the tests of samples; other modules define their own under these names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sampled import Sampled, three_sites
from tests.web import LoopbackWeb


@pytest.fixture
def web() -> Iterator[LoopbackWeb]:
    """The three sites, which a test may change."""
    with three_sites() as web:
        yield web


@pytest.fixture
def store(web: LoopbackWeb, tmp_path: Path) -> Sampled:
    """An empty store."""
    return Sampled(web, tmp_path)
