"""The crawlers that are measured: ours, Scrapy and GNU wget, each with the same seed and the same rule to follow."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.realweb import Web
from tests.bench.spend import Spent, spend

OURS = "crawler run"
BEFORE = "crawler run before"
SCRAPY = "Scrapy"
WGET = "GNU wget"

STORE = "store.db"
LOG = "output.log"
WGET_SAVED = re.compile(r"URL:(\S+) \[")


class NotInstalled(Exception):
    """A crawler that this machine does not have, and how to name it."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A crawler: its command, and how to tell what it did from the folder it was run in."""

    name: str
    command: list[str]
    did: Callable[[Path], tuple[set[str], int]]
    """The URLs of the pages it took, and how many requests it sent."""
    good_codes: frozenset[int] = frozenset({0})


@dataclass(frozen=True, slots=True)
class Crawl:
    """What one crawl cost and how complete it was."""

    spent: Spent
    pages: int
    requests: int
    """With those for robots.txt and for what is no page."""
    missing: tuple[str, ...]
    """Pages of the reference that it did not take."""
    extra: tuple[str, ...]
    """Pages it took that the reference does not have."""

    @property
    def cpu_ms_per_page(self) -> float:
        return self.spent.cpu_s * 1000 / max(1, self.pages)

    @property
    def own_ms_per_page(self) -> float:
        """CPU time of the main process alone."""
        return self.spent.own_cpu_s * 1000 / max(1, self.pages)

    @property
    def peak_mb(self) -> float:
        return self.spent.peak_bytes / 1e6

    def __str__(self) -> str:
        cpu = f"{self.cpu_ms_per_page:.2f} ms/page, {self.own_ms_per_page:.2f} of them in the main process"
        cost = f"{cpu}, {self.peak_mb:.0f} MB, {self.spent.wall_s:.1f} s"
        return f"{cost}, {self.completeness()}"

    def completeness(self) -> str:
        lacks = f"{named('missing', self.missing)}, {named('extra', self.extra)}"
        return f"{self.pages:,} pages by {self.requests:,} requests, {lacks}"


def named(word: str, urls: tuple[str, ...], most: int = 3) -> str:
    """How many URLs, and the first of them: `1 missing (URL)`."""
    dots = " …" if len(urls) > most else ""
    return f"{len(urls):,} {word} ({' '.join(urls[:most])}{dots})" if urls else f"0 {word}"


def crawl(contestant: Contestant, web: Web, folder: Path) -> Crawl:
    """Runs a crawler in an empty folder, which is removed after; RuntimeError if it does not end well."""
    folder.mkdir()
    try:
        log = folder / LOG
        spent = spend(contestant.command, folder, log)
        if spent.code not in contestant.good_codes:
            tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"{contestant.name} ended with {spent.code}: {tail}")
        pages, requests = contestant.did(folder)
    finally:
        shutil.rmtree(folder)
    missing, extra = sorted(web.reference - pages), sorted(pages - web.reference)
    return Crawl(spent, len(pages), requests, tuple(missing), tuple(extra))


def ours(web: Web, python: str) -> Contestant:
    """`crawler run` as it is, with no pause; `python` is an interpreter that has the package."""
    options = ["--scope", "any", "--include", web.rule, "--allow-private", "--delay", "0", "--no-progress"]
    names = ["--resolve", "*.test=127.0.0.1"] if web.named else []
    command = [python, "-m", "crawler", "run", *web.seeds, *options, *names, "--db", STORE]
    pages, requests = "SELECT url FROM pages WHERE status = 200", "SELECT count(*) FROM requests"
    return Contestant(OURS, command, lambda folder: stored(folder, pages, requests))


def before(web: Web, python: str, tree: Path) -> Contestant:
    """`crawler run` of another version, whose sources are in the folder `tree`."""
    made = ours(web, python)
    command = ["env", f"PYTHONPATH={tree.resolve()}", *made.command]
    return replace(made, name=BEFORE, command=command)


def scrapy(web: Web, python: str) -> Contestant:
    """The spider of `scrapy_spider.py`, run by `python`."""
    if subprocess.run([python, "-c", "import scrapy"], capture_output=True, check=False).returncode:
        raise NotInstalled(f"not installed in {python}: name an interpreter that has it by --scrapy")
    spider = Path(__file__).with_name("scrapy_spider.py")
    command = [python, str(spider), web.seeds[0], web.rule, STORE]
    pages, requests = "SELECT url FROM page WHERE status = 200", "SELECT requests FROM crawl"
    return Contestant(SCRAPY, command, lambda folder: stored(folder, pages, requests))


def wget(web: Web) -> Contestant:
    """Stores files and no links. It names each page it saved in a line of its log."""
    program = shutil.which("wget")
    if program is None:
        raise NotInstalled("not installed")
    domains = ["test"] if web.named else web.hosts
    options = ["-nv", "-r", "-l", "inf", "-H", "-D", ",".join(domains), "-e", "robots=on", "--tries=1"]
    accept = ["--compression=gzip", "--accept-regex", f"{web.rule}|/robots\\.txt$"]
    some_pages_missing = 8  # its code when a server answered with an error, such as 404
    command = [program, *options, *accept, *web.seeds]
    return Contestant(WGET, command, lambda folder: logged(folder, web.rule), frozenset({0, some_pages_missing}))


def stored(folder: Path, pages: str, requests: str) -> tuple[set[str], int]:
    """What a store's two queries say."""
    database = sqlite3.connect(folder / STORE)
    try:
        return {url for (url,) in database.execute(pages)}, int(database.execute(requests).fetchone()[0])
    finally:
        database.close()


def logged(folder: Path, rule: str) -> tuple[set[str], int]:
    """What wget's log says: a line for each file saved, robots.txt among them, and one for each error."""
    log = (folder / LOG).read_text(encoding="utf-8", errors="replace")
    saved = WGET_SAVED.findall(log)
    return {url for url in saved if re.match(rule, url)}, len(saved) + log.count(" ERROR ")
