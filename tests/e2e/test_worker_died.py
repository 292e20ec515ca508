"""A URL that kills each worker that takes it fails at last, alone, and the crawl comes to its end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import crawler
from crawler.demo.pages import Page, plain
from tests.command import HASTY, LOOPBACK
from tests.web import LoopbackWeb

#: Ends the process when the killer's answer is read, in any process of the crawl.
_FAULT = """
import os
from crawler.engine.answers import Answers
_outcome = Answers.outcome
async def outcome(self, queued, result):
    if queued.url.endswith("/killer"):
        os._exit(9)
    return await _outcome(self, queued, result)
Answers.outcome = outcome
"""


def crawl_until_done(folder: Path, command: list[str], runs: int) -> int:
    """Run the command again and again until it ends with 0; how many runs that took."""
    (folder / "sitecustomize.py").write_text(_FAULT)
    paths = [str(folder), os.getcwd(), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    for run in range(1, runs + 1):
        ended = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
        if ended.returncode == 0:
            return run
    raise AssertionError(ended.stderr.decode())


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_url_that_kills_its_workers_fails_and_no_other(
    dialect: str, workers: int, loopback: LoopbackWeb, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pages: dict[str, Page] = {"/robots.txt": plain(""), "/killer": Page("killer")}
    pages |= {f"/{n}": Page(f"page {n}") for n in range(12)}
    links = "".join(f"<a href='{path}'>x</a>" for path in pages if path != "/robots.txt")
    hosts = [f"h{n}.test" for n in range(3)]
    away = "".join(f"<a href='{loopback.url(host)}'>{host}</a>" for host in hosts)
    harmless = {path: page for path, page in pages.items() if path != "/killer"}
    loopback.sites.update({host: harmless | {"/": Page(links.replace("/killer", "/0"))} for host in hosts})
    loopback.sites[hosts[0]] = pages | {"/": Page(links + away)}
    db = str(tmp_path / "c.db") if dialect == "sqlite" else request.getfixturevalue("postgres").make_database()
    (tmp_path / "c.toml").write_text(HASTY)
    options = ["--config", str(tmp_path / "c.toml"), *LOOPBACK, "--scope", "any", "--db", db]
    if workers > 1:
        options += ["--workers", str(workers)]
    command = [sys.executable, "-m", "crawler", "run", loopback.url(hosts[0]), *options]
    crawl_until_done(tmp_path, command, runs=9)
    rows = asyncio.run(look(db))
    failed = {url: code for url, state, code in rows if state == "failed"}
    assert failed == {f"{loopback.url(hosts[0])}killer": "worker_died"}
    assert {state for _, state, code in rows if code not in ("worker_died", "no_sitemap")} == {"fetched"}
    assert len(rows) >= 3 * 13


async def look(db: str) -> list[tuple[str, str, str]]:
    async with crawler.open(db) as crawl:
        rows = await crawl.query("SELECT url, state, reason_code FROM urls")
    return [(row["url"], row["state"], row["reason_code"]) for row in rows]
