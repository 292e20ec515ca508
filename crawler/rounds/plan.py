"""The tasks of a round, and what follows from them: decided from the objects of the dataset alone.

Whoever decides, and however often, comes to the same result; the first plan and the first manifest count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any

import msgspec

from crawler.dataset.clock import DIFFER_S
from crawler.dataset.duckdb import duckdb
from crawler.dataset.records import (
    WHOLE_OBJECTS,
    BucketState,
    Dataset,
    Done,
    Lost,
    Manifest,
    Plan,
    Task,
    bucket_in,
    done_key,
    part,
    round_of,
)
from crawler.dataset.tables import SQL, columns_of, table_file
from crawler.engine.lease import LATE_S
from crawler.errors import StoreError
from crawler.frontier.buckets import bucket_of
from crawler.settings.settings import Settings
from crawler.version import VERSION

#: After so many rounds in a row in which no task had a result, the crawl ends.
MOST_IN_VAIN = 5


def states(dataset: Dataset, last: Manifest | None) -> dict[int, BucketState]:
    """The buckets with something in them, after the ``last`` round."""
    return {number: BucketState(0, 0.0, [], {}) for number in dataset.seeds} if last is None else last.buckets


def make_plan(dataset: Dataset, manifests: list[Manifest], now: float) -> Plan:
    """The plan of the next round, which begins ``now``; the one that counts is in the dataset."""
    last = manifests[-1] if manifests else None
    settings, number = dataset.settings, len(manifests) + 1
    deadline = now + length_s(settings, manifests)
    work = []
    for bucket, state in states(dataset, last).items():
        is_ready = state.ready_at is not None and state.ready_at < deadline
        if state.has_news or is_ready:
            news = state.offers, state.lost, state.asks, state.answers
            work.append(Task(bucket, state.store, *news, state.writing_s, is_ready))
    tasks = sorted(work, key=lambda task: (task.store, _precedence(task.bucket, number)))
    plan = Plan(number, now, deadline, deadline + wait_s(settings), tasks)
    dataset.objects.create(f"rounds/{number:06}/plan.json", msgspec.json.encode(plan))
    counts = dataset.plan(number)
    assert counts is not None
    return counts


def length_s(settings: Settings, manifests: list[Manifest]) -> float:
    """How long the next round lasts at most, in seconds.

    A round in which nothing was sent, although there was work, was too short for the start of the workers, so the next
    one is twice as long: else a crawl with short rounds on a busy machine would never go on.
    """
    doublings = 0
    for manifest in reversed(manifests):
        if manifest.lost or any(rows["requests"] for rows in manifest.parts.values()):
            break
        doublings += 1
    return settings.rounds.length_s * (1 << min(doublings, MOST_IN_VAIN))


def longest_s(settings: Settings) -> float:
    """How long a request may last, in seconds."""
    return settings.fetch.total_timeout_s + LATE_S


def wait_s(settings: Settings) -> float:
    """How long after a deadline the next round may begin, in seconds.

    That is the longest request and the usual pause, after the latest deadline by any of the clocks.
    """
    return DIFFER_S + longest_s(settings) + usual_pause_s(settings)


def usual_pause_s(settings: Settings) -> float:
    """The longest of the pauses that the settings ask for, in seconds."""
    politeness = settings.politeness
    return max([politeness.delay_s, *(rule.delay_s for rule in politeness.sites if rule.delay_s is not None)])


def _precedence(bucket: int, number: int) -> bytes:
    """The order of the tasks of a round: another one in each, so each bucket takes addresses first at some time."""
    return sha256(f"{number} {bucket}".encode()).digest()


def commit(dataset: Dataset, plan: Plan, manifests: list[Manifest], now: float) -> Manifest:
    """Commit a round, and return its manifest. The round must be quiet, or each claimed task be done.

    The manifest that counts is the first in the dataset. What it was made from is deleted then, so a driver that is
    still making another one may fail. That driver goes on with the one that counts.
    """
    if (counts := dataset.manifest(plan.round)) is None:
        try:
            made = _made(dataset, plan, manifests, now)
            dataset.objects.create(f"rounds/{plan.round:06}/manifest.json", msgspec.json.encode(made))
        except StoreError:
            if dataset.manifest(plan.round) is None:
                raise
        counts = dataset.manifest(plan.round)
        assert counts is not None
    _clear(dataset, counts, manifests)
    return counts


def _made(dataset: Dataset, plan: Plan, manifests: list[Manifest], now: float) -> Manifest:
    """A manifest of a round: the results of the tasks that are done, and what the lost ones have left.

    The objects that it names have its own name in their keys, so that another driver overwrites none of them.
    """
    number, name = plan.round, f"-{os.urandom(4).hex()}"
    done = dataset.done(number)
    lost = dataset.taken(number, but=done)  # a task that is done after this look is lost
    before = states(dataset, manifests[-1] if manifests else None)
    ahead = _ahead(dataset, number, lost)
    offers = _hand_over(dataset, number, name, done)
    after = dict(before)
    for bucket, result in done.items():
        if result.is_unchanged:
            after[bucket] = msgspec.structs.replace(before[bucket], offers=[], answers=[])
        else:
            after[bucket] = BucketState(number, result.ready_at, [], result.states, writing_s=result.writing_s)
    for bucket in lost:
        state = before[bucket]
        over_at = plan.deadline + DIFFER_S + longest_s(dataset.settings)
        earlier = {} if state.lost is None else state.lost.pauses
        lost_now = Lost(over_at, earlier | dataset.kept_pauses(number, bucket))
        after[bucket] = msgspec.structs.replace(state, lost=lost_now)
    for bucket, keys in offers.items():
        _add(after, bucket, "offers", keys)
    for bucket, result in done.items():
        for ask in result.asks:
            _add(after, bucket_of(ask.url, dataset.head.buckets), "asks", [ask])
        for asker in {asker for answer in result.answers for asker in answer.askers}:
            _add(after, asker, "answers", [done_key(number, bucket)])
    parts = {bucket: result.rows for bucket, result in done.items()}
    lost_rows = {bucket: len(ahead.get(bucket, ())) for bucket in sorted(lost)}
    made = Manifest(number, plan.begins_at, now, after, parts, lost_rows, VERSION, name)
    for key in dataset.lost_parts([made]):
        _write_lost(dataset, key, ahead[bucket_in(key)])
    return made


def _add(after: dict[int, BucketState], bucket: int, what: str, more: Sequence[Any]) -> None:
    """Hand something over to a bucket."""
    state = after.get(bucket, BucketState(0, None, [], {}))
    after[bucket] = msgspec.structs.replace(state, **{what: [*getattr(state, what), *more]})


def _clear(dataset: Dataset, made: Manifest, manifests: list[Manifest]) -> None:
    """Delete what a round leaves behind, and what no reader of this manifest or of the one before needs.

    Only objects of this round and of earlier ones: another driver may have begun the next round.
    """
    for folder in ("addresses", "ahead", "pauses", "writing"):
        dataset.objects.delete(dataset.objects.keys(f"rounds/{made.round:06}/{folder}"))
    read = [(bucket, state) for each in (*manifests[-1:], made) for bucket, state in each.buckets.items()]
    kept = {key for _, state in read for key in state.offers}
    kept |= {part(table, state.store, bucket, ending) for bucket, state in read for table, ending in WHOLE_OBJECTS}
    kept.update(dataset.lost_parts([*manifests, made]))
    for table in ("outgoing", "offers", "lost", *(table for table, _ in WHOLE_OBJECTS)):
        old = (key for key in dataset.objects.keys(table) if round_of(key) <= made.round)
        dataset.objects.delete([key for key in old if key not in kept])


def _ahead(dataset: Dataset, number: int, lost: Collection[int]) -> dict[int, list[dict[str, Any]]]:
    """The requests that lost tasks have written ahead, by bucket.

    A request may stand in two objects: if the answer of the storage is lost, its rows are written again.
    """
    rows: dict[int, dict[int, dict[str, Any]]] = {}
    for key in sorted(dataset.objects.keys(f"rounds/{number:06}/ahead")) if lost else ():
        for line in (dataset.objects.get(key) or b"").splitlines():
            row = json.loads(line)
            if row["bucket"] in lost:
                rows.setdefault(row["bucket"], {})[row["request_id"]] = row | {"run_id": number}
    return {bucket: list(found.values()) for bucket, found in rows.items()}


def _hand_over(dataset: Dataset, number: int, name: str, done: Mapping[int, Done]) -> dict[int, list[str]]:
    """Write the offers of a round for the buckets that they go to; returns their keys by bucket.

    A store offers a URL again only if it came nearer to a seed, and the store that gets an offer knows its URLs. So
    nothing is compared with the offers of earlier rounds: that would read all of them in each round.
    """
    keys = [part("outgoing", number, bucket) for bucket, result in done.items() if result.rows["outgoing"]]
    if not keys:
        return {}
    offers = dict[int, list[str]]()
    with duckdb() as (db, folder):
        target = folder / "handed-over"  # beside what was copied from object storage
        db.execute(SQL["hand_over"].format(target=target), {"files": dataset.objects.local(keys, folder)})
        for path in sorted(target.glob("bucket=*/*.parquet")):
            bucket = int(path.parent.name.partition("=")[2])
            key = f"offers/{number:06}{name}/{bucket:05}-{path.stem}.parquet"
            dataset.objects.put(key, path)
            offers.setdefault(bucket, []).append(key)
    return offers


def _write_lost(dataset: Dataset, key: str, rows: list[dict[str, Any]]) -> None:
    with table_file("lost", content := BytesIO()) as file:
        file.add_columns([[row.get(name) for row in rows] for name in columns_of("lost")])
    dataset.objects.put(key, content.getvalue())
