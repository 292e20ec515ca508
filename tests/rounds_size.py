"""Measure what a round costs beside crawling: ``python -m tests.rounds_size --urls N``.

The dataset knows N URLs on hosts that may not be asked at this hour. In the first round the tasks take all of them in
as offers. In the second one each bucket gets a hundred offers more: its store is fetched, written and exported as a
whole.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from crawler.dataset.objects import Objects
from crawler.dataset.records import STORE_ENDING, BucketState, Dataset, Head, Manifest, make, part
from crawler.dataset.tables import columns_of, table_file
from crawler.frontier.buckets import bucket_of
from crawler.settings.settings import Settings
from crawler.settings.stored import to_record
from crawler.version import VERSION
from tests.command import ROOT
from tests.records import replace

URLS_PER_HOST = 200


def offers_of(urls: int, buckets: int) -> dict[int, list[str]]:
    """The URLs by bucket, of hosts that are spread over all of them."""
    found: dict[int, list[str]] = defaultdict(list)
    for number in range(urls // URLS_PER_HOST):
        site = f"http://www.host-{number}.test"
        found[bucket_of(site, buckets)] += [f"{site}/articles/2026/{n}/a-title.html" for n in range(URLS_PER_HOST)]
    return found


def offer(dataset: Dataset, folder: Path, last: Manifest | None, offers: dict[int, list[str]]) -> None:
    """Write the manifest of a round that hands these offers over."""
    number = 1 if last is None else last.round + 1
    states = dict(last.buckets) if last is not None else {}
    for bucket, urls in offers.items():
        path, key = folder / "offers.parquet", f"offers/{number:06}-0/{bucket:05}.parquet"
        about = {"bucket": bucket, "depth": 3, "hops": 0, "seed": 0, "kind": "page", "by_domain": 0}
        with table_file("outgoing", path) as file:
            file.add_columns(
                [urls if name == "url" else [about.get(name)] * len(urls) for name in columns_of("outgoing")]
            )
        dataset.objects.put(key, path)
        states[bucket] = replace(states.get(bucket, BucketState(0, None, [], {})), offers=[key])
    made = Manifest(number, time.time(), time.time(), states, {}, {}, VERSION)
    dataset.objects.put(f"rounds/{number:06}/manifest.json", msgspec.json.encode(made))


def round_of(location: str) -> tuple[float, float]:
    """Run one round; returns its seconds, and the CPU seconds of all processes."""
    began = time.monotonic()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    driver = subprocess.Popen([sys.executable, "-m", "crawler", "rounds", location], env=environment)
    _, _, spent = os.wait4(driver.pid, 0)
    driver.returncode = 0
    return time.monotonic() - began, spent.ru_utime + spent.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rounds_size", description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--buckets", type=int, default=64)
    given = parser.parse_args()
    hour = (datetime.now(UTC).hour + 12) % 24
    plain = Settings()
    settings = replace(
        plain,
        identity=replace(plain.identity, contact="you@example.org"),
        scope=replace(plain.scope, mode="any"),
        politeness=replace(plain.politeness, hours=(f"{hour:02}-{(hour + 1) % 24:02} UTC",)),
        limits=replace(plain.limits, max_time_s=1.0),  # one round, and no wait for the hour
        rounds=replace(plain.rounds, buckets=given.buckets, at_once=8),
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seed = "http://www.host-0.test/articles/2026/0/a-title.html"
        head = Head(given.buckets, to_record(settings), [seed], [])
        dataset = make(Objects(str(folder / "data"), may_make=True), head)
        offers = offers_of(given.urls, given.buckets)
        urls = sum(map(len, offers.values()))
        offer(dataset, folder, None, offers)
        for what in ("first", "second"):
            took_s, cpu_s = round_of(str(folder / "data"))
            last = dataset.manifests()[-1]
            known = sum(sum(state.states.values()) for state in last.buckets.values())
            sizes = {
                table: sum(
                    (folder / "data" / part(table, state.store, bucket, ending)).stat().st_size
                    for bucket, state in last.buckets.items()
                )
                for table, ending in (("stores", STORE_ENDING), ("urls", "parquet"))
            }
            octets = ", ".join(f"{table} {size / known:.1f}" for table, size in sizes.items())
            cost = f"{took_s:.0f} s, {cpu_s:.0f} s of CPU, {1e6 * cpu_s / known:.0f} µs a URL"
            print(f"{what} round: {known:,} URLs, {cost}; octets a URL: {octets}", flush=True)
            more = {bucket: [f"{each[0]}?{n}" for n in range(100)] for bucket, each in offers.items()}
            offer(dataset, folder, last, more)
    return 0 if known >= urls else 1


if __name__ == "__main__":
    sys.exit(main())
