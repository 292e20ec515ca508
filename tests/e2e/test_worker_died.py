"""A URL that kills each worker that visits it fails at last, alone, and the crawl comes to its end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import crawler
from crawler.demo.pages import Page, plain
from tests import dying, kill
from tests.command import HASTY, LOOPBACK, here, until
from tests.orphans import BOUND
from tests.postgres import Cluster
from tests.web import LoopbackWeb

#: By the place where they strike.
FAULTS = {"robots.txt": dying.on_robots, "page": dying.on_page, "commit": dying.on_commit}
HOSTS = ("a.test", "b.test", "c.test")
PAGES = 12


def serve(web: LoopbackWeb) -> str:
    """Three sites that link to one another. The first one links to the killer page and to the killer site."""
    numbers = "".join(f"<a href='/{n}'>{n}</a>" for n in range(PAGES))
    pages = {"/robots.txt": plain("")} | {f"/{n}": Page(f"page {n}") for n in range(PAGES)}
    sites = "".join(f"<a href='{web.url(host)}'>{host}</a>" for host in (*HOSTS, "killer.test"))
    web.sites.update({host: pages | {"/": Page(numbers)} for host in HOSTS})
    web.sites[HOSTS[0]] = pages | {"/": Page(numbers + "<a href='/killer'>k</a>" + sites), "/killer": Page("killer")}
    web.sites["killer.test"] = {"/robots.txt": plain("User-agent: *\nDisallow: /x\n"), "/": Page("home")}
    return web.url(HOSTS[0])


def arguments(seed: str, db: str, folder: Path, *options: str) -> list[str]:
    (folder / "c.toml").write_text(HASTY)
    run = ["run", seed, "--config", str(folder / "c.toml"), *LOOPBACK, "--scope", "any"]
    return [*run, "--db", db, *options]


def by_one(given: list[str], folder: Path, fault: Callable[[], None]) -> int:
    """Run ``crawler`` in a process with the fault; its exit code."""
    process = kill.start(given, folder / "said", partial(dying.crawl, fault))
    process.join(kill.PATIENCE_S)
    assert process.exitcode is not None, (folder / "said").read_text()
    return process.exitcode


def by_two(given: list[str], folder: Path, fault: Callable[[], None]) -> int:
    """Run ``crawler`` with two workers that have the fault; its exit code."""
    (folder / "sitecustomize.py").write_text(dying.IN_WORKERS.format(fault=fault.__name__))
    paths = [str(folder), os.getcwd(), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [*BOUND, sys.executable, "-m", "crawler", *given, "--workers", "2"]
    return subprocess.run(command, env=environment, capture_output=True, timeout=300, check=False).returncode


@pytest.fixture
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "c.db")
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.make_database()


# With the next test: each pair of a fault and a number of workers, of a fault and a database, and of these two.
@pytest.mark.parametrize(
    ("fault", "db"), [("robots.txt", "sqlite"), ("page", "postgres"), ("commit", "sqlite")], indirect=["db"]
)
def test_a_url_that_kills_the_only_worker_fails_and_no_other(
    fault: str, db: str, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    given = arguments(serve(loopback), db, tmp_path)
    ends = [by_one(given, tmp_path, FAULTS[fault]) for _ in range(5)]
    assert ends == [dying.EXIT_CODE] * 4 + [0], "the first death is not attributed, the next three are"
    assert_all_fetched_but(culprit(fault, loopback), db)


@pytest.mark.parametrize(
    ("fault", "db"), [("robots.txt", "postgres"), ("page", "sqlite"), ("commit", "postgres")], indirect=["db"]
)
def test_a_url_that_kills_the_workers_of_a_team_fails_and_no_other(
    fault: str, db: str, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    given = arguments(serve(loopback), db, tmp_path)
    assert 0 in (by_two(given, tmp_path, FAULTS[fault]) for _ in range(5))
    assert_all_fetched_but(culprit(fault, loopback), db)


def culprit(fault: str, web: LoopbackWeb) -> str:
    return web.url("killer.test") if fault == "robots.txt" else web.url(HOSTS[0], "/killer")


def test_kills_at_random_moments_fail_no_url(loopback: LoopbackWeb, tmp_path: Path) -> None:
    db = str(tmp_path / "c.db")
    given = arguments(serve(loopback), db, tmp_path)
    for asked in (3, 11, 19):
        slow = [*given, "--delay", "0.2"]  # so that the crawl goes on when a busy machine kills it late
        process = kill.start(slow, tmp_path / "said")
        until(lambda least=asked: len(loopback.log) >= least, "requests")
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert here(*given).code == 0
    assert_all_fetched_but(None, db)


def assert_all_fetched_but(culprit: str | None, db: str) -> None:
    rows = asyncio.run(look(db))
    failed = {url: code for url, state, code in rows if state == "failed" and code != "no_sitemap"}
    assert failed == ({} if culprit is None else {culprit: "worker_died"})
    assert {state for _, state, code in rows if code not in ("worker_died", "no_sitemap")} == {"fetched"}
    assert len(rows) >= len(HOSTS) * (PAGES + 1)


async def look(db: str) -> list[tuple[str, str, str]]:
    async with crawler.open(db) as crawl:
        rows = await crawl.query("SELECT url, state, reason_code FROM urls")
    return [(row["url"], row["state"], row["reason_code"]) for row in rows]
