"""Crawl one web on several PostgreSQL servers, and inject faults: ``python -m tests.cluster --rounds N --seed S``.

Each part of the crawl has a server of its own on this machine and a `crawler run` of its own. The merged store must
equal the SQLite file of an undisturbed crawl on one database: URLs with states, reasons, depths and the pages that they
were found on, pages with the hashes of their bodies, links. Each row stands there once. The log of the *web's* server
must show no two simultaneous requests to a host and no shortened pause, and each page must have been requested by the
part of its domain alone.

The first table compares one server with several. Then each kind of fault happens N times at random moments: a worker
killed with -9; a server killed with -9, or stopped, and started again; a worker killed between the moment at which it
has stored offers and the moment at which it deletes them at the part that they come from.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from crawler.demo.pages import Page, Site, plain, redirect
from crawler.store.sql.store import Store
from tests import judge, kill
from tests.command import HASTY, LOOPBACK
from tests.fork_server import Forked
from tests.orphans import BOUND
from tests.postgres import Cluster, binaries, cluster
from tests.web import LoopbackWeb

#: A lease of two seconds. A part waits 60 seconds for another one that shows no sign of life.
SETTINGS = HASTY + "total_timeout = 1\n[workers]\npatience = 60\n[discovery]\nsitemaps = true\n"
#: For pages of real sizes, without faults: no request is cut off because the machine is busy.
_REAL_SETTINGS = HASTY + "[discovery]\nsitemaps = true\n"
END_S = 120.0
_REAL_S = 900.0  # for a command on a web of real pages
_MOST = 12  # faults in one crawl
#: What the merged store and that of one database must have alike. A URL may be found first on several pages.
CONTENT = (*kill.CONTENT, "SELECT url, kind, seed, target, lastmod FROM urls", "SELECT site, url FROM requests")
#: The same for pages of real sizes. Which refused link gives an excluded URL its depth depends on the order of pages.
_REAL_CONTENT = (
    "SELECT url, state, reason, CASE WHEN state <> 'excluded' THEN depth END FROM urls",
    *CONTENT[1:],
)


def linked_web(seed: int, port: int, hosts: int = 8, pages_per_host: int = 12) -> tuple[dict[str, Site], list[str]]:
    """A web of sites with a domain each, and its seed. Links, redirects and canonical links lead to all sites."""
    chance = random.Random(seed)
    own = [
        [f"http://www.h{host}.test:{port}/"]
        + [
            f"http://www.h{host}.test:{port}/{chance.choice(('closed/', '', 'a/', 'b/', ''))}p{page}"
            for page in range(1, pages_per_host)
        ]
        for host in range(hosts)
    ]
    everywhere = [url for urls in own for url in urls]
    sites: dict[str, Site] = {}
    for host, urls in enumerate(own):
        listed = "".join(
            f"<url><loc>{url}</loc><lastmod>2026-01-0{day}</lastmod></url>"
            for day, url in enumerate(chance.sample(urls, 3), 1)
        )
        neighbour, before = own[(host + 1) % hosts][0], own[host - 1]
        named = f"Sitemap: {urls[0]}map.xml\nSitemap: {neighbour}neighbour.xml\n"
        for_neighbour = "".join(f"<url><loc>{url}</loc><lastmod>2026-02-01</lastmod></url>" for url in before[1:4])
        site: dict[str, Page] = {
            "/robots.txt": plain(f"User-agent: *\nDisallow: /closed/\n{named}"),
            "/neighbour.xml": Page(f"<urlset>{for_neighbour}</urlset>", content_type="application/xml"),
            "/map.xml": Page(f"<urlset>{listed}</urlset>", content_type="application/xml"),
        }
        for url in urls:
            path = url[url.index("/", 8) :]
            targets = [chance.choice(everywhere if chance.random() < 0.4 else urls) for _ in range(4)]
            links = "".join(f"<a href='{target}'>{n} {target}</a>" for n, target in enumerate(targets))
            page = Page(f"<title>{url}</title>{links}")
            if path != "/" and (kind := chance.random()) < 0.2:
                named = chance.choice(everywhere)
                page = redirect(named, 301) if kind < 0.1 else Page(f"<link rel=canonical href='{named}'>{links}")
            site[path] = replace(page, delay_s=0.01)
        sites[f"www.h{host}.test"] = site
    return sites, [own[0][0]]


# --- the processes of a crawl ---------------------------------------------------------------------


@dataclass(slots=True)
class Scene:
    """A running crawl: the servers and the processes of its parts, and the random numbers."""

    servers: list[Cluster]
    processes: list[Forked]
    another: Callable[[int, Callable[[list[str], Path], None]], Forked]
    chance: random.Random

    def is_over(self) -> bool:
        return not any(process.poll() is None for process in self.processes)

    def part(self) -> int:
        """A part that is at work."""
        alive = [part for part, process in enumerate(self.processes) if process.poll() is None]
        return self.chance.choice(alive or [0])

    def replace(self, part: int, run: Callable[[list[str], Path], None] = kill.crawl) -> None:
        """Kill the process of a part, and start another one."""
        self.processes[part].kill()
        self.processes[part].wait()
        self.processes[part] = self.another(part, run)


def torn(arguments: list[str], said: Path) -> None:
    """As :func:`kill.crawl`; the process kills itself when it would delete offers that it has stored."""

    async def die(self: Store, part: int, numbers: Sequence[int]) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    Store.delete_outgoing = die  # type: ignore[method-assign]
    kill.crawl(arguments, said)


def worker_killed(scene: Scene) -> bool:
    """Kill a worker and start another one."""
    scene.replace(scene.part())
    return True


def server_killed(scene: Scene) -> bool:
    """Kill all processes of a server with -9, and start it again after a while."""
    server = scene.servers[scene.part()]
    server.kill()
    time.sleep(scene.chance.uniform(0, 1.5))
    server.start()
    return True


def server_restarted(scene: Scene) -> bool:
    """Stop a server, and start it again after a while."""
    server = scene.servers[scene.part()]
    server.stop("fast")
    time.sleep(scene.chance.uniform(0, 1.5))
    server.start()
    return True


def delivery_torn(scene: Scene) -> bool:
    """Have a worker die between the two steps of a delivery. Returns whether it died."""
    part = scene.part()
    scene.replace(part, torn)
    process = scene.processes[part]
    code = kill.ended(process, 10)
    if code != 0:
        scene.replace(part)
    return code == -signal.SIGKILL


FAULTS: dict[str, Callable[[Scene], bool]] = {
    "worker killed": worker_killed,
    "server killed": server_killed,
    "server restarted": server_restarted,
    "delivery torn": delivery_torn,
}


@dataclass(frozen=True, slots=True)
class Disturbed:
    """The faults of a crawl, its requests, and the differences in the end."""

    faults: int
    requests: int
    wrong: list[str]


class Round:
    """One web, its crawl on one database in a file, and crawls of it by parts."""

    def __init__(
        self, web: LoopbackWeb | None, seeds: Sequence[str], folder: Path, options: Sequence[str] = ()
    ) -> None:
        """``web`` is ``None`` if another program serves the pages. Then nobody judges the requests."""
        self.web, self.folder = web, folder
        self._patience_s = kill.PATIENCE_S if web is not None else _REAL_S
        folder.mkdir()
        (folder / "hasty.toml").write_text(SETTINGS if web is not None else _REAL_SETTINGS)
        self.options = ["run", *seeds, "--config", str(folder / "hasty.toml"), *LOOPBACK, "--scope", "any", *options]
        self._said = (folder / f"said-{number}" for number in range(10_000))

    @classmethod
    def of_linked_web(
        cls, seed: int, web: LoopbackWeb, folder: Path, hosts: int = 8, pages_per_host: int = 12
    ) -> Round:
        """The crawls of a web of :func:`linked_web`."""
        sites, seeds = linked_web(seed, web.port, hosts, pages_per_host)
        web.sites.clear()
        web.sites.update(sites)
        return cls(web, seeds, folder)

    def whole(self) -> list[str]:
        """Crawl into one file. Returns what went wrong."""
        return self.run(*self.options, "--db", str(self.folder / "whole.db"))

    def start(self, dbs: Sequence[str], part: int, run: Callable[[list[str], Path], None] = kill.crawl) -> Forked:
        """Start the crawl of one part."""
        named = [argument for db in dbs for argument in ("--part", db)] if len(dbs) > 1 else []
        return kill.start([*self.options, *named, "--db", dbs[part]], next(self._said), run)

    def run(self, *arguments: str) -> list[str]:
        """Run another command to its end. Returns what went wrong."""
        said = next(self._said)
        return kill.finish(kill.start(list(arguments), said), said, self._patience_s)

    def differences(self, dbs: Sequence[str], name: str) -> list[str]:
        """Merge the parts, and compare the merged store with the whole one."""
        merged = self.folder / f"{name}.db"
        wrong = self.run("store", "merge" if len(dbs) > 1 else "copy", dbs[0], str(merged))
        if wrong:
            return wrong
        for query in _REAL_CONTENT if self.web is None else CONTENT:
            expected, found = kill.rows(self.folder / "whole.db", query), kill.rows(merged, query)
            if len(found) != len(set(found)) and "requests" not in query:
                wrong.append(f"rows twice: {query}")
            wrong += [f"lost: {row}" for row in set(expected) - set(found)]
            wrong += [f"new: {row}" for row in set(found) - set(expected)]
        found = kill.rows(merged, "SELECT url FROM urls WHERE seed = 0 AND discovered_from IS NULL AND kind = 'page'")
        wrong += [f"found nowhere: {row}" for row in found]
        wrong += self.run("audit", "--db", str(merged))
        manners = judge.Manners(
            kill.DELAY_S, forbidden=lambda _, path: path.startswith("/closed/"), agent="PoliteCrawler/"
        )
        return wrong + list(map(str, judge.violations([] if self.web is None else self.web.log, manners)))

    def said(self) -> list[str]:
        """What the commands have printed."""
        return [path.read_text() for path in sorted(self.folder.glob("said-*")) if path.stat().st_size]


def disturbed_crawl(
    kind: str, seed: int, web: LoopbackWeb, servers: list[Cluster], folder: Path, most: int
) -> Disturbed:
    """Run a crawl in parts with up to ``most`` faults of a kind."""
    chance = random.Random(f"{kind} {seed}")
    made = Round.of_linked_web(seed, web, folder, pages_per_host=40)
    wrong = made.whole()
    web.web.log.clear()
    dbs = sorted(server.make_database() for server in servers)
    ordered = [next(server for server in servers if str(server.folder) in _unquoted(db)) for db in dbs]
    scene = Scene(
        ordered,
        [made.start(dbs, part) for part in range(len(dbs))],
        lambda part, run: made.start(dbs, part, run),
        chance,
    )
    for server, db in zip(ordered, dbs, strict=True):
        _wait_for_worker(server, server.name_in(db))
    faults, tried = 0, 0
    while faults < most and tried < 4 * most and not scene.is_over():
        enough, deadline = len(web.web.log) + chance.randint(3, 20), time.monotonic() + 3
        while len(web.web.log) < enough and time.monotonic() < deadline and not scene.is_over():
            time.sleep(0.002)
        if scene.is_over():
            break
        tried += 1
        faults += FAULTS[kind](scene)
    deadline = time.monotonic() + END_S
    for process in scene.processes:
        code = kill.ended(process, max(0.0, deadline - time.monotonic()))
    for part, process in enumerate(scene.processes):
        if code != 0:
            wrong.append(f"part {part} " + ("did not end" if code is None else f"ended with {code}"))
            process.kill()
    wrong += made.differences(dbs, "merged")
    for server, db in zip(ordered, dbs, strict=True):
        name = server.name_in(db)
        for query in ("SELECT count(*) FROM outgoing", "SELECT count(*) FROM offer", "SELECT count(*) FROM frontier"):
            if (left := server.psql(query, name).strip()) != "0":
                wrong.append(f"left: {left} from {query}")
    return Disturbed(faults, len(web.log), wrong + (made.said() if wrong else []))


def _wait_for_worker(server: Cluster, name: str) -> None:
    """Wait until a part has begun: before that, a server that is away ends its command."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        made = server.psql("SELECT to_regclass('worker') IS NOT NULL", name).strip() == "t"
        if made and server.psql("SELECT count(*) FROM worker", name).strip() != "0":
            return
        time.sleep(0.05)


def _unquoted(db: str) -> str:
    return db.replace("%2F", "/")


# --- one server and several -----------------------------------------------------------------------


def compared(made: Round, servers: list[Cluster]) -> list[str]:
    """Crawl one web on one server, and on several; print a table. Returns the differences from that in one file.

    The time "to end" is that from the last answer of any site until the last command has seen the end.
    """
    folder = made.folder
    wrong = made.whole()
    columns = (
        "servers",
        "pages",
        "URLs left to others",
        "wall s",
        "to end s",
        "crawlers' CPU s",
        "servers' CPU s",
        "sets",
    )
    print("\n" + " | ".join(columns), flush=True)
    for count in range(1, len(servers) + 1):
        if made.web is not None:
            made.web.web.log.clear()
        used = servers[:count]
        dbs = sorted(server.make_database() for server in used)
        before, began = sum(server.cpu_s() for server in used), time.monotonic()
        named = [argument for db in dbs for argument in ("--part", db)] if count > 1 else []
        running = [
            subprocess.Popen(
                [*BOUND, sys.executable, "-m", "crawler", *made.options, *named, "--db", db],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for db in dbs
        ]
        cpu_s = 0.0
        for process in running:
            _, status, spent = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu_s += spent.ru_utime + spent.ru_stime
            if process.returncode:
                wrong.append(f"ended with {process.returncode}")
        wall_s = time.monotonic() - began
        servers_s = sum(server.cpu_s() for server in used) - before
        differences = made.differences(dbs, f"merged-{count}")
        wrong += differences
        ends = "SELECT (SELECT max(finished_at) FROM runs) - (SELECT max(finished_at) FROM requests)"
        ((to_end_s,),) = kill.rows(folder / f"merged-{count}.db", ends)
        fetched, left = 0, 0
        for server in used:
            db = next(db for db in dbs if str(server.folder) in _unquoted(db))
            fetched += int(server.psql("SELECT count(*) FROM page", server.name_in(db)))
            left += int(server.psql("SELECT count(*) FROM url WHERE reason_code = 'other_part'", server.name_in(db)))
        sets = "equal" if not differences else f"{len(differences)} differences"
        row = count, fetched, left, f"{wall_s:.1f}", f"{to_end_s:.1f}", f"{cpu_s:.1f}", f"{servers_s:.1f}", sets
        print(" | ".join(map(str, row)), flush=True)
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Compare, and run rounds of each kind of fault. Returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="how many faults of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=40, help="of the web of the first table; 0: no such table")
    parser.add_argument("--pages", type=int, default=20, help="of each host there")
    parser.add_argument("--web", type=Path, help="the folder of a web of real pages, for a table of its crawls as well")
    parser.add_argument("--name", help="the web in that folder, if it has several")
    parser.add_argument("--kind", choices=list(FAULTS), action="append", help="only these faults")
    asked = parser.parse_args(arguments)
    if binaries() is None:
        print("skipped: PostgreSQL is not installed (Debian: apt-get install postgresql)")
        return 0
    wrong: list[str] = []
    with LoopbackWeb() as web, ExitStack() as stack:
        servers = [stack.enter_context(cluster()) for _ in range(asked.servers)]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if asked.hosts:
            wrong += compared(Round.of_linked_web(asked.seed, web, folder / "table", asked.hosts, asked.pages), servers)
            print(*wrong[:20], sep="\n")
        if asked.web is not None:
            from tests.bench import realweb

            real = realweb.load(asked.web, asked.name)
            with realweb.served(real):
                wrong += compared(Round(None, real.seeds, folder / "real", ["--include", real.rule]), servers)
            print(*wrong[:20], sep="\n")
        print("fault | faults | crawls | requests | outcome", flush=True)
        for kind in asked.kind or FAULTS:
            faults, crawls, requests, seed, found = 0, 0, 0, asked.seed, list[str]()
            while faults < asked.rounds:
                place = folder / f"{kind.replace(' ', '-')}-{seed}"
                met = disturbed_crawl(kind, seed, web, servers, place, min(_MOST, asked.rounds - faults))
                faults, crawls, requests, seed = faults + met.faults, crawls + 1, requests + met.requests, seed + 1
                found += [f"web {seed - 1}: {each}" for each in met.wrong]
            told = "as if undisturbed" if not found else "\n".join(found[:30])
            print(f"{kind} | {faults} | {crawls} | {requests} | {told}", flush=True)
            wrong += found
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
