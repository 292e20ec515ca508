"""Three weeks with a list of seeds, of which one in ten is wrong, under a timer and with all that happens in weeks.

A timer starts a run of a quarter of an hour each day, and a backup after every third. A released version made the
store. The disk is full when the run of the fifth day begins. On the thirteenth the database is lost in a run, and
restored from the last backup.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from crawler.demo.pages import Fault, Hit, Page, Site, plain, redirect
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.disk_reserve import DiskReserve
from crawler.frontier.operator import Command
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.inspect.seeds import QUEUE, Ledger, Outcome, read_ledger
from crawler.reasons import EndCode, ErrorKind
from crawler.settings.changes import note_skipped
from crawler.settings.seeds import all_seeds
from crawler.store.copy import copy_store
from crawler.store.open import give_order_to_file
from crawler.store.sqlite.store import SqliteStore
from tests import judge
from tests.released_stores import FOLDER, LINKS, read
from tests.simulation.crawls import Options, rows, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DAYS, DAY_S, RUN_S = 21, 86_400.0, 900.0
FULL_ON, LOST_ON = 4, 12  # counted from 0
LARGE, PAGES, PAUSE_S = 3, 70, 200.0  # sites that take weeks; pages of each, and their Crawl-delay
FULL, ROOM = 10**8, 10**11  # bytes that are free
DB = "crawl.db"
OPTIONS = Options(scope=ScopeSettings(ScopeMode.DOMAIN))


class Wrong(NamedTuple):
    """A way in which a seed can be wrong: its line, the site behind it, and what the ledger must say of it.

    ``n`` in these texts is the number of the seed. ``meant`` is a site that the remedy leads to.
    """

    line: str
    outcome: Outcome
    remedy: str
    site: Site | None = None
    host: str = "wN.test"
    meant: str = ""


SMALL: Site = {"/robots.txt": plain(""), "/": Page("<a href=/1>1</a>"), "/1": Page("x")}
OPEN = {"/robots.txt": plain("")}
WAYS: dict[str, Wrong] = {
    "no scheme": Wrong("meantN.test", Outcome.SKIPPED, "control queue https://meantN.test/", meant="meantN.test"),
    "a misspelt scheme": Wrong(
        "htp://meantN.test/", Outcome.SKIPPED, "control queue http://meantN.test/", meant="meantN.test"
    ),
    "one slash": Wrong("http:/meantN.test/", Outcome.SKIPPED, "control queue http://meantN.test/", meant="meantN.test"),
    "two words": Wrong(
        "http://meantN.test/ our site", Outcome.SKIPPED, "control queue http://meantN.test/", meant="meantN.test"
    ),
    "a misspelt host": Wrong("http://godN.test/1", Outcome.NO_SUCH_HOST, "control queue http://goodN.test/1"),
    "no such host": Wrong("http://wN.invalid/", Outcome.NO_SUCH_HOST, "control queue http://wN.invalid/"),
    "nobody listens": Wrong(
        "http://wN.test/",
        Outcome.SILENT,
        "control queue http://wN.test/",
        {"*": Page(fault=Fault.RESET), "/robots.txt": Page(fault=Fault.RESET)},
    ),
    "moved": Wrong(
        "http://wN.test/",
        Outcome.LEFT_SCOPE,
        "control queue http://meantN.test/",
        {**OPEN, "/": redirect("http://meantN.test/", 301)},
        meant="meantN.test",
    ),
    "gone": Wrong("http://wN.test/2019/", Outcome.NOT_FOUND, "control queue http://wN.test/", {**OPEN, "/": Page("x")}),
    "closed": Wrong(
        "http://wN.test/", Outcome.CLOSED, "why http://wN.test/", {"/robots.txt": plain("User-agent: *\nDisallow: /")}
    ),
    "a file": Wrong(
        "http://wN.test/a.zip",
        Outcome.OTHER_TYPE,
        "why http://wN.test/a.zip",
        {**OPEN, "/a.zip": Page("x", content_type="application/zip")},
    ),
    "broken": Wrong(
        "http://wN.test/", Outcome.BAD_ANSWER, "control queue http://wN.test/", {**OPEN, "*": Page("x", status=500)}
    ),
}


@dataclass
class Web:
    """The list of seeds, its web, and what each wrong line must lead to: outcome and remedy by the text of the line."""

    lines: list[str] = field(default_factory=list)
    sites: dict[str, Site] = field(default_factory=dict)
    wrong: dict[str, tuple[Outcome, str]] = field(default_factory=dict)
    pages: set[tuple[str, str]] = field(default_factory=set)  # those of the right seeds

    @classmethod
    def of(cls, seeds: int) -> Web:
        web = cls()
        ways = list(WAYS.values())
        for n in range(seeds):
            if n % 10 == 9:
                web._add_wrong(ways[n // 10 % len(ways)], n)
            else:
                web._add(f"good{n}.test", SMALL)
        links = "".join(f"<a href=/{n}>x</a>" for n in range(1, PAGES))
        for n in range(LARGE):
            leaves = {f"/{n}": Page("x") for n in range(1, PAGES)}
            slow = plain(f"User-agent: *\nCrawl-delay: {PAUSE_S}\n")
            web._add(f"large{n}.test", {"/robots.txt": slow, "/": Page(links), **leaves})
        for host in ("a.test", "b.test"):  # of the released store; its links are those of the test that made it
            web.sites[host] = {**OPEN, "*": Page("x")}
        return web

    def _add(self, host: str, site: Site) -> None:
        self.lines.append(f"http://{host}/")
        self.sites[host] = site
        self.pages |= {(host, path) for path in site if path != "/robots.txt"}

    def _add_wrong(self, way: Wrong, n: int) -> None:
        if way.outcome is Outcome.NO_SUCH_HOST and "god" in way.line:
            n -= 1  # the name of the seed before it, with a letter missing
        line = way.line.replace("N", str(n))
        self.lines.append(line)
        self.wrong[line] = way.outcome, way.remedy.replace("N", str(n))
        if way.site is not None:
            moved = {
                path: redirect(f"http://meant{n}.test/", 301) if isinstance(page, Page) and page.status == 301 else page
                for path, page in way.site.items()
            }
            self.sites[way.host.replace("N", str(n))] = moved
        if way.meant:
            self.sites[way.meant.replace("N", str(n))] = SMALL


@dataclass
class Disk:
    """A disk whose space the test sets, in bytes."""

    free: int
    total: int = 200 * 10**9


@dataclass
class Weeks:
    """Three weeks of a store in ``folder``; ``list_of_seeds`` is the file that each run reads."""

    clock: VirtualClock
    folder: Path
    web: Web
    served: SimulatedWeb
    list_of_seeds: Path
    ends: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)

    @property
    def db(self) -> Path:
        return self.folder / DB

    async def run(
        self, *, lost_after_s: float | None = None, is_disk_full: bool = False, has_orders: bool = False
    ) -> None:
        """A run under the timer: to its end, or until the database is lost.

        On a day with a full disk it gets ten minutes, and room after five: the crawl looks at the disk twice a second.
        """
        read = all_seeds((), str(self.list_of_seeds), source="command line", skip_bad=True, tell=lambda _: None)
        disk = Disk(FULL if is_disk_full else ROOM)
        reserve = DiskReserve((self.folder,), space_of=lambda _: (disk.total, 0, disk.free))
        run_s = 600.0 if is_disk_full else RUN_S
        options = replace(OPTIONS, limits=LimitSettings(max_time_s=run_s))
        began_at = self.clock.now()
        async with session(self.clock, self.db, self.served, read.urls, options, reserve=reserve) as (run, store):
            await note_skipped(store, read.skipped)
            async with run.obeying_operator() if is_disk_full or has_orders else nullcontext():
                task = asyncio.create_task(run.run())
                await asyncio.wait([task], timeout=lost_after_s or run_s / 2)
                if run.progress.low_disk is not None:
                    self.paused.append(run.progress.low_disk)
                    disk.free = ROOM
                if lost_after_s is not None:
                    task.cancel()
                    await asyncio.wait([task])
                    return
                ended = await task
            await store.end_run(ended, self.clock.now())
        self.ends.append(ended.code)
        assert self.clock.now() - began_at <= run_s + 60, "each run ends in time"

    async def copy(self, source: Path, target: Path) -> None:
        """``crawler store copy``."""
        read = await SqliteStore.open(source, read_only=True)
        written = await SqliteStore.open(target)
        try:
            await copy_store(read, written, self.clock.now())
        finally:
            await written.close()
            await read.close()

    async def ledger(self) -> Ledger:
        """``crawler seeds``."""
        store = await SqliteStore.open(self.db, read_only=True)
        try:
            return await read_ledger(store, DB, self.clock.now())
        finally:
            await store.close()


class Seen(NamedTuple):
    """What the weeks led to."""

    web: Web
    weeks: Weeks
    log: list[Hit]  # until the remedies
    ledger: Ledger
    lost: set[tuple[str, str]]  # pages that came between the backup and the loss
    mended: Ledger  # after the remedies that queue URLs


async def three_weeks(clock: VirtualClock, folder: Path, seeds: int) -> Seen:
    """Let them pass."""
    web, list_of_seeds = Web.of(seeds), folder / "list"
    list_of_seeds.write_text("\n".join(web.lines))
    with sqlite3.connect(folder / DB) as db:
        db.executescript(read(FOLDER / "0.2.0.sqlite.sql.gz"))
    db.close()
    served = SimulatedWeb(clock, web.sites, unknown=ErrorKind.DNS_NO_NAME)
    weeks = Weeks(clock, folder, web, served, list_of_seeds)
    lost: set[tuple[str, str]] = set()
    for day in range(DAYS):
        await clock.sleep(max(0.0, day * DAY_S - clock.loop.time()))
        sent = len(served.log)
        if day == LOST_ON:
            await weeks.run(lost_after_s=RUN_S / 2)
            for file in folder.glob(f"{DB}*"):
                file.unlink()
            lost = {(hit.host, hit.path) for hit in served.log[sent:]}
            await weeks.copy(folder / "backup.db", weeks.db)
            continue
        await weeks.run(is_disk_full=day == FULL_ON)
        if day % 3 == 2:
            await weeks.copy(weeks.db, folder / "backup.db")
    log, ledger = list(served.log), await weeks.ledger()
    for seed in ledger.open:
        if (found := seed.remedy()) is not None and found[0] == QUEUE:
            for url in found[1]:
                await give_order_to_file(str(weeks.db), Command.QUEUE, url, clock)
    await weeks.run(has_orders=True)
    return Seen(web, weeks, log, ledger, lost, await weeks.ledger())


@pytest.mark.parametrize("seeds", [240, pytest.param(5_000, marks=pytest.mark.long)])
def test_three_weeks_with_a_list_of_which_one_seed_in_ten_is_wrong(seeds: int, tmp_path: Path) -> None:
    seen = run_virtual(partial(three_weeks, folder=tmp_path, seeds=seeds))
    web, weeks, log = seen.web, seen.weeks, seen.log
    assert len(web.wrong) == seeds // 10
    assert weeks.paused, "the disk was full on the fifth day"
    assert set(weeks.ends) <= {EndCode.MAX_TIME, EndCode.ALL_WAIT, EndCode.DONE, EndCode.NOTHING_QUEUED}

    # Every wrong seed, and no other, is in the ledger with its remedy.
    found = {seed.url: (seed.outcome, seen.ledger.remedy(seed)) for seed in seen.ledger.open}
    assert found == {line: (became, f"crawler {remedy}") for line, (became, remedy) in web.wrong.items()}
    # The remedies that queue another URL mend their seeds.
    assert {web.wrong[seed.url] for seed in seen.mended.open} == {
        (became, remedy) for line, (became, remedy) in web.wrong.items() if remedy.endswith(line)
    }

    # No page is lost, and none is asked for twice, but for those that came after the backup.
    asked = Counter(
        (hit.host, hit.path) for hit in log if hit.path != "/robots.txt" and (hit.host, hit.path) in web.pages
    )
    assert asked.keys() == web.pages
    assert {page for page, n in asked.items() if n > 1} <= seen.lost
    assert max(asked.values()) <= 2
    assert seen.lost, "the database was lost in the middle of a run"
    (old,) = run_virtual(lambda clock: rows(weeks.db, "SELECT count(*) FROM pages WHERE host IN ('a.test', 'b.test')"))
    assert old == (2 * (LINKS + 1),), "the queued URLs of the released store were fetched"
    assert judge.violations(weeks.served.log, judge.Manners(delay_s=1.0)) == []

    # Nothing grows with the time that passes.
    assert max(Counter(hit.host for hit in log if hit.host.startswith("w")).values()) <= 120
    sizes = {file.name: file.stat().st_size for file in weeks.folder.iterdir() if file.name.endswith("-wal")}
    assert sum(sizes.values()) == 0, "the write-ahead log is written back at the end of each run"
