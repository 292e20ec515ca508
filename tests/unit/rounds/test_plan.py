"""The plan of a round, and what follows from its tasks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawler.dataset.clock import DIFFER_S, StorageClock
from crawler.dataset.objects import Objects
from crawler.dataset.records import (
    WRITING_S,
    BucketState,
    Dataset,
    Done,
    Head,
    Lost,
    Manifest,
    Plan,
    begins_at,
    make,
    part,
)
from crawler.dataset.tables import columns_of, table_file
from crawler.errors import UsageError
from crawler.frontier.buckets import bucket_of
from crawler.frontier.sample_design import Method, Per, SampleSettings
from crawler.rounds.plan import _precedence, commit, length_s, longest_s, make_plan
from crawler.rounds.worker import _begun
from crawler.sampling.of_dataset import require_uniform
from crawler.settings.settings import Settings
from crawler.settings.stored import to_record
from tests.command import here

BUCKETS = 4
SEEDS = [f"http://{host}.test/" for host in ("a", "b", "c", "d", "e", "f")]
NOW = 1e9
NOTHING = dict.fromkeys(("urls", "sites", "robots_versions", "pages", "links", "requests", "outgoing"), 0)


def number(url: str) -> int:
    return bucket_of(url, BUCKETS)


#: Two seeds in different buckets.
ONE = SEEDS[0]
OTHER = next(url for url in SEEDS if number(url) != number(ONE))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    objects = Objects(str(tmp_path / "data"), may_make=True)
    return make(objects, Head(BUCKETS, to_record(Settings()), SEEDS, []))


def write(dataset: Dataset, key: str, table: str, rows: list[dict[str, Any]]) -> None:
    path = Path(dataset.objects.location) / key
    path.parent.mkdir(parents=True, exist_ok=True)
    with table_file(table, path) as file:
        for row in rows:
            file.add([row.get(name) for name in columns_of(table)])


def offer(url: str, depth: int, **changes: Any) -> dict[str, Any]:
    row = {"bucket": number(url), "url": url, "depth": depth, "hops": 0, "seed": 0, "kind": "page", "lastmod": None}
    return row | {"by_domain": 0} | changes


def finish(
    dataset: Dataset, plan: Plan, bucket: int, offers: list[dict[str, Any]], ready_at: float | None = None
) -> None:
    """A task of the plan is done, and has made offers."""
    assert dataset.claim(plan.round, bucket, f"worker of {bucket}")
    write(dataset, part("outgoing", plan.round, bucket), "outgoing", offers)
    done = Done(bucket, NOTHING | {"outgoing": len(offers)}, {}, ready_at, "done")
    dataset.objects.put(f"rounds/{plan.round:06}/done/{bucket:05}.json", msgspec.json.encode(done))


def offered(dataset: Dataset, manifest: Manifest) -> list[tuple[str, int, float | None]]:
    """The offers to :data:`OTHER`'s bucket."""
    import pyarrow.parquet as pq

    files = [pq.read_table(dataset.objects.local([key], Path())[0]) for key in manifest.buckets[number(OTHER)].offers]
    return sorted((row["url"], row["depth"], row["lastmod"]) for file in files for row in file.to_pylist())


def test_the_first_round_has_a_task_for_each_bucket_with_a_seed(dataset: Dataset) -> None:
    plan = make_plan(dataset, [], NOW)
    assert {task.bucket for task in plan.tasks} == {number(url) for url in SEEDS}
    assert (plan.deadline, plan.quiet_at) == (NOW + 3600, NOW + 3600 + DIFFER_S + longest_s(Settings()) + 2.0)
    assert make_plan(dataset, [], NOW + 5) == plan, "the first plan counts"


def test_the_status_in_the_first_round_says_what_is_known(dataset: Dataset) -> None:
    plan = make_plan(dataset, [], NOW)
    finish(dataset, plan, number(ONE), [])
    dataset.objects.put("rounds/000001/ahead/worker-000000007.jsonl", b"")
    said = here("status", "--db", dataset.objects.location).out
    assert "6 seeds; the URLs that a round finds are counted when it has ended" in said
    assert f"round 1: 7 requests, 1 of {len(plan.tasks)} buckets done; the other lines are from before it" in said


def test_a_round_that_was_too_short_to_send_anything_is_followed_by_a_longer_one() -> None:
    idle = Manifest(1, NOW, NOW, {}, {}, {}, "")
    busy = msgspec.structs.replace(idle, parts={1: NOTHING | {"requests": 1}})
    rounds = ([], [idle], [busy, idle, idle], [idle, busy], [idle] * 99)
    assert [length_s(Settings(), before) / 3600 for before in rounds] == [1, 2, 4, 1, 32]


def test_the_best_offer_of_a_url_is_handed_over_and_deleted_two_rounds_later(dataset: Dataset) -> None:
    plan = make_plan(dataset, [], NOW)
    new, dated = f"{OTHER}new", f"{OTHER}dated"
    made = [offer(new, 3), offer(new, 2), offer(dated, 1), offer(dated, 1, lastmod=5.0)]
    finish(dataset, plan, number(ONE), made, ready_at=NOW)
    manifests = [commit(dataset, plan, [], NOW + 1)]
    assert offered(dataset, manifests[0]) == [(dated, 1, 5.0), (new, 2, None)]
    for later in range(2, 4):
        assert dataset.objects.keys("offers"), "a reader of the manifest before may need them"
        again = make_plan(dataset, manifests, NOW + later)
        finish(dataset, again, number(OTHER), [])
        manifests.append(commit(dataset, again, manifests, NOW + later))
    assert dataset.objects.keys("offers") == dataset.objects.keys("outgoing") == []


def test_a_task_that_nobody_claimed_is_closed_and_one_that_was_claimed_is_lost(dataset: Dataset) -> None:
    """What a lost task wrote ahead is its log, and gives the pauses of the next task."""
    plan = make_plan(dataset, [], NOW)
    assert dataset.claim(plan.round, number(ONE), "killed")
    assert not dataset.claim(plan.round, number(ONE), "another")
    row = {"url": ONE, "site": ONE[:-1], "purpose": "page", "status": 503, "address": "192.0.2.1", "bytes": 10}
    row |= {"started_at": NOW + 1, "finished_at": NOW + 2, "bucket": number(ONE), "request_id": 1}
    dataset.keep_pauses(plan.round, number(ONE), 1, {"a.test": 9000.0})
    dataset.keep_pauses(plan.round, number(ONE), 2, {"b.test": 4.0})
    for sent in (1, 2):  # the first answer of the storage was lost
        dataset.objects.put(f"rounds/{plan.round:06}/ahead/killed-{sent:09}.jsonl", json.dumps(row).encode())
    dataset.close(plan)
    assert dataset.unfinished(plan.round) == {number(ONE)}
    assert not dataset.claim(plan.round, number(OTHER), "late"), "after the round is closed, nobody can begin a task"
    manifest = commit(dataset, plan, [], plan.quiet_at)
    lost = Lost(plan.deadline + DIFFER_S + longest_s(Settings()), {"a.test": 9000.0, "b.test": 4.0})
    assert manifest.buckets[number(ONE)] == BucketState(0, 0.0, [], {}, lost)
    assert manifest.buckets[number(OTHER)].lost is None
    assert manifest.lost == {number(ONE): 1}
    assert dataset.lost_parts([manifest]) == dataset.objects.keys("lost") != []
    again = make_plan(dataset, [manifest], plan.quiet_at)
    assert next(task.lost for task in again.tasks if task.bucket == number(ONE)) == lost


def test_a_task_that_ends_while_its_round_is_committed_is_lost_with_its_pauses(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(dataset, [], NOW)
    assert dataset.claim(plan.round, number(ONE), "late")
    look = dataset.done

    def done(number_of_round: int) -> dict[int, Done]:
        found = look(number_of_round)
        dataset.objects.put(f"rounds/{plan.round:06}/done/{number(ONE):05}.json", b"{}")
        return found

    monkeypatch.setattr(dataset, "done", done)
    manifest = commit(dataset, plan, [], plan.quiet_at)
    assert manifest.buckets[number(ONE)].lost is not None
    assert manifest.parts == {}


def test_a_round_waits_for_results_that_are_being_written(dataset: Dataset) -> None:
    plan = make_plan(dataset, [], NOW)
    assert dataset.claim(plan.round, number(ONE), "slow")
    assert not dataset.are_writing(plan.round, NOW)
    dataset.say_writing(plan.round, number(ONE), NOW)
    assert dataset.are_writing(plan.round, NOW + WRITING_S - 1)
    assert not dataset.are_writing(plan.round, NOW + WRITING_S), "its process has died"


def test_each_bucket_comes_first_at_some_time() -> None:
    buckets = {number(url) for url in SEEDS}
    assert {min(buckets, key=lambda bucket: _precedence(bucket, turn)) for turn in range(40)} == buckets


def test_a_worker_joins_each_round_from_the_one_under_way_until_the_crawl_is_over(dataset: Dataset) -> None:
    make_plan(dataset, [], NOW)
    manifests = list[Manifest]()

    async def main() -> list[int]:
        async for number_of_round in _begun(dataset, StorageClock(dataset.objects)):
            plan = dataset.plan(number_of_round)
            assert plan is not None
            for task in plan.tasks:
                finish(dataset, plan, task.bucket, [], ready_at=None if manifests else NOW)
            manifests.append(commit(dataset, plan, manifests, NOW))
            make_plan(dataset, manifests, NOW)
        return [manifest.round for manifest in manifests]

    assert asyncio.run(main()) == [1, 2]


def test_a_round_begins_when_there_is_something_to_do() -> None:
    assert begins_at({}) is None
    assert begins_at({1: BucketState(3, None, [], {})}) is None
    assert begins_at({1: BucketState(3, 50.0, [], {}), 2: BucketState(3, 40.0, [], {})}) == 40.0
    assert begins_at({1: BucketState(3, 50.0, [], {}), 2: BucketState(3, None, ["offers/1"], {})}) == 0.0


def test_a_design_that_needs_the_whole_crawl_in_one_store_is_refused_with_a_reason() -> None:
    require_uniform(Settings(sample=SampleSettings(size=5)))
    for design, why in (
        (SampleSettings(size=5, method=Method.RANDOM_WALK), "random walk .* one store"),
        (SampleSettings(size=5, per=Per.SITE), "sampled as a whole"),
        (SampleSettings(size=5, share=0.5), "share of a frame"),
    ):
        with pytest.raises(UsageError, match=why):
            require_uniform(Settings(sample=design))
