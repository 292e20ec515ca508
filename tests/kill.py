"""Kill crawls at random moments, and compare the results: ``python -m tests.kill --rounds N --seed S``.

A round starts ``crawler run`` and kills it with ``kill -9``. When a crawl ends by itself, the next web follows. The
webs are crawled into SQLite and PostgreSQL in turn, and every second one with parsers that take a while. Each has some
hosts of the hostile web (:mod:`tests.hostile`), which must come to their expected ends.

The store must then equal the store of an uninterrupted crawl of the same web, and its log must have no answer twice.
The crawler notes what it does (:func:`noted`), so it is known at each kill which requests were in flight, or were
answered since the last commit. The servers must have seen no other request again. The server's log must show politeness
across kills: a group that was claimed at the kill is left alone for its pause after the next start. (A request that
the dead process had sent and the server had not read could still overlap the next one. These servers read requests at
once.)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from crawler.cli import main as crawler
from crawler.demo.pages import Hit, Page, Site, redirect
from crawler.demo.server import ADDRESS
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import ParserPool
from crawler.fetch.client import HttpFetcher
from crawler.frontier.decide import Outcome
from crawler.model import Fetched, PageFacts, Purpose, Request
from crawler.session.nothing_crawled import NOTHING_CRAWLED
from crawler.store.keys import render_keys
from crawler.store.postgres.store import PostgresStore
from crawler.url import host_of, split
from tests import judge
from tests.command import call
from tests.fork_server import Forked
from tests.hostile.behaviour import GIVEN_UP, HEALTHY, Behaviour, Crawl
from tests.hostile.server import Server, addresses
from tests.hostile.verdict import wrong_ends
from tests.ports import reserved_port
from tests.postgres import Cluster, binaries, cluster
from tests.threaded import Threaded
from tests.web import LoopbackWeb, random_web

DELAY_S = 0.05  # as in HASTY
PATIENCE_S = 300.0  # for a crawl of a second or two, on a busy machine
CONTENT = (
    "SELECT url, state, reason, depth FROM urls",
    "SELECT url, status, body_sha256, title, noindex FROM pages",
    "SELECT source, target, anchor, rel FROM links",
)
#: Answers that were in the log when the crawler asked for them again. A page whose header fields forbid keeping it may
#: be asked for again until it has been read. A page that was named as a sitemap is requested as both.
REPEATED = (
    "SELECT url FROM requests WHERE status IS NOT NULL AND error_kind IS NULL AND purpose <> 'robots'"
    " AND url NOT IN (SELECT url FROM urls WHERE reason_code = 'noindex')"
    " GROUP BY url, purpose HAVING count(*) > 1"
)
#: Queries that must give no row of a PostgreSQL database.
CONSISTENT = (
    "SELECT id FROM url WHERE (state = 'queued') <> EXISTS (SELECT 1 FROM frontier WHERE url_id = id)",
    "SELECT s.name, s.fetched, n FROM site s, LATERAL (SELECT count(*) AS n FROM page WHERE site_of(url_id) = s.id)"
    " AS p WHERE s.fetched <> n",
    "SELECT name FROM site GROUP BY name HAVING count(*) > 1",
    "SELECT url_id FROM page WHERE body_id NOT IN (SELECT id FROM body)",
    "SELECT name FROM politeness_group WHERE claimed_by IS NOT NULL",
    "SELECT max(id) AS last, count(*) AS n FROM request HAVING max(id) <> count(*)",
)

#: The longest time that reading a page takes with slow parsers, in seconds.
_SLOW_S = 0.8
#: How many hostile hosts are in each web.
_HOSTILE = 8
_CONFIG = """
[politeness]
delay = {delay_s}
slow_factor = 0
backoff_first = 0.2
[robots]
retry_first = 0.2
[fetch]
retry_pause = 0.2
retries = 2
total_timeout = 3
max_body_bytes = 4_000_000
allow_private = true
resolve = {resolve}
[discovery]
sitemaps = true
[limits]
max_pages_per_site = 60
"""


@dataclass(frozen=True, slots=True)
class Survived:
    """One crawl that was killed ``kills`` times. ``wrong`` lists the differences and violations.

    ``repeated`` counts the requests that the servers have seen again, and ``repeatable`` those that they might.
    """

    kills: int
    pages: int
    requests: int
    repeated: int
    repeatable: int
    wrong: list[str]


class HostileWeb(Threaded):
    """A context manager that serves hostile hosts from a thread."""

    def __init__(self, behaviours: Sequence[Behaviour]) -> None:
        super().__init__()
        self.behaviours = behaviours
        self.port = reserved_port("0.0.0.0")
        self._server = Server(behaviours, self.port)

    async def _serve(self) -> None:
        await self._server.run(self._stop, self._ready.set)

    @property
    def seeds(self) -> list[str]:
        return [one.url(path, self.port) for one in self.behaviours for path in one.seeds]

    @property
    def resolve(self) -> list[str]:
        return [f"{pattern}{host}={at}" for host, at in addresses(self.behaviours).items() for pattern in ("", "*.")]

    @property
    def log(self) -> list[Hit]:
        return self._server.log

    def wrong_ends(self, db: Path | str) -> list[str]:
        """The URLs of these hosts that came to another end than expected."""
        ends = {url: tuple(end) for url, *end in rows(db, "SELECT url, state, reason_code, reason FROM urls")}
        titles = dict(rows(db, "SELECT url, title FROM pages"))
        return [f"{one.name}: {fault}" for one in self.behaviours for fault in wrong_ends(ends, titles, one, self.port)]


def hostile_group(chance: random.Random) -> list[Behaviour]:
    """Some hostile hosts that answer at once, each time in the same way, and name no other host."""
    from tests.hostile import catalogue  # 100 MB of answers

    return chance.sample([one for one in catalogue.ALL if _answers_at_once(one) and not _names_others(one)], _HOSTILE)


def _answers_at_once(one: Behaviour) -> bool:
    is_plain = one.crawl is Crawl.MAIN and not (one.at_accept or one.dns or one.certificate)
    is_fixed = all(isinstance(reply, Page | bytes) for reply in one.site.values())
    return is_plain and is_fixed and GIVEN_UP not in one.ends.values()


def _names_others(one: Behaviour) -> bool:
    replies = [(reply.octets, reply.all_headers) if isinstance(reply, Page) else reply for reply in one.site.values()]
    return HEALTHY in repr(replies) or not all(path.startswith("/") for path in one.ends)


def killed_crawl(web: LoopbackWeb, seed: int, folder: Path, most_kills: int, db: Path | str | None = None) -> Survived:
    """Crawl the web of ``seed`` undisturbed, and again with up to ``most_kills`` kills, and compare.

    The killed crawl goes into ``db``, or else into an SQLite file.
    """
    chance = random.Random(seed)
    seeds = serve(web, seed)
    folder.mkdir()
    db, whole, said = db or folder / "killed.db", folder / "whole.db", folder / "said"
    slow_s = _SLOW_S * (chance.random() < 0.5)
    with HostileWeb(hostile_group(chance)) as hostile:
        resolve = json.dumps([*hostile.resolve, f"*.test={ADDRESS}"])
        (folder / "crawl.toml").write_text(_CONFIG.format(delay_s=DELAY_S, resolve=resolve))
        options = ["run", *seeds, *hostile.seeds, "--config", str(folder / "crawl.toml"), "--no-progress", "--db"]
        wrong = finish(start([*options, str(whole)], said), said)
        web.web.log.clear()
        hostile.log.clear()

        notes = folder / "notes"
        run = partial(noted, notes, slow_s)
        kills, repeatable = 0, Counter[str]()
        while kills < most_kills:
            notes.write_text("")
            process = start([*options, str(db)], said, run)
            _wait(web, chance, process)
            process.kill()
            if process.wait() != -signal.SIGKILL:
                wrong += finish(process, said, also=NOTHING_CRAWLED if kills else 0)
                break
            kills += 1
            repeatable += may_repeat(notes.read_text().splitlines())
        # Nothing is left to crawl if the last kill came after the last commit.
        wrong += finish(start([*options, str(db)], said), said, also=NOTHING_CRAWLED)
        asked = _asked((*web.log, *hostile.log))
        wrong += hostile.wrong_ends(db)
    wrong += differences(whole, db)
    # PostgreSQL may end a commit that was sent before the kill when the next process has already begun.
    late = repeatable if isinstance(db, str) else Counter[str]()
    wrong += [f"asked for again: {url}" for (url,) in rows(db, REPEATED) if not late[_place(url)]]
    # A request that failed for a while is logged each time that it is made.
    logged = Counter(_place(url) for (url,) in rows(db, "SELECT url FROM requests WHERE purpose <> 'robots'"))
    again = asked - logged
    wrong += [f"repeated though it was committed: {url} ({n} times)" for url, n in (again - repeatable).items()]
    manners = judge.Manners(DELAY_S, forbidden=lambda host, path: path.startswith("/closed/"), agent="PoliteCrawler/")
    wrong += map(str, judge.violations(web.log, manners))
    pages = len(rows(db, CONTENT[1]))
    return Survived(kills, pages, len(web.log), again.total(), repeatable.total(), wrong)


def _place(url: str) -> str:
    """The host and path of a URL, as the log of a server has them: a ``Host`` header has no final dot."""
    return f"{host_of(url).rstrip('.')}{split(url).path}"


def _asked(hits: Iterable[Hit]) -> Counter[str]:
    """The requests that servers have seen, without those for robots.txt, by host and path."""
    return Counter(f"{hit.host}{hit.path}" for hit in hits if hit.path != "/robots.txt")


# --- what the crawler notes -----------------------------------------------------------------------


def noted(notes: Path, slow_s: float, arguments: list[str], said: Path) -> None:
    """As :func:`crawl`. Each page takes up to ``slow_s`` longer to be read, and ``notes`` tell what happens when.

    A line begins with a sign: a request is *s*ent, *a*nswered, its document is *k*ept until it is read, the URL has an
    *o*utcome; all that was finished is *t*aken for a commit, and the commit has *l*anded.
    """
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)
    chance = random.Random(str(notes))
    fetch, read = HttpFetcher.fetch, ParserPool.read

    def note(sign: str, url: str = "") -> None:
        os.write(file, f"{sign}{url}\n".encode())

    async def noting_fetch(self: HttpFetcher, request: Request) -> Any:
        is_document = request.purpose in (Purpose.PAGE, Purpose.SITEMAP)
        if is_document:
            note("s", request.url)
        answer = await fetch(self, request)
        if is_document:
            note("a", request.url)
        return answer

    async def slow_read(self: ParserPool, document: Fetched, *options: Any, **more: Any) -> PageFacts:
        await asyncio.sleep(chance.uniform(0, slow_s))
        return await read(self, document, *options, **more)

    def noting(name: str, sign: str, url_of: Callable[..., str]) -> None:
        method = getattr(Outbox, name)

        def noting_method(self: Outbox, *given: Any) -> Any:
            done = method(self, *given)
            note(sign, url_of(*given))
            return done

        mock.patch.object(Outbox, name, noting_method).start()

    def url_of_outcome(outcome: Outcome) -> str:
        return outcome.queued.url

    mock.patch.object(HttpFetcher, "fetch", noting_fetch).start()
    mock.patch.object(ParserPool, "read", slow_read).start()
    noting("add_unread", "k", lambda _, answer: answer.url)
    noting("add_outcome", "o", url_of_outcome)
    noting("next_batch", "t", lambda: "")
    noting("committed", "l", lambda _: "")
    crawl(arguments, said)


def may_repeat(notes: Iterable[str]) -> Counter[str]:
    """The requests that the next process may send again after a kill, by the notes of the killed one.

    These were in flight, or answered since the last commit. A document that must not be kept is another, until it has
    been read.
    """
    open_requests: dict[str, str] = {}  # the last sign of each
    for line in notes:
        sign, url = line[:1], line[1:]
        if sign == "t":
            open_requests |= {url: "t" for url, last in open_requests.items() if last in "ko"}
        elif sign == "l":
            open_requests = {url: last for url, last in open_requests.items() if last != "t"}
        elif sign == "s" or url in open_requests:
            open_requests[url] = sign
    return Counter(map(_place, open_requests))


# --- crawls ---------------------------------------------------------------------------------------


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


def finish(process: Forked, said: Path, patience_s: float = PATIENCE_S, also: int = 0) -> list[str]:
    """Wait for a crawl to end, with exit code 0 or ``also``. Returns the faults of its end."""
    code = ended(process, patience_s)
    if code in (0, also):
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


def differences(whole: Path, killed: Path | str) -> list[str]:
    """How a store differs from that of an undisturbed crawl, without hostile hosts, and from what any store must be."""
    wrong = []
    for query in CONTENT:
        expected, found = ([row for row in rows(db, query) if ".web.test" in str(row[0])] for db in (whole, killed))
        if len(found) != len(set(found)):
            wrong.append(f"rows twice: {query}")
        wrong += [f"lost: {row}" for row in set(expected) - set(found)]
        wrong += [f"new: {row}" for row in set(found) - set(expected)]
    if isinstance(killed, Path):
        wrong += [f"integrity: {row}" for row in rows(killed, "PRAGMA integrity_check") if row != ("ok",)]
    else:
        wrong += [f"inconsistent: {row}" for check in CONSISTENT for row in rows(killed, render_keys(check))]
    return wrong


def rows(db: Path | str, query: str) -> list[tuple[Any, ...]]:
    """Query a store: an SQLite file, or the URL of a PostgreSQL database."""
    if isinstance(db, str):
        return asyncio.run(_postgres_rows(db, query))
    connection = sqlite3.connect(db)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def _postgres_rows(url: str, query: str) -> list[tuple[Any, ...]]:
    store = await PostgresStore.open(url, read_only=True)
    try:
        return [tuple(row.values()) for row in await store.query(query)]
    finally:
        await store.close()


def main(arguments: list[str] | None = None) -> int:
    """Run rounds until enough processes were killed. Returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="how many processes to kill")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    kills, seed, failed = 0, asked.seed, False
    with ExitStack() as opened:
        web = opened.enter_context(LoopbackWeb())
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        server: Cluster | None = opened.enter_context(cluster()) if binaries() is not None else None
        while kills < asked.rounds:
            db = server.make_database() if server is not None and seed % 2 else None
            survived = killed_crawl(web, seed, folder / str(seed), asked.rounds - kills, db)
            kills += survived.kills
            failed = failed or bool(survived.wrong)
            told = "; ".join(survived.wrong[:10]) or "as if undisturbed"
            counts = f"{survived.kills} kills, {survived.pages} pages, {survived.requests} requests"
            repeats = f"{survived.repeated} of {survived.repeatable} open ones repeated"
            print(f"web {seed} ({'SQLite' if db is None else 'PostgreSQL'}): {counts}, {repeats}: {told}", flush=True)
            seed += 1
    return int(failed)


if __name__ == "__main__":
    sys.exit(import_module(__spec__.name).main())  # started processes know its functions by this name
