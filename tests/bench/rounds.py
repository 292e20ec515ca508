"""Measures what a round costs beside crawling, and the octets of a dataset, by the URLs that it knows.

The hosts may not be asked at this hour, so a round sends nothing. In the first one, the tasks take all URLs in, as
offers of other buckets. Before the last one, each bucket gets a hundred offers more, so its store is fetched, written
and exported as a whole. With ``--of K``, the buckets are filled in K parts, of which only the first ``--parts`` are:
what a bucket costs is the same. With ``--keep``, a measurement that was cut off goes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from crawler.dataset.objects import Objects
from crawler.dataset.records import BucketState, Dataset, Done, Head, Manifest, make, part
from crawler.dataset.tables import columns_of
from crawler.frontier.buckets import bucket_of
from crawler.parquet import ParquetFile
from crawler.rounds.plan import _hand_over
from crawler.settings.settings import Settings
from crawler.settings.stored import to_record
from crawler.version import VERSION
from tests.bench.table import Row, number
from tests.command import ROOT
from tests.records import replace

URLS_PER_HOST, MORE = 200, 100
MOST_OCTETS = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--urls", type=int, default=1_000_000, help="URLs that all buckets know [%(default)s]")
    parser.add_argument("--buckets", type=int, default=4096, help="[%(default)s]")
    parser.add_argument("--of", type=int, default=1, metavar="K", help="fill the buckets in K parts [%(default)s]")
    parser.add_argument("--parts", type=int, default=1, help="fill so many of them [%(default)s]")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the dataset, or go on with the one kept there")


def run(options: argparse.Namespace) -> list[Row]:
    hosts = defaultdict[int, list[str]](list)
    for made in range(options.urls // URLS_PER_HOST):
        host = f"http://www.host-{made}.test"
        if (bucket := bucket_of(host, options.buckets)) % options.of < options.parts:
            hosts[bucket].append(host)
    first = [f"{of_bucket[0]}/articles/2027/{{n}}/a-title.html" for of_bucket in hosts.values()]
    rows = []
    with nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dataset = _dataset(folder, options)
        for filled in range(options.parts):
            every = [
                f"{host}/articles/2026/{{n}}/a-title.html"
                for bucket, of_bucket in hosts.items()
                if bucket % options.of == filled
                for host in of_bucket
            ]
            rows += _offered_and_run(dataset, folder, f"part {filled}", sorted(every), URLS_PER_HOST)
        return rows + _offered_and_run(dataset, folder, "last", first, MORE)


def _offered_and_run(dataset: Dataset, folder: Path, which: str, patterns: Sequence[str], each: int) -> list[Row]:
    """Hand URLs over and take them in, or what an earlier measurement has left of that. Says what came of it."""
    noted = folder / f"{which}.json"
    if noted.exists():
        return []
    rows, before = list[Row](), dataset.manifests()
    if not before or not any(state.has_news for state in before[-1].buckets.values()):
        rows = _offer(dataset, folder, patterns, each)
    rows += _round_of(dataset, which)
    for row in rows:
        print(f"{row.measure}: {number(row.figure)} {row.unit} {row.note}", flush=True)
    noted.write_bytes(msgspec.json.encode(rows))
    return rows


def _dataset(folder: Path, options: argparse.Namespace) -> Dataset:
    if (folder / "data").exists():
        return Dataset(Objects(str(folder / "data")))
    plain, hour = Settings(), (datetime.now(UTC).hour + 23) % 24
    settings = replace(
        plain,
        identity=replace(plain.identity, contact="you@example.org"),
        scope=replace(plain.scope, mode="any"),
        politeness=replace(plain.politeness, hours=(f"{hour:02}-{(hour + 1) % 24:02} UTC",)),
        limits=replace(plain.limits, max_time_s=1.0),  # one round, and no wait for the hour
        # A round without requests doubles the length of the next one, up to 32 times: no round reaches that hour.
        rounds=replace(plain.rounds, buckets=options.buckets, length_s=1000.0),
    )
    head = Head(options.buckets, to_record(settings), ["http://www.host-0.test/"], [])
    return make(Objects(str(folder / "data"), may_make=True), head)


def _offer(dataset: Dataset, folder: Path, patterns: Sequence[str], each: int) -> list[Row]:
    """Hand ``each`` URLs of each pattern over, in a round in which 64 buckets have found them."""
    manifests = dataset.manifests()
    states = dict(manifests[-1].buckets) if manifests else {}
    number, done = len(manifests) + 1, dict[int, Done]()
    for finder in range(64):
        path = folder / "outgoing.parquet"
        with ParquetFile(path, columns_of("outgoing"), extra="rounds", what="a dataset") as file:
            for pattern in patterns[finder::64]:
                bucket = bucket_of(pattern, dataset.head.buckets)
                for n in range(each):
                    file.add([bucket, pattern.format(n=n), 3, 0, 0, "page", None, 0])
        dataset.objects.put(part("outgoing", number, finder), path)
        done[finder] = Done(finder, {"outgoing": file.count}, {}, None, "")
    began_s = time.process_time()
    offers = _hand_over(dataset, number, "", done)
    cpu_s = time.process_time() - began_s
    for bucket, keys in offers.items():
        states[bucket] = replace(states.get(bucket, BucketState(0, None, [], {})), offers=keys)
    made = Manifest(number, time.time(), time.time(), states, {}, {}, VERSION)
    dataset.objects.put(f"rounds/{number:06}/manifest.json", msgspec.json.encode(made))
    urls = len(patterns) * each
    return [Row(f"hand {urls:,} URLs over to {len(offers):,} buckets", 1e6 * cpu_s / urls, "µs a URL")]


def _round_of(dataset: Dataset, which: str) -> list[Row]:
    """Let the command run rounds until each bucket has taken its offers in: one round, unless it lasts too long."""
    began_at, cpu_s, made = time.monotonic(), 0.0, dataset.manifests()[-1:]
    while any(state.has_news for state in made[-1].buckets.values()):
        command = [sys.executable, "-m", "crawler", "rounds", dataset.objects.location]
        driver = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        _, driver.returncode, spent = os.wait4(driver.pid, 0)
        cpu_s += spent.ru_utime + spent.ru_stime
        made += dataset.manifests()[made[-1].round :]
        last = made[-1]
        if last.lost or not last.parts:
            raise RuntimeError(f"round {last.round} has lost {len(last.lost)} tasks, and done {len(last.parts)}")
    took_s, place = time.monotonic() - began_at, Path(dataset.objects.location)
    written = [last.buckets[bucket] for each in made for bucket in each.parts]
    known, stores = sum(rows["urls"] for each in made for rows in each.parts.values()), len(written)
    still_s = sum(
        (folder := place / f"rounds/{each.round:06}").joinpath("manifest.json").stat().st_mtime
        - each.ended_at
        + min(path.stat().st_mtime for path in folder.glob("claims/*"))
        - each.begun_at
        for each in made[1:]
    )
    stores_size, urls_size = (
        sum(path.stat().st_size for each in made[1:] for path in (place / table / f"{each.round:06}").iterdir())
        for table in ("stores", "urls")
    )
    octets = stores_size / known
    note = f"{took_s:.0f} s, {cpu_s:.0f} s of CPU, {1000 * cpu_s / stores:.0f} ms a store"
    return [
        Row(f"{which}, {known:,} URLs in {stores:,} stores", 1e6 * cpu_s / known, "µs a URL", note=note),
        Row(f"{which}: begin and commit", still_s, "s", note="nothing is sent in this time"),
        Row(f"{which}: a store", octets, "octets a URL", must=f"≤ {MOST_OCTETS:g}", ok=octets <= MOST_OCTETS),
        Row(f"{which}: Parquet of URLs", urls_size / known, "octets a URL"),
    ]
