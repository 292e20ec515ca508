"""Crawl behaviours with the real command, in a process of its own, and measure it."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from crawler.demo.pages import Hit
from tests.command import ROOT
from tests.hostile import certificates
from tests.hostile.behaviour import Behaviour
from tests.hostile.server import DNS_ADDRESS, Servers, addresses
from tests.ports import reserved_port
from tests.spend import Spent, spend

DELAY_S = 0.1
#: Long enough for a machine whose processors other programs take. A quiet one needs half a minute.
MAX_TIME_S = 240.0
#: Seconds after --max-time within which the run must end.
STOPS_WITHIN_S = 10.0

#: The configuration: short time-outs and pauses. It is a template.
CONFIG = """
[politeness]
delay = {delay_s}
backoff_first = 0.2
backoff_max = 1
[robots]
retry_first = 0.5
retry_max = 2
give_up_after = 4
[fetch]
connect_timeout = 5
read_timeout = 4
total_timeout = 6
retry_pause = 0.2
retries = 1
max_body_bytes = 4_000_000
allow_private = {allow_private}
resolve = {resolve}
[discovery]
sitemaps = true
[limits]
max_pages_per_site = 60
"""


@dataclass(frozen=True, slots=True)
class Crawled:
    """A crawl of some behaviours: the use of resources, the store, the output, the log and the port of the servers.

    ``started_at`` is the start of the command by ``time.monotonic``, ``slowness`` that of the machine during the crawl
    if that is timed.
    """

    spent: Spent
    db: Path
    output: str
    log: list[Hit]
    port: int
    started_at: float
    slowness: float = 1.0


class Slowness:
    """A context manager that measures how slow the machine is meanwhile, because of other programs.

    ``value`` is the time that a thread of this process needs for a second of processor time, in seconds: 1 on an idle
    machine. The measurement takes a tenth of a processor.
    """

    value = 1.0

    def __enter__(self) -> Self:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._measure)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _measure(self) -> None:
        wall_s = cpu_s = 0.0
        while not self._is_over.wait(0.45):
            wall, cpu = time.monotonic(), time.thread_time()
            while time.thread_time() < cpu + 0.05:
                pass
            wall_s += time.monotonic() - wall
            cpu_s += time.thread_time() - cpu
        if cpu_s:
            self.value = max(1.0, wall_s / cpu_s)


def crawl(
    behaviours: Sequence[Behaviour],
    folder: Path,
    max_time_s: float,
    *,
    allow_private: bool,
    config: str = CONFIG,
    timed: bool = False,
) -> Crawled:
    """Serve and crawl the behaviours. ``folder`` gets the store, the seeds, the configuration and the output."""
    port, db, output = reserved_port("0.0.0.0"), folder / "crawl.db", folder / "output"
    seeds = [one.url(path, port) for one in behaviours for path in one.seeds]
    (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
    (folder / "crawl.toml").write_text(configured(config, behaviours, allow_private=allow_private))
    command = ["env", f"PYTHONPATH={ROOT}", f"HOSTILE_DNS={DNS_ADDRESS}:{port}"]
    command += [f"SSL_CERT_FILE={certificates.AUTHORITY}", sys.executable, "-m", "tests.hostile.crawler_with_dns"]
    command += ["run", "--seeds", str(folder / "seeds.txt"), "--config", str(folder / "crawl.toml"), "--db", str(db)]
    command += ["--max-time", str(max_time_s), "--contact", "mailto:tests@crawler.test", "--no-progress"]
    slowness = Slowness()
    with Servers(behaviours, port, folder) as servers:
        started_at = time.monotonic()
        with slowness if timed else nullcontext():
            spent = spend(command, folder, output, limit_s=max_time_s + 60)
    return Crawled(
        spent, db, output.read_text(errors="replace"), servers.log, port, started_at, round(slowness.value, 1)
    )


def configured(template: str, behaviours: Sequence[Behaviour], *, allow_private: bool) -> str:
    """The configuration of a template, with the addresses of the behaviours."""
    where = addresses(behaviours)
    hosts = [one.host for one in behaviours if one.dns is None]
    resolve = [f"{pattern}{host}={where[host]}" for host in hosts for pattern in ("", "*.")]
    return template.format(
        delay_s=DELAY_S, allow_private=json.dumps(allow_private), resolve=json.dumps(resolve)
    )  # fmt: skip
