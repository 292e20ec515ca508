"""The names and the records of the objects of a dataset.

``LOCATION/dataset.json``               the settings, the seeds and the number of buckets
``clocks/ID``                           empty, deleted at once: a process reads at what time the storage wrote it
``rounds/R/plan.json``                  the tasks of round R; created exclusively
``rounds/R/claims/B``                   the worker of the task of bucket B; created exclusively
``rounds/R/addresses/NETWORK``          the task that asks an address in round R; created exclusively
``rounds/R/pauses/B/N.json``            pauses that the task of bucket B has learned, before it is done
``rounds/R/ahead/WORKER-M.jsonl``       requests that a worker has sent, before its tasks are done; M were sent so far
``rounds/R/writing/B``                  the task of bucket B sends nothing any more, and is writing its results
``rounds/R/done/B.json``                the result of a task, its last object; created exclusively
``rounds/R/manifest.json``              the tasks that count; created exclusively
``stores/R/B.db.zst``                   the store of bucket B after round R, in zstd
``TABLE/R/B.parquet``                   rows of a view: of ``pages``, ``links`` and ``requests`` those of the round
``bodies/R/B.parquet``                  bodies of pages that bucket B has fetched in round R
``outgoing/R/B.parquet``                offers of bucket B
``offers/R-ID/B.parquet``               offers to bucket B, for a later round; ID is of the commit that wrote it
``lost/R-ID/B.parquet``                 requests that the lost task of bucket B has written ahead
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from crawler.dataset.objects import Objects
from crawler.errors import NoStore, UsageError, require
from crawler.frontier.buckets import bucket_of
from crawler.model import RobotsCopy, SiteFile
from crawler.settings.settings import Settings
from crawler.settings.stored import recorded
from crawler.store.location import shown

T = TypeVar("T")
#: The version of the form of a dataset.
VERSION = 5
_CLOSED = "closed"
#: A task that has not said for so long that it writes its results is lost, in seconds.
WRITING_S = 30.0
_OCTETS_AT_ONCE = 1 << 20

#: The tables that a task writes anew, with all rows of its bucket.
WHOLE = ("urls", "sites", "robots_versions", "robots_answers", "mirrors", "seeds")
STORE_ENDING = "db.zst"
#: All that a task writes anew, with the endings of the keys.
WHOLE_OBJECTS = (("stores", STORE_ENDING), *((table, "parquet") for table in WHOLE))
#: The tables of which a task writes the rows of its round.
GROWING = ("pages", "links", "requests")
TASK_TABLES = (*WHOLE, *GROWING, "bodies", "outgoing")


class Head(msgspec.Struct, frozen=True):
    """The facts of a dataset that never change: ``settings`` as :func:`crawler.settings.stored.to_record` has them."""

    buckets: int
    settings: dict[str, Any]
    seeds: list[str]
    domains: list[str]  # those of the seeds that stand for a domain
    version: int = VERSION


class Lost(msgspec.Struct, frozen=True):
    """What lost tasks have left: until when their requests may have lasted, and the pauses that they had learned."""

    over_at: float
    pauses: dict[str, float]  # in seconds, by group


class Ask(msgspec.Struct, frozen=True):
    """A robots.txt or licence at ``url`` that ``site``, which is of the bucket ``asker``, waits for."""

    asker: int
    site: str
    url: str


class Answer(msgspec.Struct, frozen=True):
    """What came from the URL of asks: a robots.txt, a licence, or neither."""

    url: str
    askers: list[int]
    copy: RobotsCopy | None
    file: SiteFile | None


class Task(msgspec.Struct, frozen=True):
    """The work on one bucket in a round."""

    bucket: int
    store: int  # the round that its store is of; 0: none yet
    offers: list[str]  # keys of the offers to take in
    lost: Lost | None = None
    asks: list[Ask] = []
    answers: list[str] = []  # keys of the results of tasks that have answers for the bucket
    writing_s: float = 0.0  # how long the last task of the bucket has written its results
    is_ready: bool = True  # a site can be asked before the deadline


class Plan(msgspec.Struct, frozen=True):
    """The tasks of a round. No request is sent at or after ``deadline``; times in epoch seconds.

    At ``quiet_at`` every request of the round has ended, and the usual pause after it is over.
    """

    round: int
    begins_at: float
    deadline: float
    quiet_at: float
    tasks: list[Task]


class Done(msgspec.Struct, frozen=True):
    """The result of a task: the rows that it wrote by table, and what is left in its bucket."""

    bucket: int
    rows: dict[str, int]
    states: dict[str, int]  # URLs of the bucket by state; the excluded are not counted
    ready_at: float | None  # when a group can be asked; None: nothing is queued
    ended: str  # why the run ended, as a code
    asks: list[Ask] = []
    answers: list[Answer] = []
    writing_s: float = 0.0
    is_unchanged: bool = False  # the store and the tables of the last task count, and ``states`` are left out


class BucketState(msgspec.Struct, frozen=True):
    """One bucket after a round."""

    store: int
    ready_at: float | None
    offers: list[str]
    states: dict[str, int]
    lost: Lost | None = None
    asks: list[Ask] = []
    answers: list[str] = []
    writing_s: float = 0.0

    @property
    def has_news(self) -> bool:
        """Whether other buckets have brought work."""
        return bool(self.offers or self.asks or self.answers)


class Manifest(msgspec.Struct, frozen=True):
    """What a round has done. ``parts`` are the rows by bucket and table; ``lost`` has the tasks that were lost."""

    round: int
    begun_at: float
    ended_at: float
    buckets: dict[int, BucketState]
    parts: dict[int, dict[str, int]]
    lost: dict[int, int]  # the requests that are known of them, by bucket
    crawler_version: str
    name: str = ""  # of the commit: the end of the names of the folders that it has written


class Dataset:
    """A dataset that exists."""

    def __init__(self, objects: Objects) -> None:
        found = objects.get("dataset.json")
        if found is None:
            raise NoStore(f"{shown(objects.location)}: there is no dataset")
        self.objects = objects
        self.head = msgspec.json.decode(found, type=Head)
        if self.head.version != VERSION:
            raise UsageError(
                f"{shown(objects.location)}: this dataset has the format {self.head.version}; go on with the release "
                "that began it, or name another dataset"
            )

    @property
    def settings(self) -> Settings:
        """The settings of the crawl."""
        return recorded(self.head.settings)

    @cached_property
    def seeds(self) -> dict[int, set[str]]:
        """The seeds by bucket. To find the bucket of each takes long, so it is done once."""
        found = dict[int, set[str]]()
        for url in self.head.seeds:
            found.setdefault(bucket_of(url, self.head.buckets), set()).add(url)
        return found

    def read(self, key: str, kind: type[T]) -> T | None:
        """The record at a key; ``None`` if there is none."""
        found = self.objects.get(key)
        return None if found is None else msgspec.json.decode(found, type=kind)

    def plan(self, number: int) -> Plan | None:
        return self.read(f"rounds/{number:06}/plan.json", Plan)

    def manifest(self, number: int) -> Manifest | None:
        return self.read(f"rounds/{number:06}/manifest.json", Manifest)

    def manifests(self) -> list[Manifest]:
        """The manifests of all rounds so far, in order."""
        found, number = list[Manifest](), 1
        while (manifest := self.manifest(number)) is not None:
            found.append(manifest)
            number += 1
        return found

    def done(self, number: int) -> dict[int, Done]:
        """The results of the tasks of a round that are done."""
        folder = f"rounds/{number:06}/done"
        records = (self.read(key, Done) for key in self.objects.keys(folder))
        return {record.bucket: record for record in records if record is not None}

    def progress(self, number: int) -> tuple[int, int]:
        """How many requests of a round are known to have been sent, and how many of its tasks are done."""
        sent = dict[str, int]()
        for key in sorted(self.objects.keys(f"rounds/{number:06}/ahead")):
            worker, requests = key.removesuffix(".jsonl").rsplit("-", 1)
            sent[worker] = int(requests)
        return sum(sent.values()), len(self.objects.keys(f"rounds/{number:06}/done"))

    def claim(self, number: int, bucket: int, worker: str) -> bool:
        """Claim the task of a bucket for ``worker``, a name of its own; returns whether it is the one that has it."""
        return self.objects.create(f"rounds/{number:06}/claims/{bucket:05}", worker.encode())

    def claimed(self, number: int) -> set[int]:
        """The buckets whose tasks were claimed in a round, or closed."""
        return {bucket_in(key) for key in self.objects.keys(f"rounds/{number:06}/claims")}

    def close(self, plan: Plan) -> None:
        """Claim all tasks of a round that nobody has claimed: from now on nobody can."""
        for bucket in {task.bucket for task in plan.tasks} - self.claimed(plan.round):
            self.claim(plan.round, bucket, f"{_CLOSED} {secrets.token_hex(8)}")

    def taken(self, number: int, *, but: Collection[int] = ()) -> set[int]:
        """The buckets whose tasks a worker has claimed, ``but`` some."""
        keys = [key for key in self.objects.keys(f"rounds/{number:06}/claims") if bucket_in(key) not in but]
        workers = {bucket_in(key): self.objects.get(key) or b"" for key in keys}
        return {bucket for bucket, worker in workers.items() if not worker.startswith(_CLOSED.encode())}

    def unfinished(self, number: int) -> set[int]:
        """The buckets whose tasks a worker has claimed, and that are not done."""
        return self.taken(number, but={bucket_in(key) for key in self.objects.keys(f"rounds/{number:06}/done")})

    def take_address(self, number: int, network: str, task: str) -> bool:
        """Take an address for ``task``, a name of its own; returns whether it is the one that has it in the round."""
        return self.objects.create(f"rounds/{number:06}/addresses/{network.replace('/', '_')}", task.encode())

    def keep_pauses(self, number: int, bucket: int, part_number: int, pauses: Mapping[str, float]) -> None:
        """Keep the pauses, in seconds by group, that the task of a bucket has learned."""
        key = f"rounds/{number:06}/pauses/{bucket:05}/{part_number:06}.json"
        self.objects.put(key, msgspec.json.encode(pauses))

    def kept_pauses(self, number: int, bucket: int) -> dict[str, float]:
        """The pauses that the task of a bucket has kept; the longest of each group."""
        longest = dict[str, float]()
        for key in self.objects.keys(f"rounds/{number:06}/pauses/{bucket:05}"):
            for group, pause_s in (self.read(key, dict[str, float]) or {}).items():
                longest[group] = max(pause_s, longest.get(group, 0.0))
        return longest

    def say_writing(self, number: int, bucket: int, now: float) -> None:
        """Say that the task of a bucket sends nothing any more, and is writing its results. Say it again and again."""
        self.objects.put(f"rounds/{number:06}/writing/{bucket:05}", msgspec.json.encode(now))

    def are_writing(self, number: int, now: float) -> bool:
        """Whether an unfinished task of a round has said so in the last ``WRITING_S`` seconds."""
        keys = {bucket_in(key): key for key in self.objects.keys(f"rounds/{number:06}/writing")}
        said = [self.read(keys[bucket], float) for bucket in keys.keys() & self.unfinished(number)]
        return any(at is not None and now - at < WRITING_S for at in said)

    def fetch_store(self, number: int, bucket: int, path: Path) -> None:
        """Write the store of a bucket after round ``number`` to the file ``path``."""
        packed = path.with_suffix(".zst")
        self.objects.fetch(part("stores", number, bucket, STORE_ENDING), packed)
        arrow = require("rounds", "a dataset", "pyarrow")
        with arrow.CompressedInputStream(str(packed), "zstd") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, _OCTETS_AT_ONCE)
        packed.unlink()

    def put_store(self, number: int, bucket: int, path: Path) -> None:
        """Keep the file ``path`` as the store of a bucket after round ``number``.

        In zstd the pages of tables with few rows take almost no room: a store of few URLs is 0.65 MB, and 20 kB packed.
        """
        packed = path.with_suffix(".zst")
        arrow = require("rounds", "a dataset", "pyarrow")
        with path.open("rb") as source, arrow.CompressedOutputStream(str(packed), "zstd") as target:
            shutil.copyfileobj(source, target, _OCTETS_AT_ONCE)
        self.objects.put(part("stores", number, bucket, STORE_ENDING), packed)

    def parts(self, manifests: list[Manifest], table: str) -> list[str]:
        """The keys of the rows of a table: of the newest task of each bucket, or of all tasks."""
        found = [(manifest, bucket) for manifest in manifests for bucket, rows in manifest.parts.items() if rows[table]]
        if table in WHOLE:
            found = [each for each in found if manifests[-1].buckets[each[1]].store == each[0].round]
        return [part(table, manifest.round, bucket) for manifest, bucket in found]

    def lost_parts(self, manifests: list[Manifest]) -> list[str]:
        """The keys of the requests that lost tasks have written ahead."""
        lost = [(each, bucket) for each in manifests for bucket, rows in each.lost.items() if rows]
        return [f"lost/{each.round:06}{each.name}/{bucket:05}.parquet" for each, bucket in lost]


def bucket_in(key: str) -> int:
    """The number of the bucket that an object is of."""
    return int(key.rpartition("/")[2].partition(".")[0])


def part(table: str, number: int, bucket: int, ending: str = "parquet") -> str:
    """The key of the rows of a table of one bucket and round, or of its store."""
    return f"{table}/{number:06}/{bucket:05}.{ending}"


def round_of(key: str) -> int:
    """The round of a key that :func:`part` has made, or of offers."""
    return int(key.split("/")[1].partition("-")[0])


def make(objects: Objects, head: Head) -> Dataset:
    """The dataset at ``objects``: a new one with this ``head``, or the one that is there if it is the same."""
    is_own = objects.create("dataset.json", content := msgspec.json.encode(head))
    dataset, given = Dataset(objects), msgspec.json.decode(content, type=Head)
    if not is_own:
        names = Head.__struct_fields__
        differing = sorted(name for name in names if getattr(dataset.head, name) != getattr(given, name))
        raise UsageError(
            f"{shown(objects.location)}: this dataset was begun with other {' and '.join(differing)}; go on without "
            "seeds and configuration, or name another dataset"
        )
    return dataset


def done_key(number: int, bucket: int) -> str:
    """The key of the result of a task."""
    return f"rounds/{number:06}/done/{bucket:05}.json"


def begins_at(buckets: Mapping[int, BucketState]) -> float | None:
    """The time from which there is something to do, in epoch seconds; ``None``: the crawl is over."""
    times = [0.0 if state.has_news else state.ready_at for state in buckets.values()]
    return min((time for time in times if time is not None), default=None)
