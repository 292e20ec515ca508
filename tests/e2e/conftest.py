"""What tests of several modules share: the three sites of samples, and the site and the robot of ``crawler rup``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sampled import Sampled, three_sites
from tests.web import LoopbackWeb

if TYPE_CHECKING:
    from tests.rup.old_server import OldServer
    from tests.rup.robot import Robot


@pytest.fixture
def web() -> Iterator[LoopbackWeb]:
    """The three sites, which a test may change. Other modules define a web of their own."""
    with three_sites() as web:
        yield web


@pytest.fixture
def store(web: LoopbackWeb, tmp_path: Path) -> Sampled:
    """An empty store."""
    return Sampled(web, tmp_path)


@pytest.fixture
def server() -> Iterator[OldServer]:
    from tests.rup.robot import old_site  # other tests do not load it

    with old_site() as server:
        yield server


@pytest.fixture
def robot(server: OldServer, tmp_path: Path) -> Robot:
    """It has crawled once, and registered."""
    from tests.rup.robot import registered

    return registered(server, tmp_path)
