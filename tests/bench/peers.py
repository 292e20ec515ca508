"""The crawlers to compare: this one, Scrapy and GNU wget. All get the same seed and the same rule on links."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.realweb import Web
from tests.spend import Spent, spend

OURS = "crawler run"
BEFORE = "crawler run before"
SCRAPY = "Scrapy"
WGET = "GNU wget"

STORE = "store.db"
LOG = "output.log"
#: A version is measured with compiled modules, as if it were installed. :func:`compile_modules` makes them.
COMPILED = ("env", "-u", "PYTHONDONTWRITEBYTECODE")
WGET_SAVED = re.compile(r"URL:(\S+) \[")


class NotInstalled(Exception):
    """A crawler is not installed on this machine. The message says how to name an installed one."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A crawler: its command, and a function that reads its results from the folder in which it ran."""

    name: str
    command: list[str]
    did: Callable[[Path], tuple[set[str], int]]
    """The URLs of the fetched pages, and the number of requests."""
    good_codes: frozenset[int] = frozenset({0})


@dataclass(frozen=True, slots=True)
class Crawl:
    """The cost and the completeness of one crawl."""

    spent: Spent
    pages: int
    requests: int
    """All requests, including those for robots.txt and for files that are not pages."""
    missing: tuple[str, ...]
    """Pages of the reference that the crawl did not fetch."""
    extra: tuple[str, ...]
    """Fetched pages that are not in the reference."""

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
    """Run a crawler in a new folder, which is removed afterwards. Raises ``RuntimeError`` if the crawler fails."""
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


def compile_modules(version: Contestant, web: Web, folder: Path) -> None:
    """Crawl one page with a version of this crawler, so that it compiles its modules."""
    crawl(replace(version, command=[*version.command, "--max-pages", "1"]), web, folder)


def ours(web: Web, python: str) -> Contestant:
    """`crawler run` without pauses. `python` is an interpreter that has the package."""
    options = ["--scope", "any", "--include", web.rule, "--allow-private", "--delay", "0", "--no-progress"]
    names = ["--resolve", "*.test=127.0.0.1"] if web.named else []
    command = [*COMPILED, python, "-m", "crawler", "run", *web.seeds, *options, *names, "--db", STORE]
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
    """GNU wget. It stores files and no links, and writes a line to its log for each saved page."""
    program = shutil.which("wget")
    if program is None:
        raise NotInstalled("not installed")
    domains = ["test"] if web.named else web.hosts
    options = ["-nv", "-r", "-l", "inf", "-H", "-D", ",".join(domains), "-e", "robots=on", "--tries=1"]
    accept = ["--compression=gzip", "--accept-regex", f"{web.rule}|/robots\\.txt$"]
    some_pages_missing = 8  # the exit code of wget if a server answered with an error, such as 404
    command = [program, *options, *accept, *web.seeds]
    return Contestant(WGET, command, lambda folder: logged(folder, web.rule), frozenset({0, some_pages_missing}))


def stored(folder: Path, pages: str, requests: str) -> tuple[set[str], int]:
    """The results of two queries to a store: the URLs of pages, and the number of requests."""
    database = sqlite3.connect(folder / STORE)
    try:
        return {url for (url,) in database.execute(pages)}, int(database.execute(requests).fetchone()[0])
    finally:
        database.close()


def logged(folder: Path, rule: str) -> tuple[set[str], int]:
    """The same from the log of wget, which has a line for each saved file, also for robots.txt, and for each error."""
    log = (folder / LOG).read_text(encoding="utf-8", errors="replace")
    saved = WGET_SAVED.findall(log)
    return {url for url in saved if re.match(rule, url)}, len(saved) + log.count(" ERROR ")
