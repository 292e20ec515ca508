"""``crawler demo`` is complete and breaks no promise."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.command import crawler, here


def test_the_demonstration(tmp_path: Path) -> None:
    ended = crawler("--log-level", "info", "--log-format", "json", "demo", cwd=tmp_path)
    assert ended.code == 0
    assert "crawler.run" in {json.loads(line)["logger"] for line in ended.err.splitlines()}, "it logs as a run does"
    for section in (
        "The town of Aldermere is served on 127.0.0.1:", "Ended", "Store", "A mirror, by its Host line",
        "Kept out by robots.txt", "Fetched, but not kept (noindex)", "Redirects", "Failed", "Most linked to",
        "Requests for what sites asked to be left alone",
        "Look further", "crawler status --db demo.db", "Crawl your own seeds",
    ):  # fmt: skip
        assert section in ended.out, section
    assert "Allowed pages that the crawl missed" not in ended.out
    promises = [
        line for line in ended.out.splitlines() if line.lstrip().startswith(tuple("0123456789")) and " × " in line
    ]
    assert len(promises) >= 5  # a line for each site; those below it have the same number
    assert all(line.lstrip().startswith("0 × ") for line in promises)
    connection = sqlite3.connect(tmp_path / "demo.db")
    assert connection.execute("SELECT count(*) > 50 FROM pages").fetchone() == (1,)
    connection.close()


@pytest.mark.long
def test_a_second_demo_replaces_the_first(tmp_path: Path) -> None:
    assert [crawler("demo", cwd=tmp_path).code for _ in range(2)] == [0, 0]
    with closing(sqlite3.connect(tmp_path / "demo.db")) as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (1,)


@pytest.mark.parametrize("content", [b"", b"diary\n" * 100])
def test_the_demo_overwrites_no_other_file(content: bytes, tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    if content:
        db.write_bytes(content)
    else:
        seed, options = "http://a.test:1/", ("--resolve", "*.test=127.0.0.1", "--allow-private", "--no-progress")
        assert here("run", seed, *options, "--max-time", "0.1", "--db", db).code == 5
    before = db.read_bytes()
    ended = here("demo", "--db", db)
    assert ended.code == 2
    assert "choose another --db" in ended.err
    assert db.read_bytes() == before
