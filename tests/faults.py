"""Inject faults into crawls by several workers on PostgreSQL: ``python -m tests.faults --rounds N --seed S``.

Each kind of fault happens N times at random moments while three ``crawler run`` share a crawl: a worker killed with -9;
a worker stopped beyond its lease and continued; the database crashed or restarted; connections dropped, delayed,
half-closed or swallowed by a proxy. In the end the database must equal the SQLite file of an undisturbed crawl by one
process, each row once. The log of the *web's* server must show no two simultaneous requests to a host and no shortened
pause. The crawl's log must contain every served request, except requests of killed workers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests import judge, kill
from tests.command import HASTY, LOOPBACK
from tests.fork_server import Forked
from tests.postgres import Cluster, cluster
from tests.proxy import MODES, Proxy
from tests.web import LoopbackWeb

WORKERS = 3
LONGEST_S, MARGIN_S = 1.0, 1.0
#: A lease of two seconds, and a crawl that lasts longer.
_SETTINGS = HASTY + f"total_timeout = {LONGEST_S}\n[workers]\npatience = 40\n"
_END_S = 300.0


@dataclass(slots=True)
class Scene:
    """A running crawl: its workers, its database and the random numbers."""

    server: Cluster
    proxy: Proxy
    workers: list[Forked]
    another: Callable[[], Forked]
    chance: random.Random

    def is_over(self) -> bool:
        return not any(worker.poll() is None for worker in self.workers)

    def one(self) -> Forked | None:
        alive = [worker for worker in self.workers if worker.poll() is None]
        return self.chance.choice(alive) if alive else None


def killed(scene: Scene) -> None:
    """Kill a worker and start another one."""
    worker = scene.one()
    if worker is not None:
        worker.kill()
        worker.wait()
        scene.workers.remove(worker)
        scene.workers.append(scene.another())


def stopped(scene: Scene) -> None:
    """Stop a worker until its lease is over, or a little less, and continue it."""
    worker = scene.one()
    if worker is not None:
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep((LONGEST_S + MARGIN_S) * scene.chance.uniform(0.8, 1.6))
        os.kill(worker.pid, signal.SIGCONT)


def restarted(scene: Scene) -> None:
    """Crash or stop the database, and start it again after a while."""
    scene.server.stop(scene.chance.choice(["immediate", "fast"]))
    time.sleep(scene.chance.uniform(0, 1))
    scene.server.start()


def cut(scene: Scene) -> None:
    """Disturb the connections of all workers for a while."""
    scene.proxy.suffer(scene.chance.choice(MODES))
    time.sleep(scene.chance.uniform(0.05, 1.5))
    scene.proxy.recover()


FAULTS: dict[str, Callable[[Scene], None]] = {
    "killed": killed,
    "stopped": stopped,
    "restarted": restarted,
    "cut": cut,
}


@dataclass(frozen=True, slots=True)
class Disturbed:
    """The faults of a crawl, the leases that expired because of them, and the differences in the end."""

    faults: int
    leases_lost: int
    wrong: list[str]


def disturbed_crawl(kind: str, seed: int, web: LoopbackWeb, server: Cluster, folder: Path, most: int) -> Disturbed:
    """Run a crawl with up to ``most`` faults of a kind. One undisturbed crawl of the web serves all kinds."""
    chance = random.Random(f"{kind} {seed}")
    seeds = kill.serve(web, seed, hosts=4, pages_per_host=20 if most == 1 else 40)  # a fault, or four, in its midst
    folder.mkdir()
    (folder / "hasty.toml").write_text(_SETTINGS)
    options = ["run", *seeds, "--config", str(folder / "hasty.toml"), *LOOPBACK, "--db"]
    whole, wrong = folder.parent / f"whole-{seed}.db", list[str]()
    if not whole.exists():
        wrong = kill.finish(kill.start([*options, str(whole)], folder / "said"), folder / "said")
    web.web.log.clear()

    url = server.make_database()
    with Proxy(server.socket) as proxy:
        through = f"postgresql://crawler@127.0.0.1:{proxy.port}/{server.name_in(url)}"
        said = iter(folder / f"said-{number}" for number in range(1000))

        def another() -> Forked:
            return kill.start([*options, through], next(said))

        scene = Scene(server, proxy, [another() for _ in range(WORKERS)], another, chance)
        wait_for_workers(server, url)
        faults = 0
        while faults < most:
            wait_for_requests(web, chance.randint(3, 25), scene)
            if scene.is_over():
                break
            FAULTS[kind](scene)
            faults += 1
        deadline = time.monotonic() + _END_S
        for worker in scene.workers:
            kill.ended(worker, max(0.0, deadline - time.monotonic()))
        last = folder / "said-last"
        wrong += kill.finish(kill.start([*options, through], last), last)
        wrong += [f"did not end: {worker.pid}" for worker in scene.workers if worker.poll() is None]
        wrong += [f"ended with {worker.returncode}" for worker in scene.workers if worker.returncode not in (0, -9)]
        for worker in scene.workers:
            worker.kill()
    wrong += kill.differences(whole, url)
    wrong += kill.finish(kill.start(["audit", "--db", url], folder / "said-audit"), folder / "said-audit")
    manners = judge.Manners(kill.DELAY_S, forbidden=lambda _, path: path.startswith("/closed/"), agent="PoliteCrawler/")
    wrong += map(str, judge.violations(web.log, manners))
    # A request that is broken off, because the worker has lost its lease, may not have reached the server.
    logged, answered = (
        int(server.psql(f"SELECT count({what}) FROM request", database=server.name_in(url))) for what in ("*", "status")
    )
    if kind != "killed" and not answered <= len(web.log) <= logged:
        wrong.append(f"{len(web.log)} requests, of which {logged} are logged, {answered} with an answer")
    if wrong:
        wrong += [path.read_text() for path in sorted(folder.glob("said-*")) if path.stat().st_size]
    lost = server.psql("SELECT count(*) FROM worker WHERE ended_by = 'lease ran out'", database=server.name_in(url))
    return Disturbed(faults, int(lost), wrong)


def wait_for_workers(server: Cluster, url: str) -> None:
    """Wait until all workers have joined the crawl: before that, faults have no effect."""
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        made = server.psql("SELECT to_regclass('worker') IS NOT NULL", database=server.name_in(url)).strip() == "t"
        if made and int(server.psql("SELECT count(*) FROM worker", database=server.name_in(url))) >= WORKERS:
            return
        time.sleep(0.05)


def wait_for_requests(web: LoopbackWeb, count: int, scene: Scene) -> None:
    """Wait until the web has had this number of further requests, or for a while."""
    enough, deadline = len(web.web.log) + count, time.monotonic() + 3
    while len(web.web.log) < enough and time.monotonic() < deadline and not scene.is_over():
        time.sleep(0.002)
    time.sleep(scene.chance.uniform(0, kill.DELAY_S))


def main(arguments: list[str] | None = None) -> int:
    """Run rounds of each kind. Returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="how many faults of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=list(FAULTS), action="append", help="only these")
    asked = parser.parse_args(arguments)
    failed = False
    with LoopbackWeb() as web, cluster() as server, tempfile.TemporaryDirectory() as folder:
        for kind in asked.kind or FAULTS:
            faults, seed = 0, asked.seed
            while faults < asked.rounds:
                place = Path(folder) / f"{kind}-{seed}"
                met = disturbed_crawl(kind, seed, web, server, place, min(4, asked.rounds - faults))
                faults += met.faults
                failed = failed or bool(met.wrong)
                told = "; ".join(met.wrong[:20]) or "as if undisturbed"
                counts = f"{met.faults} × {kind}, {met.leases_lost} leases lost, {len(web.log)} requests"
                print(f"web {seed}: {counts}: {told}", flush=True)
                seed += 1
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
