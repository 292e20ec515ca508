"""`broad`: crawls thousands of hosts behind DNS and TLS, beside the crawlers that are installed, and with pauses alone.

Everything is made for the run (`broad_web`): a network namespace, a DNS server with dead and slow names, a CA, nginx.
Without the permission to make a namespace, the hosts are at loopback addresses, and only `crawler run` is measured.

Without pauses, all crawlers fetch the same pages, and their costs are compared. With pauses, the figure is the share of
the requests that the pauses allow: one request to a host in each period of (pause + time of its answer).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentError, ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.broad_web import BroadWeb, host, serving
from tests.bench.peers import COMPILED, LOG, OURS, SCRAPY, STORE, Contestant, stored
from tests.bench.table import Row, number
from tests.spend import Spent, spend

WGET2 = "GNU wget2"
SCHEMES = ("http", "https")
LEAST_SHARE = 0.97
LEAST_CPU, LEAST_RATE = 6.0, 9.0  # of Scrapy against ours, over HTTPS
MOST_TLS = 1.35  # CPU time over HTTPS against HTTP
MOST_MB = 250
WARM_UP = 0.4  # of the time of a crawl with pauses
LIMIT_S = 300  # of a crawl without pauses
STOPPED = -9  # the exit code of a crawler that has not ended by then


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--hosts", type=int, default=2000, help="[%(default)s]")
    parser.add_argument("--pages", type=int, default=5, help="of a host, without pauses [%(default)s]")
    parser.add_argument("--scheme", choices=SCHEMES, action="append", help="may be repeated [http and https]")
    parser.add_argument("--pause", type=float, action="append", metavar="S",
        help="of the hosts; 0 compares the crawlers; may be repeated [0 and 2]")  # fmt: skip
    parser.add_argument("--seconds", type=int, default=60, help="of a crawl with pauses [%(default)s]")
    parser.add_argument("--dead", type=float, default=0.05, metavar="SHARE", help="of the names [%(default)s]")
    parser.add_argument("--concurrency", type=int, default=256, help="of `crawler run` and Scrapy [%(default)s]")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="a folder of `python -m tests.bench web`")
    parser.add_argument("--scrapy", default=sys.executable, metavar="PYTHON", help="an interpreter that has Scrapy")
    parser.add_argument("--no-peers", action="store_true", help="measure `crawler run` alone")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the store of the last `crawler run`")


def run(options: Namespace) -> list[Row]:
    """Measure in a network namespace if this user may make one."""
    with tempfile.TemporaryDirectory(prefix="bench-broad-") as name:
        # In a namespace of its own, the parts of this benchmark start as they do here.
        inside = ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        if (
            shutil.which("unshare") is None
            or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode
        ):
            return _measure(options, Path(name), in_namespace=False)
        asked, figures = Path(name, "options.json"), Path(name, "rows.json")
        asked.write_text(json.dumps(vars(options), default=lambda path: str(path.resolve())), encoding="utf-8")
        done = subprocess.run([*inside, sys.executable, "-m", "tests.bench.broad", asked, figures], check=False)
        if done.returncode:
            raise ArgumentError(None, "the benchmark failed in its namespace")
        return [Row(**row) for row in json.loads(figures.read_text(encoding="utf-8"))]


@dataclass(frozen=True, slots=True)
class Crawl:
    """One crawl, and its pages without those that the reference does not have."""

    name: str
    scheme: str
    pause_s: float
    spent: Spent
    pages: int
    lag_s: float = math.nan
    share: float = math.nan
    """Of the requests that the pauses allow, for the hosts that have an address."""
    first_s: float = math.nan
    """From the start to the first request."""

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.spent.wall_s

    @property
    def ms_per_page(self) -> float:
        return 1000 * self.spent.cpu_s / max(1, self.pages)


def _measure(options: Namespace, folder: Path, *, in_namespace: bool) -> list[Row]:
    crawls: list[Crawl] = []
    pauses = options.pause or [0.0, 2.0]
    for pause_s in pauses:
        # With pauses, no host runs out of pages.
        pages = options.pages if pause_s == 0 else int(options.seconds / pause_s) + 3
        web = BroadWeb(options.hosts, pages, options.dead, folder / f"web-{pause_s:g}", in_namespace)
        web.folder.mkdir()
        corpus = None if options.corpus is None else Path(options.corpus)
        with serving(web, corpus):
            for scheme in options.scheme or SCHEMES:
                for contestant in _contestants(web, scheme, pause_s, options):
                    crawls.append(done := _crawl(contestant, web, scheme, pause_s, options))
                    cost = f"{done.pages:,} pages, {done.spent.cpu_s:.1f} s CPU, {done.spent.wall_s:.1f} s"
                    print(f"{done.name}, {scheme}, pause {pause_s:g} s: {cost}", flush=True)
        shutil.rmtree(web.folder)
    _show(crawls, options)
    return _rows(crawls, options)


def _contestants(web: BroadWeb, scheme: str, pause_s: float, options: Namespace) -> list[Contestant]:
    """All crawlers without pauses; with pauses `crawler run` alone."""
    found = [_ours(web, scheme, pause_s, options)]
    if pause_s or options.no_peers or not web.in_namespace:
        return found
    if not subprocess.run([options.scrapy, "-c", "import scrapy"], capture_output=True, check=False).returncode:
        found.append(_scrapy(web, scheme, options))
    if program := shutil.which("wget2"):
        found.append(_wget2(web, scheme, program, options.concurrency))
    return found


def _ours(web: BroadWeb, scheme: str, pause_s: float, options: Namespace) -> Contestant:
    module = ["-m", "crawler"] if web.in_namespace else ["-m", "tests.hostile.crawler_with_dns"]
    dns = [] if web.in_namespace else [f"HOSTILE_DNS={web.dns[0]}:{web.dns[1]}"]
    root = Path(__file__).parents[2]
    command = [*COMPILED, f"SSL_CERT_FILE={web.ca_file}", f"PYTHONPATH={root}", *dns, sys.executable, *module, "run"]
    command += ["--seeds", str(web.seeds(scheme)), "--scope", "any", "--include", web.rule(scheme), "--allow-private"]
    command += ["--delay", str(pause_s), "--concurrency", str(options.concurrency), "--contact", "https://bench.test/"]
    # Without pauses, the crawl ends with the last page: names without an address are asked again for 30 days.
    end = ["--max-time", str(options.seconds)] if pause_s else ["--max-pages", str(len(web.alive()) * web.pages)]
    command += ["--no-progress", "--db", STORE, *end]
    pages, requests = "SELECT url FROM pages WHERE status = 200", "SELECT count(*) FROM requests"
    return Contestant(OURS, command, lambda folder: stored(folder, pages, requests))


def _scrapy(web: BroadWeb, scheme: str, options: Namespace) -> Contestant:
    spider = Path(__file__).with_name("scrapy_spider.py")
    seeds = f"@{web.seeds(scheme)}"
    command = [options.scrapy, str(spider), seeds, web.rule(scheme), STORE, str(options.concurrency)]
    pages, requests = "SELECT url FROM page WHERE status = 200", "SELECT requests FROM crawl"
    return Contestant(SCRAPY, command, lambda folder: stored(folder, pages, requests))


def _wget2(web: BroadWeb, scheme: str, program: str, threads: int) -> Contestant:
    """GNU wget2. GNU wget has one connection, and waits for each silent name."""
    command = [program, "-nv", "-r", "-l", "inf", "-i", str(web.seeds(scheme)), "--tries=1"]
    command += [f"--ca-certificate={web.ca_file}", f"--max-threads={threads}", "--robots=on"]
    return Contestant(WGET2, command, _saved, frozenset({0, 4, 8, STOPPED}))  # some names have no address


def _saved(folder: Path) -> tuple[set[str], int]:
    """The files that wget has saved."""
    files = {str(file.relative_to(folder)) for file in folder.rglob("*.html")}
    return files, len(files)


def _crawl(contestant: Contestant, web: BroadWeb, scheme: str, pause_s: float, options: Namespace) -> Crawl:
    folder = web.folder / "crawl"
    folder.mkdir()
    began_at = time.time()
    spent = spend(contestant.command, folder, folder / LOG, LIMIT_S)
    pages, _ = contestant.did(folder)
    if spent.code not in contestant.good_codes:
        tail = (folder / LOG).read_text(encoding="utf-8", errors="replace")[-2000:]
        raise ArgumentError(None, f"{contestant.name} ended with {spent.code}: {tail}")
    facts = {} if contestant.name != OURS else _facts(folder / STORE, web, pause_s, began_at, options.seconds)
    if contestant.name == OURS and options.keep is not None:
        shutil.copy(folder / STORE, options.keep)
    shutil.rmtree(folder)
    return Crawl(contestant.name, scheme, pause_s, spent, len(pages), **facts)


def _facts(store: Path, web: BroadWeb, pause_s: float, began_at: float, seconds: int) -> dict[str, float]:
    """What the store of `crawler run` says."""
    database = sqlite3.connect(store)
    try:
        (lag_s,) = database.execute("SELECT max(worst_lag_s) FROM runs").fetchone()
        (run_at,) = database.execute("SELECT max(started_at) FROM runs").fetchone()
        rows = database.execute(
            "SELECT site, started_at, finished_at FROM requests WHERE status IS NOT NULL"
        ).fetchall()
    finally:
        database.close()
    first_s = min((started_at for _, started_at, _ in rows), default=math.nan) - began_at
    facts = {"lag_s": lag_s or 0.0, "first_s": first_s}
    if not pause_s:
        return facts
    begin, end = run_at + WARM_UP * seconds, run_at + seconds - 1.0
    sent, took_s = defaultdict[str, int](int), defaultdict[str, list[float]](list)
    for site, started_at, finished_at in rows:
        if begin <= started_at < end:
            name = site.partition("://")[2].partition(":")[0]
            sent[name] += 1
            took_s[name].append(finished_at - started_at)
    usual_s = sum(map(sum, took_s.values())) / max(1, sum(sent.values()))
    allowed = sum(
        (end - begin) / (pause_s + (sum(took_s[name]) / len(took_s[name]) if took_s[name] else usual_s))
        for name in (host(n) for n in web.alive())
    )
    return facts | {"share": sum(sent.values()) / allowed}


def _show(crawls: Sequence[Crawl], options: Namespace) -> None:
    """The table of all crawls."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    headings = (
        "pause s",
        "hosts",
        "pages",
        "CPU s",
        "wall s",
        "pages/s",
        "peak MB",
        "worst lag s",
        "share %",
        "first s",
    )
    for heading in ("crawler", "scheme"):
        table.add_column(heading, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for crawl in crawls:
        spent = crawl.spent
        figures = (spent.cpu_s, spent.wall_s, crawl.pages_per_s, spent.peak_bytes / 1e6, crawl.lag_s, 100 * crawl.share)
        counts = (f"{crawl.pause_s:g}", f"{options.hosts:,}", f"{crawl.pages:,}")
        table.add_row(crawl.name, crawl.scheme, *counts, *map(number, figures), number(crawl.first_s))
    Console(width=160, highlight=False).print(table)


def _rows(crawls: Sequence[Crawl], options: Namespace) -> list[Row]:
    """The targets."""
    by_key = {(crawl.name, crawl.scheme, crawl.pause_s): crawl for crawl in crawls}
    rows = []
    for crawl in crawls:
        what = f"{crawl.scheme}, {options.hosts:,} hosts, pause {crawl.pause_s:g} s"
        if crawl.name != OURS:
            continue
        if crawl.pause_s:
            share, must = 100 * crawl.share, f"≥ {LEAST_SHARE:.0%}"
            note = f"{crawl.pages_per_s:,.0f} pages/s with {crawl.spent.cpu_s / crawl.spent.wall_s:.2f} cores"
            rows.append(Row(f"{what}: share of the pauses", share, "%", must=must, ok=share >= 97, note=note))
        peak_mb = crawl.spent.peak_bytes / 1e6
        rows.append(Row(f"{what}: peak memory", peak_mb, "MB", must=f"≤ {MOST_MB} MB", ok=peak_mb <= MOST_MB))
        rows.append(Row(f"{what}: first request", crawl.first_s, "s"))
        for name in (SCRAPY, WGET2):
            if (their := by_key.get((name, crawl.scheme, crawl.pause_s))) is not None:
                rows += _against(what, crawl, their)
    ours = [by_key.get((OURS, scheme, 0.0)) for scheme in SCHEMES]
    if ours[0] is not None and ours[1] is not None:
        ratio = ours[1].ms_per_page / ours[0].ms_per_page
        must = f"≤ {MOST_TLS} × HTTP"
        rows.append(
            Row("https against http: CPU", ours[1].ms_per_page, "ms/page", ratio=ratio, must=must, ok=ratio <= MOST_TLS)
        )
    return rows


def _against(what: str, mine: Crawl, their: Crawl) -> list[Row]:
    def row(measure: str, figure: Callable[[Crawl], float], unit: str, ratio: float, least: float) -> Row:
        judged = their.name == SCRAPY and mine.scheme == "https"
        return Row(
            f"{what}: {measure}", figure(mine), unit, peer=their.name, peer_figure=figure(their), ratio=ratio,
            must=f"≥ {least:g} ×" if judged else "", ok=ratio >= least if judged else None,
        )  # fmt: skip

    faster = mine.pages_per_s / max(their.pages_per_s, 0.001)
    return [
        row("CPU", lambda crawl: crawl.ms_per_page, "ms/page", their.ms_per_page / mine.ms_per_page, LEAST_CPU),
        row("rate", lambda crawl: crawl.pages_per_s, "pages/s", faster, LEAST_RATE),
    ]


if __name__ == "__main__":
    asked, figures = map(Path, sys.argv[1:])
    given = Namespace(**json.loads(asked.read_text(encoding="utf-8")))
    try:
        found = _measure(given, asked.parent, in_namespace=True)
    except ArgumentError as lack:
        sys.exit(str(lack))
    figures.write_text(json.dumps([asdict(row) for row in found]), encoding="utf-8")
