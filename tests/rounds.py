"""Crawl a web plainly and in rounds, and compare: ``python -m tests.rounds [--spark] [--web DIR --name N]``.

The dataset must equal the store of the plain crawl: URLs with states and reasons, pages with the hashes of their
bodies, links, requests. The web is that of ``tests/e2e/test_rounds.py``, or one of real pages, which nginx serves. The
table has the CPU times of both crawls, and octets in Parquet.

``--spark`` runs the tasks by Apache Spark, on two executors (``local-cluster[2,1,1024]``). It needs the extra `spark`
and Java 17.

``--fault KIND --times N`` disturbs crawls of several webs N times in all; two more workers join each round. Then the
requests may be more, but none may come outside of a round, or before its pause.

* ``killed``: a worker or an executor that has a task is killed with -9.
* ``driver``: the driver is killed with -9, and another one goes on.
* ``frozen``: a worker, or an executor with its children, is stopped until the round of its task is over, and continued.
  Spark takes it for lost after 20 s.
* ``clock``: the clock of each process is an hour ahead or behind when it begins, and most are set meanwhile.

``--machines 2,4,3`` has so many machines work on the first, the second and all further rounds. Each is a network
namespace with a name and an address of its own; the dataset is a folder that all see. It needs root.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Self
from unittest import mock

from crawler.cli.shared import STOPPED
from crawler.dataset.clock import DIFFER_S
from crawler.dataset.objects import Objects
from crawler.dataset.records import Dataset
from crawler.demo.pages import Hit
from tests import judge
from tests.bench.realweb import load, served
from tests.command import ROOT, until
from tests.e2e.test_rounds import CONFIG, differences, linked_web, of_content
from tests.spend import family
from tests.web import LoopbackWeb

_SUBMIT = """--master local-cluster[2,1,1024] --conf spark.executorEnv.PYTHONPATH={path} {more}
--conf spark.deploy.maxExecutorRetries=-1 pyspark-shell"""
#: For executors that are frozen: Spark takes them for lost after 20 s, not after two minutes.
_LOST_SOON = """--conf spark.network.timeout=20s --conf spark.network.timeoutInterval=5s
--conf spark.executor.heartbeatInterval=4s"""
#: The ``sitecustomize`` of processes of which each has a wall clock of its own, and notes that in a folder.
_WRONG_CLOCK = """
import os, random, time
real, began, chance = time.time, time.monotonic(), random.Random(f"{seed} {{os.getpid()}}")
first, then, after_s = chance.choice([-3600, 3600]), chance.choice([-3600, 0, 3600]), chance.uniform(0, 8)
time.time = lambda: real() + (first if time.monotonic() - began < after_s else then)
open(f"{folder}/{{os.getpid()}}", "w").close()
"""


def executors() -> list[int]:
    """The executors of Spark on this machine that import this checkout."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            is_one = b"CoarseGrainedExecutorBackend" in path.read_bytes()
            if is_one and str(ROOT).encode() in (path.parent / "environ").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def run(
    module: str, *arguments: object, environment: dict[str, str], said: Path, on: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start a module, whose messages are added to a file."""
    command = [*on, sys.executable, "-m", module, *map(str, arguments)]
    with said.open("a") as file:
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=file)


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Wait for a command; returns the CPU time of all that this process has waited for, in seconds."""
    assert process.wait() == 0, process.args
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


class Machines:
    """Machines on one network. A context manager; each is a network namespace."""

    gate = "10.77.0.1"  # of the machine that this process is on

    def __init__(self, count: int) -> None:
        self.names = [f"crawl{number}" for number in range(count)]

    def __enter__(self) -> Self:
        _ip("link add crawlbridge type bridge", f"addr add {self.gate}/24 dev crawlbridge", "link set crawlbridge up")
        for number, name in enumerate(self.names):
            _ip(f"netns add {name}", f"link add veth{name} type veth peer name eth0 netns {name}")
            _ip(f"link set veth{name} master crawlbridge up", f"-n {name} addr add 10.77.0.{number + 2}/24 dev eth0")
            _ip(f"-n {name} link set eth0 up", f"-n {name} link set lo up")
        return self

    def __exit__(self, *exc: object) -> None:
        _ip(*(f"netns del {name}" for name in self.names), "link del crawlbridge")

    def on(self, number: int) -> list[str]:
        """The beginning of a command that runs on a machine."""
        name = self.names[number]
        return ["ip", "netns", "exec", name, "unshare", "-u", "sh", "-c", 'hostname "$0"; exec "$@"', name]

    def work(self, driver: subprocess.Popen[bytes], data: Path, counts: list[int], environment: dict[str, str]) -> None:
        """Let machines join and leave at the beginning of rounds, until the driver, which is on the first, ends."""
        worker = [sys.executable, "-m", "crawler.rounds.worker", str(data)]
        joined, number = list[subprocess.Popen[bytes]](), 0
        while driver.poll() is None:
            if (data / f"rounds/{number + 1:06}/plan.json").exists():
                number += 1
                others = counts[min(number, len(counts)) - 1] - 1
                for leaving in joined[others:]:
                    leaving.send_signal(signal.SIGINT)
                started = range(len(joined) + 1, others + 1)
                joined += [subprocess.Popen([*self.on(n), *worker], env=environment) for n in started]
            time.sleep(0.1)
        assert {process.wait() for process in joined} <= {0, STOPPED}


class Disturbed:
    """A crawl in rounds that is disturbed, with ``driver`` and with workers that join it, or on Spark."""

    def __init__(
        self, start: Callable[..., subprocess.Popen[bytes]], data: Path, web: LoopbackWeb, spark: bool
    ) -> None:
        """``start`` starts a module with arguments."""
        self._start = start
        self._data = data
        self._web = web
        self._spark = spark
        until((data / "rounds/000001/plan.json").exists, "the first round")
        self._dataset = Dataset(Objects(str(data)))
        self._joined = [] if spark else [self._join() for _ in range(2)]

    def disturb(
        self, driver: subprocess.Popen[bytes], kind: str, times: int, chance: random.Random
    ) -> tuple[int, subprocess.Popen[bytes]]:
        """Let faults happen, each after requests and a task that is done; returns how many did, and the last driver."""
        happened, done = 0, -1
        while happened < times:
            enough, before = len(self._web.log) + chance.randint(2, 9), done
            while (
                len(self._web.log) < enough
                or (done := self._count("done/*")) <= before
                or not (found := self._at_work())
            ):
                if driver.poll() is not None:
                    return happened, driver
                time.sleep(0.05)
            if kind == "driver":
                driver.kill()
                driver.wait()
                driver = self._start("crawler", "rounds", self._data)
            else:
                (self._kill if kind == "killed" else self._freeze)(chance.choice(found))
            happened += 1
        return happened, driver

    def ended(self) -> bool:
        """Wait for the workers that have joined; returns whether those that were not killed have ended well."""
        return {process.wait() for process in self._joined} <= {0, -signal.SIGKILL}

    def _join(self) -> subprocess.Popen[bytes]:
        return self._start("crawler.rounds.worker", self._data)

    def _at_work(self) -> list[list[int]]:
        """The workers that have joined, or the executors, each with its children, that have an unfinished task."""
        number = self._count("plan.json")
        claims = (self._data / f"rounds/{number:06}/claims/{bucket:05}" for bucket in self._dataset.unfinished(number))
        busy = {int(path.read_text().split("-")[-2]) for path in claims}
        running = executors() if self._spark else [process.pid for process in self._joined]
        return [pids for pid in running if busy.intersection(pids := list(family(pid)))]

    def _kill(self, pids: list[int]) -> None:
        os.kill(pids[0], signal.SIGKILL)
        if not self._spark:
            self._joined.append(self._join())

    def _freeze(self, pids: list[int]) -> None:
        over = self._count("manifest.json")
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        until(lambda: self._count("manifest.json") > over, "the end of the round")
        for pid in pids:
            with suppress(ProcessLookupError):  # killed by Spark
                os.kill(pid, signal.SIGCONT)

    def _count(self, of_round: str) -> int:
        return len(list(self._data.glob(f"rounds/*/{of_round}")))


def after_deadlines(data: Path, log: Sequence[Hit]) -> list[str]:
    """The requests that were sent outside of the time of each round. The clock of the web is ``time.monotonic``."""
    ahead_s, dataset = time.time() - time.monotonic(), Dataset(Objects(str(data)))
    plans = [plan for manifest in dataset.manifests() if (plan := dataset.plan(manifest.round)) is not None]
    times = [(plan.begins_at - DIFFER_S, plan.deadline + DIFFER_S) for plan in plans]
    sent = {hit: hit.started_at + ahead_s for hit in log}
    return [f"outside of a round: {hit}" for hit, at in sent.items() if not any(a <= at <= b for a, b in times)]


def _ip(*commands: str) -> None:
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)


def claims(data: Path) -> list[Counter[str]]:
    """How many tasks each machine has claimed, by round; those that nobody has claimed have no name."""
    rounds = sorted(data.glob("rounds/*/claims"))
    return [
        Counter(path.read_text().rpartition("-")[0].rpartition("-")[0] for path in each.iterdir()) for each in rounds
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rounds", description=__doc__)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--fault", choices=("killed", "driver", "frozen", "clock"))
    parser.add_argument("--times", type=int, default=1, help="how many faults in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first web, and of the moments of the faults")
    parser.add_argument("--web", type=Path, help="a folder with webs of real pages (python -m tests.bench web)")
    parser.add_argument("--name", help="one of them")
    parser.add_argument("--buckets", type=int, default=7)
    parser.add_argument("--length", type=int, default=60, help="of a round, in seconds")
    parser.add_argument("--machines", type=lambda text: [int(count) for count in text.split(",")], default=[])
    given = parser.parse_args()
    times, wrong, seeds = 0, list[str](), itertools.count(given.seed)
    while True:
        with ExitStack() as stack:
            happened, found = compared(given, next(seeds), given.times - times, stack)
        times, wrong = times + happened, wrong + found
        print(*(found[:20] or ["equal"]), sep="\n", flush=True)
        if given.fault is None:
            break
        print(f"{times} × {given.fault}", flush=True)
        if times >= given.times:
            break
    return 1 if wrong else 0


def compared(given: argparse.Namespace, seed: int, times: int, stack: ExitStack) -> tuple[int, list[str]]:
    """Crawl a web plainly and in rounds; returns how many faults happened, and what is wrong."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    submit = _SUBMIT.format(path=path, more=_LOST_SOON if given.fault == "frozen" else "")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environment = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": submit}
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    machines = stack.enter_context(Machines(max(given.machines))) if given.machines else None
    address = "127.0.0.1" if machines is None else machines.gate
    stack.enter_context(mock.patch("crawler.demo.server.ADDRESS", address))
    web = None if given.web else stack.enter_context(LoopbackWeb())
    if web is not None:
        hosts, delay_s = (60, 0.3) if machines is not None else (40 if given.fault else 12, 0.005)
        seeds, text = linked_web(seed, web, hosts, delay_s=delay_s), CONFIG.replace("127.0.0.1", address)
    else:
        real = load(given.web, given.name)
        stack.enter_context(served(real))
        seeds = [f"http://{host}:{real.port}/" for host in real.hosts]
        text = CONFIG.replace("delay = 0.05", "delay = 0.01").replace('"any"', '"domain"')
    text = text.replace("buckets = 7", f"buckets = {given.buckets}").replace("length = 60", f"length = {given.length}")
    if not given.fault:  # else the round waits for it
        text = text.replace("total_timeout = 3", "total_timeout = 60")  # no page fails on a busy machine
    config, db, data = folder / "c.toml", folder / "plain.db", folder / "data"
    at_once = "at_once = 1\n" if machines is not None or given.fault else ""  # many tasks are left for others
    config.write_text(text + at_once + f'runner = "{"spark" if given.spark else "processes"}"\n')
    begin = ("--config", config, *seeds, "--contact", "you@example.org")
    start = partial(run, environment=environment, said=folder / "said.txt")
    plain_s = cpu_s(start("crawler", "run", *begin, "--db", db))
    if web is not None:
        web.web.log.clear()
    if given.fault == "clock":
        (noted := folder / "noted").mkdir()
        (folder / "sitecustomize.py").write_text(_WRONG_CLOCK.format(seed=seed, folder=noted))
        environment["PYTHONPATH"] = f"{folder}{os.pathsep}{path}"
    on = () if machines is None else machines.on(0)
    driver, happened = start("crawler", "rounds", data, *begin, on=on), 0
    if machines is not None:
        machines.work(driver, data, given.machines, environment)
    wrong = list[str]()
    if given.fault:
        assert web is not None, "faults need the web whose log is judged"
        disturbed = Disturbed(start, data, web, given.spark)
        if given.fault != "clock":
            happened, driver = disturbed.disturb(driver, given.fault, times, random.Random(seed))
        driver.wait()
        wrong += [] if disturbed.ended() else ["a worker has failed"]
        happened += len(list(folder.glob("noted/*")))
    rounds_s = cpu_s(driver) - plain_s
    differing = differences(data, db)
    said = (folder / "said.txt").read_text().splitlines()
    if given.fault:
        wrong += of_content(differing)
    else:
        wrong += [*differing, *(line for line in said if " ERROR " in line)]  # of Spark
    if web is not None:
        wrong += [str(each) for each in judge.violations(web.log, judge.Manners(delay_s=0.05))]
        wrong += after_deadlines(data, web.log)
    print(*(line for line in said if line.startswith("crawler: ")), sep="\n")
    _print_table(data, plain_s, rounds_s)
    print(*(f"round {n}: {dict(each)} tasks by machine" for n, each in enumerate(claims(data), 1)), sep="\n")
    return happened, wrong


def _print_table(data: Path, plain_s: float, rounds_s: float) -> None:
    from crawler.dataset.views import Views

    print(f"CPU of the plain crawl {plain_s:.1f} s, of the rounds without Spark's executors {rounds_s:.1f} s")
    with Views(str(data)) as views:
        print(f"{len(views.manifests)} rounds")
        for table in ("urls", "pages", "links", "requests"):
            ((rows,),) = views.fetch(f"SELECT count(*) FROM {table}")
            last = views.dataset.parts(views.manifests, table)
            size = sum((data / key).stat().st_size for key in last)
            print(f"{table}: {rows:,} rows, {size / max(rows, 1):.1f} octets each in {len(last)} files")


if __name__ == "__main__":
    sys.exit(main())
