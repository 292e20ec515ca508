"""An answer that is in the request log is never asked for again, although the crawler was killed before reading it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import crawler
from crawler.demo.pages import Page, plain
from tests import dying, kill
from tests.command import HASTY, LOOPBACK, here, until
from tests.postgres import Cluster
from tests.web import LoopbackWeb

HOSTS = tuple(f"h{n}.test" for n in range(8))
NOT_KEPT = "secret.test"


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "c.db")
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.make_store()


def rows(db: str, query: str) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        async with crawler.open(db) as crawl:
            return [dict(row) for row in await crawl.query(query)]

    return asyncio.run(read())


def test_a_kill_repeats_no_answer_that_was_logged(db: str, loopback: LoopbackWeb, tmp_path: Path) -> None:
    body = "<title>t</title><p>" + "word " * 1000
    for host in HOSTS:
        loopback.sites[host] = {"/robots.txt": plain(""), "/": Page(f"{body}<a href=/next>n</a>"), "/next": Page(body)}
    loopback.sites[NOT_KEPT] = {"/robots.txt": plain(""), "/": Page(body, headers=(("X-Robots-Tag", "noindex"),))}
    (tmp_path / "c.toml").write_text(HASTY)
    seeds = [loopback.url(host) for host in (*HOSTS, NOT_KEPT)]
    given = ["run", *seeds, "--config", str(tmp_path / "c.toml"), *LOOPBACK, "--db", db]
    process = kill.start(given, tmp_path / "said", partial(dying.crawl, dying.never_reads))
    logged = "SELECT count(*) AS n FROM requests WHERE purpose = 'page'"
    until(lambda: len(loopback.log) >= 2 * len(seeds) and rows(db, logged) == [{"n": len(seeds)}], "a log of all seeds")
    process.kill()
    process.wait()
    assert rows(db, "SELECT count(*) AS n FROM pages") == [{"n": 0}]
    assert here(*given).code == 0
    asked = Counter((hit.host, hit.path) for hit in loopback.log if hit.path != "/robots.txt")
    repeated = {host for (host, _), times in asked.items() if times > 1}
    assert repeated == {NOT_KEPT}, "only an answer whose headers forbid to keep it"
    assert rows(db, "SELECT count(*) AS n, min(length(body_sha256)) AS m FROM pages") == [{"n": 17, "m": 64}]
    assert json.loads(here("audit", "--json", "--db", db).out)["violations"] == []
