"""How ``crawler status`` is set on a terminal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from crawler.frontier.operator import Standing
from crawler.inspect.status import _sites_table

NOW = 1_800_000_000.0
SITE = "https://www.a-rather-long-name.example.org"
ROW = {"site": SITE, "fetched": 5194, "robots_status": "200", "delay_s": 2.0, "at_limit": 0, "next_at": NOW}


@pytest.mark.parametrize(("queued", "headings"), [(0, "robots  pause"), (12, "robots  pause  next")])
def test_a_sites_name_has_the_room_that_others_leave(queued: int, headings: str) -> None:
    status: Any = SimpleNamespace(at=NOW, sites=[ROW | {"queued": queued}], standing=Standing())
    console = Console(width=80, highlight=False)
    with console.capture() as shown:
        console.print(_sites_table(status))
    head, *rows = (line.rstrip() for line in shown.get().splitlines())
    assert head.endswith(headings)
    assert [row.split()[0] for row in rows] == [SITE]
