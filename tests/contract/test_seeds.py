"""The ledger of the seeds is the same on both databases, and one statement reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.inspect.seeds import Outcome as Became
from crawler.inspect.seeds import Seed, read_ledger
from crawler.model import State
from crawler.store.rows import SkippedSeed
from tests.contract.visits import Harness, deferred, excluded, failed, fetched, redirected
from tests.reasons import reason
from tests.records import replace

A, B, C, D, E, F = (f"http://{name}.test/" for name in "abcdef")


def out_of_scope(queued: Queued, target: str) -> Outcome:
    offer = Offer(target, queued.depth, reason("scope: out"), hops=queued.hops + 1, seed=queued.seed)
    return Outcome(queued, State.REDIRECTED, reason(f"302 to {target}"), offers=(offer,), target=target)


def visit(queued: Queued) -> Outcome:
    match queued.url:
        case "http://b.test/":
            return redirected(queued, f"{B}old")
        case "http://b.test/old":
            return redirected(queued, f"{B}new")
        case "http://c.test/":
            return excluded(queued, "robots: line 2")
        case "http://d.test/":
            return failed(queued, "404 Not Found")
        case "http://e.test/":
            return out_of_scope(queued, "http://other.example/")
        case _:
            return fetched(queued, [f"{A}1", f"{A}2"] if queued.url == A else [])


async def crawled(harness: Harness) -> dict[str, Seed]:
    await harness.seed(A, B, C, D, E)
    while claims := await harness.claim():
        for claim in claims:
            await harness.finish(claim, *map(visit, claim.urls))
        harness.now += 100
    await harness.seed(F)
    ((site,),) = [claim.sites.values() for claim in await harness.claim()]
    await harness.news(site.id, site.name, deferred(harness.now - 5, harness.now + 60))
    ledger = await read_ledger(harness.store, "c.db", harness.now)
    assert [seed.outcome for seed in ledger.seeds] == sorted(
        (seed.outcome for seed in ledger.seeds), key=list(Became).index
    )
    return {seed.url: seed for seed in ledger.seeds}


async def test_each_seed_has_what_became_of_it(harness: Harness) -> None:
    seeds = await crawled(harness)
    assert {url: (seed.outcome, seed.leads_to, seed.pages) for url, seed in seeds.items()} == {
        A: (Became.FETCHED, None, 3),
        B: (Became.FETCHED, f"{B}new", 1),
        C: (Became.CLOSED, None, 0),
        D: (Became.NOT_FOUND, None, 0),
        E: (Became.LEFT_SCOPE, "http://other.example/", 0),
        F: (Became.DEFERRED, None, 0),
    }
    assert seeds[E].leads_to_domain == "other.example"
    assert seeds[F].failing_since == harness.now - 5


async def test_the_skipped_lines_of_a_list_are_those_of_its_last_reading(harness: Harness) -> None:
    """A line is no longer listed once the crawl knows every URL that it perhaps meant."""
    many = SkippedSeed(2, "http:/c.test", "not //", f"{C} {D}")

    async def listed() -> list[tuple[str | None, int | None, str, tuple[str, ...]]]:
        seeds = (await read_ledger(harness.store, "c.db", harness.now)).seeds
        return [(s.source, s.line, s.url, s.meant) for s in seeds if s.outcome is Became.SKIPPED]

    await harness.seed(A)
    lines = [SkippedSeed(1, "a.test", "no scheme", A), many, SkippedSeed(3, "\ufffd", "no text")]
    await harness.store.note_skipped("/list", lines)
    await harness.store.note_skipped("command line", [SkippedSeed(1, "b.test", "no scheme", B)])
    one, two = ("/list", 2, many.text, (C, D)), ("/list", 3, "\ufffd", ())
    assert await listed() == [one, two, ("command line", 1, "b.test", (B,))]
    await harness.seed(B, C)
    assert await listed() == [one, two]
    await harness.seed(D)
    assert await listed() == [two]
    await harness.store.note_skipped("/list", [])
    assert await listed() == []


async def test_a_seed_without_an_answer_so_far_says_what_was_seen(harness: Harness) -> None:
    await harness.seed(A)
    ((site,),) = [claim.sites.values() for claim in await harness.claim()]
    copy = replace(deferred(harness.now - 5, harness.now + 60), status="connect", failures=2, note="what was seen")
    await harness.news(site.id, site.name, copy)
    (seed,) = (await read_ledger(harness.store, "c.db", harness.now)).seeds
    assert (seed.outcome, seed.robots_problem, seed.robots_attempts) == (Became.SILENT, "what was seen", 2)


async def test_a_wait_names_the_site_that_a_block_would_leave_out(harness: Harness) -> None:
    await harness.seed("http://127.0.0.1:8098/", "http://127.0.0.1:8099/")
    (claim,) = await harness.claim()
    first, second = sorted(claim.sites.values(), key=lambda site: site.name)
    await harness.news(first.id, first.name, deferred(harness.now, harness.now + 90))
    await harness.news(second.id, second.name, deferred(harness.now, harness.now + 60))
    await harness.commit(released=[claim.group_id])
    ready = await harness.store.next_ready(harness.now)
    assert ready is not None
    assert (ready.group, ready.site, ready.until) == ("127.0.0.1", second.name, harness.now + 60)


async def test_one_statement_reads_all_seeds(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await harness.seed(*(f"http://s{n}.test/" for n in range(50)))
    query, statements = harness.store.query, []

    async def noting(sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        statements.append(sql)
        return await query(sql, parameters)

    monkeypatch.setattr(harness.store, "query", noting)
    ledger = await read_ledger(harness.store, "c.db", harness.now)
    assert (len(ledger.seeds), len(statements)) == (50, 1)


async def test_a_host_that_takes_the_place_of_a_seed_is_kept(harness: Harness) -> None:
    await harness.seed(A, B)
    for claim in await harness.claim():
        moved = [replace(redirected(queued, "http://www.a.test/"), adopted_host="www.a.test") for queued in claim.urls]
        await harness.finish(claim, *moved)
    assert (await harness.store.heard()).adopted_hosts == ["www.a.test"], "once, whatever leads there"
    assert sorted(await harness.store.seeds()) == [A, B], "the target of a seed's redirect is not named by the user"
