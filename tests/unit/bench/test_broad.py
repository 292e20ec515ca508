"""The parts of `broad` that need no namespace: the drawn names, the pages, and the share of the pauses."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.broad import _facts
from tests.bench.broad_web import BroadWeb, _aimed, drawn
from tests.name_server import NXDOMAIN, SERVFAIL


def web(folder: Path, hosts: int, dead: float = 0.0) -> BroadWeb:
    return BroadWeb(hosts, 5, dead, folder, in_namespace=True)


def test_names_are_dead_as_drawn(tmp_path: Path) -> None:
    replies = [drawn(number, 0.2, "10.0.1.0") for number in range(5000)]
    codes = Counter("silent" if reply is None else reply.code for reply in replies)
    assert replies == [drawn(number, 0.2, "10.0.1.0") for number in range(5000)]
    assert codes[NXDOMAIN] == pytest.approx(400, rel=0.2)
    assert codes[SERVFAIL] == pytest.approx(300, rel=0.2)
    assert codes["silent"] == pytest.approx(300, rel=0.2)
    assert len(web(tmp_path, 5000, 0.2).alive()) == codes[0]
    assert len({reply.addresses for reply in replies if reply and reply.addresses}) == codes[0]


def test_links_lead_to_pages_of_the_host() -> None:
    page = b'<a class="x" href="/far/away.html#top">a</a> <link href=\'style.css\'> <img src="i.png">'
    aimed = _aimed(page, pages=5)
    assert aimed.count(b"href=") == 2
    assert b"away" not in aimed
    assert b'src="i.png"' in aimed
    assert b'#top">' in aimed


def test_the_share_counts_the_hosts_that_were_never_asked(tmp_path: Path) -> None:
    """Two of four hosts are asked every 2.5 s, which is pause and answer, and the others never."""
    store = tmp_path / "store.db"
    database = sqlite3.connect(store)
    database.execute("CREATE TABLE runs (worst_lag_s, started_at)")
    database.execute("CREATE TABLE requests (site, started_at, finished_at, status)")
    database.execute("INSERT INTO runs VALUES (0.25, 1000)")
    rows = [
        (f"https://h00000{host}.test", 1001 + 2.5 * n, 1001.5 + 2.5 * n, 200) for host in range(2) for n in range(40)
    ]
    database.executemany(
        "INSERT INTO requests VALUES (?, ?, ?, ?)", [*rows, ("https://h000003.test", 1050, 1051, None)]
    )
    database.commit()
    database.close()
    facts = _facts(store, web(tmp_path, 4), 2.0, began_at=999.0, seconds=100)
    assert facts["share"] == pytest.approx(0.5, abs=0.02)
    assert (facts["lag_s"], facts["first_s"]) == (0.25, 2.0)
