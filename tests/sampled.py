"""Three sites, and a store that has a sample of them: for the tests of ``crawler run --sample``."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from crawler.cli.shared import STOPPED
from crawler.demo.pages import Page, Site, plain
from tests.command import HASTY, LOOPBACK, Ended, finish, here, start, until
from tests.web import LoopbackWeb

SITES = ("a.test", "b.test", "c.test")
LEAVES = 30
#: The URLs of a site with at most two links to them: the start page, three hubs, the leaves and /far.
FRAME = 1 + 3 + LEAVES + 1
#: The path of each leaf. Every sixth leaf is closed, and every fifth of all is missing.
PATHS = tuple(f"/closed/{n}" if n % 6 == 0 else f"/{n}" for n in range(LEAVES))
NEARER = ("/", "/h0", "/h1", "/h2")


def site(web: LoopbackWeb, host: str) -> Site:
    """One of the sites. /far is on the next site, and links back to the start page."""
    elsewhere = web.url(SITES[(SITES.index(host) + 1) % 3], "/far")
    pages: dict[str, Page] = {
        "/robots.txt": plain("User-agent: *\nDisallow: /closed/\n"),
        "/": Page("<html lang=en><a href=/h0>0<a href=/h1>1<a href=/h2>2</a>"),
        "/far": Page(f"<html lang=de><title>far</title><a href='{web.url(host)}'>home</a>"),
    }
    for hub in range(3):
        leaves = "".join(f"<a href='{PATHS[n]}'>{n}</a>" for n in range(LEAVES) if n % 3 == hub or n % 7 == 0)
        pages[f"/h{hub}"] = Page(f"<html lang=en>{leaves}<a href='{elsewhere}'>far</a>", delay_s=0.01)
    for n in range(LEAVES):
        if n % 5:
            pages[PATHS[n]] = Page(f"<html lang=fr>{'x' * 100 * n}<a href=/deep>deep</a>")
    return pages


@contextmanager
def three_sites() -> Iterator[LoopbackWeb]:
    with LoopbackWeb() as web:
        web.sites.update({host: site(web, host) for host in SITES})
        yield web


class Sampled:
    """A store, and the crawl of the web that fills it."""

    def __init__(self, web: LoopbackWeb, folder: Path, toml: str = "") -> None:
        self.web = web
        self.db = folder / "s.db"
        folder.mkdir(exist_ok=True)
        self._config = folder / "c.toml"
        self._config.write_text(HASTY.replace("0.05", "0.01") + toml)

    # --- commands -----------------------------------------------------------------------------

    def command(self, *options: str | Path, seeds: Sequence[str] = SITES) -> list[str | Path]:
        named = map(self.web.url, seeds)
        return ["run", *named, "--config", self._config, *LOOPBACK, "--db", self.db, *options]

    def run(self, *options: str | Path, seeds: Sequence[str] = SITES, stdin: bytes = b"") -> Ended:
        return here(*self.command(*options, seeds=seeds), stdin=stdin)

    def crawl(self, *options: str | Path, seeds: Sequence[str] = SITES) -> dict[str, Any]:
        """Run to the end. Returns what the command says of the sample."""
        ended = self.run(*options, "--json", seeds=seeds)
        assert ended.code == 0, ended
        return dict(json.loads(ended.out)["sample"])

    def run_until(self, condition: Callable[[], bool], *options: str | Path, seeds: Sequence[str] = SITES) -> Ended:
        """Run, and stop the crawl when the condition holds."""
        process = start(*self.command(*options, seeds=seeds))
        until(condition, "the moment to stop")
        process.send_signal(signal.SIGINT)
        ended = finish(process)
        assert ended.code == STOPPED, ended
        return ended

    def ask(self, command: str, *options: str | Path) -> Ended:
        """Run a command on the store."""
        return here(*command.split(), *options, "--db", self.db)

    def sample(self, *options: str | Path) -> dict[str, Any]:
        """What ``crawler sample`` says."""
        ended = self.ask("sample", *options, "--json")
        assert ended.code == 0, ended
        return dict(json.loads(ended.out))

    def audit_of_sample(self) -> dict[str, Any]:
        """What the audit says of its rule about samples, with the violations."""
        audit = json.loads(self.ask("audit", "--json").out)
        (check,) = (each for each in audit["checks"] if each["check"] == "sample")
        return {**check, "found": [each for each in audit["violations"] if each["check"] == "sample"]}

    # --- what is known ------------------------------------------------------------------------

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.db)) as store:
            return store.execute(sql).fetchall()

    def change(self, *statements: str) -> None:
        """Doctor the store."""
        with closing(sqlite3.connect(self.db)) as store, store:
            for statement in statements:
                store.execute(statement)

    def answered(self) -> Counter[str]:
        """How many pages of each site have their answer in the store; the run may be making the store."""
        try:
            return Counter(dict(self.query("SELECT site, count(*) FROM pages GROUP BY site")))
        except sqlite3.OperationalError:
            return Counter()

    def draws(self, columns: str = "url, stratum, walk, probability, state") -> list[tuple[Any, ...]]:
        return self.query(f"SELECT {columns} FROM samples ORDER BY draw")

    def drawn(self) -> set[str]:
        """The URLs of the sample."""
        return {url for (url,) in self.draws("url")}


def by_what(said: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The estimates of a sample, by what they estimate."""
    return {figure["what"]: figure for figure in said["estimates"]}


def asked(web: LoopbackWeb, since: int = 0) -> set[str]:
    """The pages that were requested since so many requests."""
    aside = ("/robots.txt", "/not-found-")
    return {web.url(hit.host.partition(":")[0], hit.path) for hit in web.log[since:] if not hit.path.startswith(aside)}


def urls(web: LoopbackWeb, paths: Sequence[str]) -> set[str]:
    """These paths on each site."""
    return {web.url(host, path) for host in SITES for path in paths}
