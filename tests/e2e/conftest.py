"""The site of yesterday and the robot that subscribes to its reports, for the tests of ``crawler rup``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.rup.old_server import OldServer
    from tests.rup.robot import Robot


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
