"""Fixtures for all tests, and the profiles of hypothesis: ``HYPOTHESIS_PROFILE=long`` for a night, else "ci"."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgres import Cluster, binaries, cluster
from tests.web import LoopbackWeb

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("long", deadline=None, max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Commands print whole lines in tests, like into a file; the width of a terminal has no effect.
os.environ.pop("COLUMNS", None)

# As in the commands. The heap of a test process grows to hundreds of megabytes, and tests leave few cycles behind.
gc.set_threshold(100_000, 50, 50)

#: The longest files, and the folders of long ones. They come first, so that no process begins a long file when the
#: others end.
_LONG_FIRST = (
    *("e2e/test_workers.py", "e2e/test_sample.py", "e2e/test_worker_died.py", "e2e/test_cli.py"),
    *("world", "simulation/test_shares.py"),
    *("e2e", "simulation", "differential", "property", "contract", "unit/sampling", "unit/engine"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files by the time that they or those of their folder take; the tests of a file stay together."""
    places = {Path(__file__).parent / path: place for place, path in enumerate(_LONG_FIRST)}
    last = len(places)
    items.sort(key=lambda item: min(places.get(path, last) for path in (item.path, *item.path.parents)))


def pytest_collection_finish() -> None:
    """Leave what collecting has made out of each later search for cycles."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def loopback() -> Iterator[LoopbackWeb]:
    """An empty web on loopback: put sites into ``loopback.sites``."""
    with LoopbackWeb() as web:
        yield web


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server for the tests of a session."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with cluster() as server:
        yield server


@pytest.fixture
def db_path(tmp_path: Path) -> Path:
    """The path of a test's store."""
    return tmp_path / "crawl.db"
