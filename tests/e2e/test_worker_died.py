"""A URL that kills each worker that visits it fails at last, alone, and the crawl comes to its end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crawler
from crawler.demo.pages import Page, plain
from tests.command import HASTY, LOOPBACK
from tests.web import LoopbackWeb

#: Faults that end the process of a crawl, by the place where they strike. The module is imported by every process.
FAULTS = {
    "robots.txt": """
from crawler.engine import rules_cache
read = rules_cache.read_robots
def faulty(question):
    if "killer" in question.site:
        os._exit(9)
    return read(question)
rules_cache.read_robots = faulty
""",
    "page": """
from crawler.engine.answers import Answers
outcome = Answers.outcome
async def faulty(self, queued, result, *more):
    if queued.url.endswith("/killer"):
        os._exit(9)
    return await outcome(self, queued, result, *more)
Answers.outcome = faulty
""",
    "commit": """
from crawler.store.sql.commit import Committer
commit = Committer.commit
async def faulty(self, batch):
    if any(outcome.queued.url.endswith("/killer") for outcome in batch.outcomes):
        os._exit(9)
    return await commit(self, batch)
Committer.commit = faulty
""",
    "memory": """
import resource
from crawler.engine.answers import Answers
outcome = Answers.outcome
async def faulty(self, queued, result, *more):
    if queued.url.endswith("/killer"):
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        taken = []
        try:
            while True:
                taken.append(bytes(256 << 20))  # zeros that the system need not give before they are written
        except MemoryError:
            os._exit(9)
    return await outcome(self, queued, result, *more)
Answers.outcome = faulty
""",
}
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


def command(seed: str, db: str, folder: Path, *options: str) -> list[str]:
    (folder / "c.toml").write_text(HASTY)
    run = [sys.executable, "-m", "crawler", "run", seed, "--config", str(folder / "c.toml")]
    return [*run, *LOOPBACK, "--scope", "any", "--db", db, *options]


def crawl_until_done(run: list[str], folder: Path, runs: int) -> int:
    """Run the command again and again until it ends with 0; how many runs that took."""
    paths = [str(folder), os.getcwd(), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    for number in range(1, runs + 1):
        ended = subprocess.run(run, env=environment, capture_output=True, timeout=300, check=False)
        if ended.returncode == 0:
            return number
    raise AssertionError(ended.stderr.decode())


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_url_that_kills_its_workers_fails_and_no_other(
    dialect: str, workers: int, fault: str, loopback: LoopbackWeb, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = serve(loopback)
    db = str(tmp_path / "c.db") if dialect == "sqlite" else request.getfixturevalue("postgres").make_database()
    (tmp_path / "sitecustomize.py").write_text("import os\n" + FAULTS[fault])
    options = ["--workers", str(workers)] if workers > 1 else []
    runs = crawl_until_done(command(seed, db, tmp_path, *options), tmp_path, runs=5)
    if workers == 1:
        assert runs == 5, "the first death is not attributed, the next three are, and the fifth run ends"
    culprit = loopback.url("killer.test") if fault == "robots.txt" else f"{seed}killer"
    assert_all_fetched_but(culprit, db)


def test_kills_at_random_moments_fail_no_url(loopback: LoopbackWeb, tmp_path: Path) -> None:
    db = str(tmp_path / "c.db")
    run = command(serve(loopback), db, tmp_path)
    for seconds in (1.0, 1.2, 1.4):
        process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert crawl_until_done(run, tmp_path, runs=1) == 1
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
