"""Crawl one web plainly and in rounds, and compare: ``python -m tests.rounds [--spark] [--kill] [--web DIR --name N]``.

The dataset must equal the store of the plain crawl: URLs with states and reasons, pages with the hashes of their
bodies, links, requests. The web is that of ``tests/e2e/test_rounds.py``, or one of real pages, which nginx serves. The
table has the CPU times of both crawls, and octets in Parquet.

``--spark`` runs the tasks by Apache Spark, on two executors (``local-cluster[2,1,1024]``). It needs the extra `spark`
and Java 17. With ``--kill``, an executor or a worker is killed with -9 in the first round; the requests may be more.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

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


def crawl(*arguments: object, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "crawler", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Wait for a command; returns the CPU time of it and of the processes that it waited for."""
    _, status, spent = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.args
    return spent.ru_utime + spent.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rounds", description=__doc__)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--web", type=Path, help="a folder with webs of real pages (python -m tests.bench web)")
    parser.add_argument("--name", help="one of them")
    parser.add_argument("--buckets", type=int, default=7)
    parser.add_argument("--length", type=int, default=60, help="of a round, in seconds")
    given = parser.parse_args()
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    submit = f"--master {_MASTER} --conf spark.executorEnv.PYTHONPATH={path} pyspark-shell"
    environment = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": submit}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        web = None if given.web else stack.enter_context(LoopbackWeb())
        if web is not None:
            seeds, text = linked_web(1, web), CONFIG
        else:
            real = load(given.web, given.name)
            stack.enter_context(served(real))
            seeds = [f"http://{host}:{real.port}/" for host in real.hosts]
            text = CONFIG.replace("delay = 0.05", "delay = 0.01").replace('"any"', '"domain"')
        text = text.replace("buckets = 7", f"buckets = {given.buckets}").replace(
            "length = 60", f"length = {given.length}"
        )
        config, db, data = folder / "c.toml", folder / "plain.db", folder / "data"
        config.write_text(text + f'runner = "{"spark" if given.spark else "processes"}"\n')
        plain_s = cpu_s(crawl("run", "--config", config, *seeds, "--db", db, environment=environment))
        if web is not None:
            web.web.log.clear()
        driver = crawl("rounds", data, "--config", config, *seeds, environment=environment)
        if given.kill:
            started = (lambda: len(web.log) > 4) if web is not None else (lambda: any(data.glob("rounds/*/ahead/*")))
            until(started, "requests")
            os.kill((executors() if given.spark else workers_of(driver.pid))[0], signal.SIGKILL)
        rounds_s = cpu_s(driver)
        wrong = differences(data, db)
        wrong = of_content(wrong) if given.kill else wrong
        if web is not None:
            wrong += [str(each) for each in judge.violations(web.log, judge.Manners(delay_s=0.05))]
        _print_table(data, db, plain_s, rounds_s)
        print(*(wrong[:20] or ["equal"]), sep="\n")
    return 1 if wrong else 0


def _print_table(data: Path, db: Path, plain_s: float, rounds_s: float) -> None:
    from crawler.dataset.views import Views

    print(f"CPU of the plain crawl {plain_s:.1f} s, of the rounds without Spark's executors {rounds_s:.1f} s")
    with Views(str(data)) as views:
        print(f"{len(views.manifests)} rounds")
        for table in ("urls", "pages", "links", "requests"):
            ((rows,),) = views.fetch(f"SELECT count(*) FROM {table}")
            last = views.dataset.parts(views.manifests, table)
            size = sum((data / key).stat().st_size for key in last)
            print(f"{table}: {rows:,} rows, {size / max(rows, 1):.1f} octets each in {len(last)} files")
        stores = [data / f"stores/{state.store:06}/{b:05}.db" for b, state in views.manifests[-1].buckets.items()]
    print(
        f"stores: {sum(path.stat().st_size for path in stores if path.exists()):,}; plain store: {db.stat().st_size:,}"
    )


if __name__ == "__main__":
    sys.exit(main())
