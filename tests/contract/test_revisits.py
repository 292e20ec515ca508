"""Revisits in each store: which URLs are queued again, what a visit stores, versions and hints."""

from __future__ import annotations

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.hints import Hint, HintCounts, HintKind
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.revisit_outcome import after_revisit
from crawler.model import Fetched, NotModified, PageFacts, Preference, State
from crawler.reasons import EndCode, RunEnd
from crawler.store.rows import Claim
from tests.contract.visits import NOW, Harness, fetched, redirected
from tests.reasons import reason
from tests.records import replace

DAY_S = 86_400.0
A = "http://a.test/"
SETTINGS = RevisitSettings(True, first_s=DAY_S, min_interval_s=60.0, max_interval_s=30 * DAY_S)


async def queue(harness: Harness, *, days: float = 2.0, settings: RevisitSettings = SETTINGS) -> int:
    """Let days pass, and queue what is due."""
    harness.now += days * DAY_S
    return await harness.store.revisits.queue_due(settings, harness.now, harness.now, harness.pages_per_site)


async def crawled(harness: Harness, *links: str) -> None:
    await harness.seed(A)
    await harness.crawl({A: list(links)}, lambda queued: queued[0])


def unchanged(queued: Queued, now: float) -> Outcome:
    answer = NotModified(queued.url, now, now)
    return after_revisit(Outcome(queued, State.FAILED, reason("304")), answer, PageFacts(), SETTINGS)


def changed(queued: Queued, now: float, body: bytes, **facts: object) -> Outcome:
    answer = Fetched(queued.url, now, now, plain=body)
    said = PageFacts(**facts)  # type: ignore[arg-type]
    outcome = fetched(queued, body=body if said.index else None, **facts)
    return after_revisit(outcome, answer, said, SETTINGS)


async def only_claim(harness: Harness) -> Claim:
    (claim,) = await harness.claim()
    return claim


async def test_a_due_url_is_queued_with_its_page_and_its_previous_state(harness: Harness) -> None:
    await crawled(harness)
    assert await queue(harness, days=0.5) == 0
    assert await queue(harness) == 1
    assert await harness.urls("state, reason") == {A: ("queued", "revisit: due")}
    assert len(await harness.store.query("SELECT * FROM pages")) == 1
    assert await queue(harness) == 0, "it is queued already"
    (queued,) = (await only_claim(harness)).urls
    assert queued.seen is not None
    assert (queued.seen.state, queued.seen.reason.sentence, queued.seen.version) == (State.FETCHED, "200", 1)
    assert queued.seen.checked_at == NOW


async def test_an_unchanged_page_keeps_its_links_and_targets(harness: Harness) -> None:
    await harness.seed(A)
    claim = await only_claim(harness)
    outcome = replace(fetched(claim.urls[0], [f"{A}x"]), target=f"{A}x")
    await harness.finish(claim, outcome)
    await harness.crawl({}, lambda queued: queued[0])
    await queue(harness)
    claim = await only_claim(harness)
    await harness.finish(claim, *[unchanged(queued, harness.now) for queued in claim.urls])
    assert (await harness.urls("state, reason, target"))[A] == ("fetched", "200, unchanged (304)", f"{A}x")
    rows = await harness.store.query("SELECT DISTINCT version, last_seen_at FROM pages")
    assert rows == [{"version": 1, "last_seen_at": harness.now}]
    (row,) = await harness.store.query(
        "SELECT checked_at, due_at > checked_at AS later FROM revisits WHERE url = ?", (A,)
    )
    assert row == {"checked_at": harness.now, "later": 1}


async def test_a_changed_page_leaves_its_old_version_and_body(harness: Harness) -> None:
    await crawled(harness)
    await queue(harness)
    claim = await only_claim(harness)
    await harness.finish(claim, changed(claim.urls[0], harness.now, b"<p>new", title="New"))
    versions = await harness.store.query("SELECT version, title FROM page_versions ORDER BY version")
    assert versions == [{"version": 1, "title": None}, {"version": 2, "title": "New"}]
    assert [await harness.store.bodies.of_page(A, version) for version in (None, 1, 2, 3)] == [
        b"<p>new",
        b"<p>body",
        b"<p>new",
        None,
    ]
    assert await harness.store.fetched_count() == 1, "it is still one page"


async def test_an_old_version_keeps_its_preferences(harness: Harness) -> None:
    refusal = Preference("noai", "train-ai", "n", "META", None, "robots: noai")
    rule = Preference("content-signal", "search", "n", "robots.txt", 2, "Content-Signal: search=no")
    await crawled(harness)
    for number, stated in enumerate([((refusal,), (rule,)), ((), ())]):
        await queue(harness, days=40)
        claim = await only_claim(harness)
        outcome = changed(claim.urls[0], harness.now, f"<p>{number}".encode())
        await harness.finish(claim, replace(outcome, own_preferences=stated[0], robots_preferences=stated[1]))
    await harness.store.maintenance.sweep_forgotten()
    sql = "SELECT url, version, scheme, category, value, source, line, text FROM version_preferences ORDER BY scheme"
    found = await harness.store.query(sql)
    assert [tuple(row.values()) for row in found] == [(A, 2, *rule), (A, 2, *refusal)]
    assert await harness.store.query("SELECT * FROM preferences") == [], "the last version states none"


async def test_a_page_that_turns_noindex_loses_its_body(harness: Harness) -> None:
    await crawled(harness)
    for facts in ({"title": "Two"}, {"index": False}):
        await queue(harness, days=40)
        claim = await only_claim(harness)
        await harness.finish(claim, changed(claim.urls[0], harness.now, str(facts).encode(), **facts))
    rows = await harness.store.query("SELECT version, title, body_sha256, noindex FROM page_versions ORDER BY version")
    assert [tuple(row.values()) for row in rows] == [(n, None, None, 1) for n in (1, 2, 3)]
    await harness.store.end_run(RunEnd(EndCode.DONE), harness.now)
    assert await harness.store.query("SELECT * FROM body") == []


async def test_a_body_shared_with_another_page_is_kept(harness: Harness) -> None:
    await crawled(harness, f"{A}twin")
    await queue(harness)
    claim = await only_claim(harness)
    outcomes = {queued.url: unchanged(queued, harness.now) for queued in claim.urls}
    outcomes[A] = changed(next(q for q in claim.urls if q.url == A), harness.now, b"closed", index=False)
    await harness.finish(claim, *outcomes.values())
    await harness.store.end_run(RunEnd(EndCode.DONE), harness.now)
    assert await harness.store.bodies.of_page(f"{A}twin") == b"<p>body"


async def test_revisits_survive_a_crash(harness: Harness) -> None:
    await crawled(harness)
    await queue(harness)
    await harness.claim()
    await harness.reopen()
    harness.now += 10
    (queued,) = (await only_claim(harness)).urls
    assert queued.seen is not None


async def test_limits_on_pages_hold_back_new_urls_alone(harness: Harness) -> None:
    harness.pages_per_site = 1
    await crawled(harness, f"{A}x", f"{A}y")
    assert await harness.claim() == []
    await queue(harness)
    assert [queued.url for queued in (await only_claim(harness)).urls] == [A]


async def test_redirects_are_revisited_rarely(harness: Harness) -> None:
    await harness.seed(A)
    claim = await only_claim(harness)
    await harness.finish(claim, redirected(claim.urls[0], f"{A}to"))
    await queue(harness, days=0)
    assert [await queue(harness, days=days) for days in (3, 2)] == [0, 1]


async def test_hints_move_visits_of_known_urls_and_add_new_urls(harness: Harness) -> None:
    await crawled(harness)
    harness.now += 100
    at = harness.now - 1
    urls = (A, f"{A}new", "http://out.test/")
    hints = [Hint(url, HintKind.CHANGED, at, "rup") for url in urls]
    counts = await harness.store.revisits.apply_hints(
        hints, SETTINGS, harness.now, lambda url, depth: reason("scope: out") if "out" in url else None
    )
    assert counts == HintCounts(moved=1, new=1, ignored=1)
    assert not await harness.store.revisits.are_queued()
    assert await harness.store.revisits.queue_due(SETTINGS, harness.now, harness.now, None, hinted_only=True) == 1
    assert await harness.store.revisits.are_queued()
    states = await harness.urls("state, reason")
    assert states == {A: ("queued", "revisit: reported as changed by rup"), f"{A}new": ("queued", "")}


async def test_a_hint_adds_no_revisits_of_other_pages(harness: Harness) -> None:
    """So an order to queue a URL takes no longer in a store of many pages."""
    await harness.seed(A, f"{A}other")
    claim = await only_claim(harness)
    await harness.finish(claim, *(fetched(queued) for queued in claim.urls))
    hint = Hint(A, HintKind.CHANGED, harness.now, "user")
    await harness.store.revisits.apply_hints([hint], SETTINGS, harness.now, lambda *_: None)
    assert [row["url"] for row in await harness.store.query("SELECT url FROM revisits")] == [A]


async def test_a_hint_does_not_come_before_the_least_pause(harness: Harness) -> None:
    await crawled(harness)
    harness.now += 10
    await harness.store.revisits.apply_hints(
        [Hint(A, HintKind.GONE, harness.now, "x")], SETTINGS, harness.now, lambda *_: None
    )
    assert await queue(harness, days=0) == 0
    assert await queue(harness, days=60 / DAY_S) == 1
