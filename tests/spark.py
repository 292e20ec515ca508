"""Crawl in rounds by Apache Spark with separate executors, and compare: ``python -m tests.spark``.

It needs the extra `spark` and Java 17, which no other test needs. The master is ``local-cluster[2,1,1024]``: two
executors, each a process of its own. The dataset must equal the store of a plain crawl of the same web: URLs with
states and reasons, pages, links, requests. With ``--kill`` an executor is killed with -9 in the middle, and the
requests may be more.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import judge
from tests.command import ROOT, here, until
from tests.e2e.test_rounds import CONFIG, differences, linked_web, of_content
from tests.web import LoopbackWeb

_MASTER = "local-cluster[2,1,1024]"


def executors() -> list[int]:
    """The executors of Spark on this machine that import this checkout."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if (
                b"CoarseGrainedExecutorBackend" in path.read_bytes()
                and str(ROOT).encode() in (path.parent / "environ").read_bytes()
            ):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark", description=__doc__)
    parser.add_argument("--kill", action="store_true", help="kill an executor in the middle of the first round")
    given = parser.parse_args()
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    submit = (
        f"--master {_MASTER} --conf spark.executorEnv.PYTHONPATH={path} --conf spark.ui.enabled=false pyspark-shell"
    )
    environment = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": submit}
    with LoopbackWeb() as web, tempfile.TemporaryDirectory() as name:
        folder, config = Path(name), Path(name) / "c.toml"
        length = 15 if given.kill else 60
        config.write_text(CONFIG.replace("length = 60", f'length = {length}\nrunner = "spark"'))
        seeds = linked_web(1, web)
        assert here("run", "--config", config, *seeds, "--db", folder / "plain.db").code == 0
        web.web.log.clear()
        command = [sys.executable, "-m", "crawler", "rounds", folder / "data", "--config", config, *seeds, "--json"]
        driver = subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE, text=True)
        if given.kill:
            until(lambda: len(web.log) > 4, "requests")
            os.kill(executors()[0], signal.SIGKILL)
        out, _ = driver.communicate()
        print(out)
        wrong = differences(folder / "data", folder / "plain.db")
        wrong = of_content(wrong) if given.kill else wrong
        wrong += [str(each) for each in judge.violations(web.log, judge.Manners(delay_s=0.05))]
        print(*(wrong or ["equal"]), sep="\n")
    return 1 if wrong or driver.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
