"""Kill crawls at random moments, and compare the results: ``python -m tests.kill --rounds N --seed S``.

A round starts ``crawler run`` and kills it with ``kill -9``. When a crawl ends by itself, the next web follows. The
store must then equal the store of an uninterrupted crawl of the same web, and its log must have no answer twice: a kill
repeats only requests in flight, and answers that came since the last commit. The server's log must show politeness
across kills: a group that was claimed at the kill is left alone for its pause after the next start. (A request that
the dead process had sent and the server had not read could still overlap the next one. These servers read requests at
once.)
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from crawler.cli import main as crawler
from crawler.demo.pages import Page, Site, redirect
from tests import judge
from tests.command import HASTY, LOOPBACK, call
from tests.fork_server import Forked
from tests.web import LoopbackWeb, random_web

DELAY_S = 0.05  # as in HASTY
PATIENCE_S = 300.0  # for a crawl of a second or two, on a busy machine
CONTENT = (
    "SELECT url, state, reason, depth FROM urls",
    "SELECT url, status, body_sha256, title, noindex FROM pages",
    "SELECT source, target, anchor, rel FROM links",
)
#: Answers that were in the log when the crawler asked for them again.
REPEATED = "SELECT url FROM requests WHERE status IS NOT NULL AND purpose <> 'robots' GROUP BY url HAVING count(*) > 1"


@dataclass(frozen=True, slots=True)
class Survived:
    """One crawl that was killed ``kills`` times. ``wrong`` lists the differences and violations."""

    kills: int
    pages: int
    requests: int
    wrong: list[str]


def killed_crawl(web: LoopbackWeb, seed: int, folder: Path, most_kills: int) -> Survived:
    """Crawl the web of ``seed`` undisturbed, and again with up to ``most_kills`` kills, and compare."""
    chance = random.Random(seed)
    seeds = serve(web, seed)
    folder.mkdir()
    (folder / "hasty.toml").write_text(HASTY)
    options = ["run", *seeds, "--config", str(folder / "hasty.toml"), *LOOPBACK, "--db"]
    said = folder / "said"
    wrong = finish(start([*options, str(folder / "whole.db")], said), said)
    web.web.log.clear()

    kills = 0
    while kills < most_kills:
        process = start([*options, str(folder / "killed.db")], said)
        _wait(web, chance, process)
        process.kill()
        if process.wait() != -signal.SIGKILL:
            break
        kills += 1
    wrong += finish(start([*options, str(folder / "killed.db")], said), said)
    wrong += _differences(folder / "whole.db", folder / "killed.db")
    wrong += [f"asked for again: {url}" for (url,) in rows(folder / "killed.db", REPEATED)]
    manners = judge.Manners(DELAY_S, forbidden=lambda host, path: path.startswith("/closed/"), agent="PoliteCrawler/")
    wrong += map(str, judge.violations(web.log, manners))
    return Survived(kills, len(rows(folder / "killed.db", CONTENT[1])), len(web.log), wrong)


def start(arguments: list[str], said: Path, run: Callable[[list[str], Path], None] | None = None) -> Forked:
    """A crawler in a separate process; its output goes to a file. ``run`` stands in place of :func:`crawl`."""
    return call(partial(run or crawl, arguments, said))


def crawl(arguments: list[str], said: Path) -> None:
    """Run ``crawler`` in this process. Its output goes to a file."""
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = ["crawler", *arguments]
    crawler()


def finish(process: Forked, said: Path, patience_s: float = PATIENCE_S) -> list[str]:
    """Wait for a crawl to end. Returns the faults of its end."""
    code = ended(process, patience_s)
    if code == 0:
        return []
    process.kill()
    return [f"ended with {code}: {said.read_text()}"]


def ended(process: Forked, patience_s: float) -> int | None:
    """Wait for the end of a process. Returns its exit code, and ``None`` if it has not ended in time."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    return process.returncode


def serve(web: LoopbackWeb, seed: int, hosts: int = 3, pages_per_host: int = 6) -> list[str]:
    """Put a random web on the server, and some odd pages; returns the seeds."""
    made = random_web(seed, hosts=hosts, pages_per_host=pages_per_host, port=web.port)
    odd: dict[str, Page] = {
        "/odd": Page("<a href=/moved>moved</a><a href=/none>none</a><a href=/hidden>hidden</a><a href=/x.pdf>x</a>"),
        "/moved": redirect("/there", 301),
        "/there": Page("<title>there</title>"),
        "/hidden": Page("<meta name=robots content=noindex><title>hidden</title><a href=/there>there</a>"),
        "/x.pdf": Page(b"%PDF", content_type="application/pdf"),
    }
    web.sites.clear()
    web.sites.update((host, _slow({**site, **odd})) for host, site in made.sites.items())
    return [*made.seeds, web.url("h0.web.test", "/odd")]


def _slow(site: Site) -> Site:
    """Pages that take a moment, so that kills fall within requests."""
    return {path: replace(page, delay_s=0.01) if isinstance(page, Page) else page for path, page in site.items()}


def _wait(web: LoopbackWeb, chance: random.Random, process: Forked) -> None:
    """Wait until a random moment: mostly between requests, sometimes during the start.

    On a busy machine the start alone can take seconds. So only the end of the process ends the wait for requests:
    kills that come faster than requests would hit the processing of one page again and again, and fail it for that.
    """
    if chance.random() < 0.15:
        time.sleep(chance.uniform(0, 0.3))
        return
    enough, deadline = len(web.web.log) + chance.randint(1, 12), time.monotonic() + PATIENCE_S
    while len(web.web.log) < enough and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(chance.uniform(0, DELAY_S))


def _differences(whole: Path, killed: Path) -> list[str]:
    wrong = []
    for query in CONTENT:
        expected, found = rows(whole, query), rows(killed, query)
        if len(found) != len(set(found)):
            wrong.append(f"rows twice: {query}")
        wrong += [f"lost: {row}" for row in set(expected) - set(found)]
        wrong += [f"new: {row}" for row in set(found) - set(expected)]
    wrong += [f"integrity: {row}" for row in rows(killed, "PRAGMA integrity_check") if row != ("ok",)]
    return wrong


def rows(db: Path, query: str) -> list[tuple[object, ...]]:
    """Query an SQLite store."""
    connection = sqlite3.connect(db)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def main(arguments: list[str] | None = None) -> int:
    """Run rounds until enough processes were killed. Returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="how many processes to kill")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    kills, seed, failed = 0, asked.seed, False
    with LoopbackWeb() as web, tempfile.TemporaryDirectory() as folder:
        while kills < asked.rounds:
            survived = killed_crawl(web, seed, Path(folder) / str(seed), asked.rounds - kills)
            kills += survived.kills
            failed = failed or bool(survived.wrong)
            told = "; ".join(survived.wrong[:10]) or "as if undisturbed"
            print(f"web {seed}: {survived.kills} kills, {survived.pages} pages, {survived.requests} requests: {told}")
            seed += 1
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
