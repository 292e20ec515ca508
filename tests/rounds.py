"""Crawl one web plainly and in rounds, and compare: ``python -m tests.rounds [--spark] [--kill] [--web DIR --name N]``.

The dataset must equal the store of the plain crawl: URLs with states and reasons, pages with the hashes of their
bodies, links, requests. The web is that of ``tests/e2e/test_rounds.py``, or one of real pages, which nginx serves. The
table has the CPU times of both crawls, and octets in Parquet.

``--spark`` runs the tasks by Apache Spark, on two executors (``local-cluster[2,1,1024]``). It needs the extra `spark`
and Java 17. With ``--kill``, an executor or a worker is killed with -9 in the first round; the requests may be more.

``--machines 2,4,3`` has so many machines work on the first, the second and all further rounds. Each is a network
namespace with a name and an address of its own; the dataset is a folder that all see. It needs root.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from unittest import mock

from crawler.cli.shared import STOPPED
from tests import judge
from tests.bench.realweb import load, served
from tests.command import ROOT, until
from tests.e2e.test_rounds import CONFIG, differences, linked_web, of_content, workers_of
from tests.web import LoopbackWeb

_MASTER = "local-cluster[2,1,1024]"


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


def crawl(*arguments: object, environment: dict[str, str], on: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    command = [*on, sys.executable, "-m", "crawler", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


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
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--web", type=Path, help="a folder with webs of real pages (python -m tests.bench web)")
    parser.add_argument("--name", help="one of them")
    parser.add_argument("--buckets", type=int, default=7)
    parser.add_argument("--length", type=int, default=60, help="of a round, in seconds")
    parser.add_argument("--machines", type=lambda text: [int(count) for count in text.split(",")], default=[])
    given = parser.parse_args()
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    submit = f"--master {_MASTER} --conf spark.executorEnv.PYTHONPATH={path} pyspark-shell"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environment = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": submit}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        machines = stack.enter_context(Machines(max(given.machines))) if given.machines else None
        address = "127.0.0.1" if machines is None else machines.gate
        stack.enter_context(mock.patch("crawler.demo.server.ADDRESS", address))
        web = None if given.web else stack.enter_context(LoopbackWeb())
        if web is not None:
            hosts, delay_s = (12, 0.005) if machines is None else (60, 0.3)
            seeds, text = linked_web(1, web, hosts, delay_s=delay_s), CONFIG.replace("127.0.0.1", address)
        else:
            real = load(given.web, given.name)
            stack.enter_context(served(real))
            seeds = [f"http://{host}:{real.port}/" for host in real.hosts]
            text = CONFIG.replace("delay = 0.05", "delay = 0.01").replace('"any"', '"domain"')
        text = text.replace("buckets = 7", f"buckets = {given.buckets}").replace(
            "length = 60", f"length = {given.length}"
        )
        if not given.kill:  # else the round waits for it
            text = text.replace("total_timeout = 3", "total_timeout = 60")  # no page fails on a busy machine
        config, db, data = folder / "c.toml", folder / "plain.db", folder / "data"
        at_once = "at_once = 1\n" if machines is not None else ""  # many tasks are left for others
        config.write_text(text + at_once + f'runner = "{"spark" if given.spark else "processes"}"\n')
        begin = ("--config", config, *seeds, "--contact", "you@example.org")
        plain_s = cpu_s(crawl("run", *begin, "--db", db, environment=environment))
        if web is not None:
            web.web.log.clear()
        on = () if machines is None else machines.on(0)
        driver = crawl("rounds", data, *begin, environment=environment, on=on)
        if machines is not None:
            machines.work(driver, data, given.machines, environment)
        if given.kill:
            started = (lambda: len(web.log) > 4) if web is not None else (lambda: any(data.glob("rounds/*/ahead/*")))
            until(started, "requests")
            os.kill((executors() if given.spark else workers_of(driver.pid))[0], signal.SIGKILL)
        rounds_s = cpu_s(driver) - plain_s
        wrong = differences(data, db)
        wrong = of_content(wrong) if given.kill else wrong
        if web is not None:
            wrong += [str(each) for each in judge.violations(web.log, judge.Manners(delay_s=0.05))]
        _print_table(data, plain_s, rounds_s)
        print(*(f"round {n}: {dict(each)} tasks by machine" for n, each in enumerate(claims(data), 1)), sep="\n")
        print(*(wrong[:20] or ["equal"]), sep="\n")
    return 1 if wrong else 0


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
