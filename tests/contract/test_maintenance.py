"""What is taken out of a store: forgotten pages, and earlier versions."""

from __future__ import annotations

from crawler.audit.study import read_study_facts
from crawler.model import Purpose, State
from crawler.reasons import EndCode, Reason, ReasonCode, RunEnd
from crawler.store.rows import Content
from tests.contract.test_revisits import changed, crawled, only_claim, queue
from tests.contract.visits import NOW, Harness, fetched, link, redirected, request, robots

A, B = "http://a.test/", "http://b.test/"
FORGOTTEN = Reason(ReasonCode.FORGOTTEN, " on 2027-01-15")


async def _crawled(harness: Harness) -> None:
    """Two pages of ``a.test`` that share a body with one of ``b.test``, and one with a body of its own."""
    await harness.seed(A, f"{A}own", B)
    for claim in await harness.claim():
        site = next(iter(claim.sites))
        await harness.news(site, claim.sites[site].name, robots())
        outcomes = []
        for queued in claim.urls:
            body = b"<p>own" if queued.url.endswith("own") else b"<p>shared"
            outcomes.append(fetched(queued, [link(B), f"{A}next"], body=body, title=f"title of {queued.url}"))
        sent = [request(site, queued.url[13:]) for queued in claim.urls]
        await harness.commit(*outcomes, requests=sent, released=[claim.group_id])
    await harness.store.end_run(RunEnd(EndCode.DONE), NOW)


async def _number(harness: Harness, url: str) -> int:
    number = await harness.store.find(url)
    assert number is not None
    return number


async def test_a_forgotten_page_leaves_nothing_but_its_address_and_its_request(harness: Harness) -> None:
    await _crawled(harness)
    store = harness.store
    numbers = [await _number(harness, url) for url in (A, f"{A}own", f"{A}next")]
    expected = Content(pages=2, versions=0, links=4)
    assert await store.maintenance.content_of(numbers) == expected
    assert await store.maintenance.forget(numbers, FORGOTTEN) == expected
    await store.maintenance.sweep_forgotten()
    assert [row["url"] for row in await store.query("SELECT url FROM pages")] == [B]
    assert {row["source"] for row in await store.query("SELECT source FROM links")} == {B}
    assert await store.bodies.of_page(A) is await store.bodies.of_page(f"{A}own") is None
    assert await store.bodies.of_page(B) == b"<p>shared", "another page has it"
    assert (await store.query("SELECT count(*) AS n FROM bodies_by_id"))[0]["n"] == 1
    urls = await harness.urls("state, reason_code, reason")
    assert urls[A] == urls[f"{A}next"] == (State.EXCLUDED, "forgotten", "forgotten by the operator on 2027-01-15")
    assert urls[B][0] == State.FETCHED
    assert len(await store.query("SELECT url FROM requests")) == 3
    assert await store.fetched_count() == 1
    assert await store.queued_count() == 0


async def test_what_was_forgotten_comes_back_when_it_is_queued_again_and_not_before(harness: Harness) -> None:
    await _crawled(harness)
    numbers = [await _number(harness, A)]
    await harness.store.maintenance.forget(numbers, FORGOTTEN)
    await harness.reopen()
    await harness.seed(A)
    assert (await harness.urls())[A] == State.EXCLUDED
    await harness.store.requeue(numbers)
    assert (await harness.urls())[A] == State.QUEUED
    assert A in [queued.url for claim in await harness.claim() for queued in claim.urls]


async def test_addresses_in_the_request_log_are_reduced_to_their_sites(harness: Harness) -> None:
    await _crawled(harness)
    await harness.store.maintenance.redact([await _number(harness, f"{A}own")])
    logged = sorted(row["url"] for row in await harness.store.query("SELECT url FROM requests"))
    assert logged == [A.rstrip("/"), A, B]


async def test_locations_that_name_a_redacted_address_are_cleared(harness: Harness) -> None:
    """Of a relative location, of those of earlier visits, and not of others nor of a robots.txt."""
    await harness.seed(f"{A}moved", f"{A}new", B)
    sites = {}
    for claim in await harness.claim():
        for site, state in claim.sites.items():
            sites[state.name] = site
            await harness.news(site, state.name, robots())
        outcomes = [
            redirected(queued, f"{A}secret?id=1") if queued.url == f"{A}moved" else fetched(queued)
            for queued in claim.urls
        ]
        await harness.commit(*outcomes, released=[claim.group_id])
    a, b = sites["http://a.test"], sites["http://b.test"]
    sent = [
        request(a, "/moved", location="./secret?id=1#top"),
        request(a, "/new", location="/secret?id=1"),
        request(b, "/", location=f"{A}secret?id=1"),
        request(b, "/", location="/secret?id=1"),
        request(b, "/robots.txt", purpose=Purpose.ROBOTS, location=f"{A}secret?id=1"),
        request(a, "/new", location=f"{A}public"),
    ]
    await harness.commit(requests=sent)
    await harness.store.maintenance.redact([await _number(harness, f"{A}secret?id=1")])
    rows = await harness.store.query("SELECT site_id, location FROM requests_by_id WHERE location IS NOT NULL")
    kept = {(a, f"{A}public"), (b, "/secret?id=1"), (b, f"{A}secret?id=1")}
    assert len(rows) == len(kept)
    assert {(row["site_id"], row["location"]) for row in rows} == kept


async def _versions(harness: Harness) -> list[int]:
    return sorted(row["version"] for row in await harness.store.query("SELECT version FROM page_versions"))


async def test_earlier_versions_are_deleted_by_age_and_by_number(harness: Harness) -> None:
    await crawled(harness)
    for n in range(2, 6):
        await queue(harness)
        claim = await only_claim(harness)
        await harness.finish(claim, changed(claim.urls[0], harness.now, b"<p>version %d" % n))
    await harness.store.end_run(RunEnd(EndCode.DONE), harness.now)
    assert await _versions(harness) == [1, 2, 3, 4, 5]
    assert await harness.store.maintenance.prune(NOW, 100) == 0, "all were last seen at NOW"
    assert await harness.store.maintenance.prune(NOW, 2) == 3, "the newest counts as one"
    assert await _versions(harness) == [4, 5]
    kept = (await read_study_facts(harness.store)).kept
    assert (kept.pages, kept.versions, kept.versions_since) == (1, 1, NOW), "as the audit tells them"
    assert [await harness.store.bodies.of_page(A, n) for n in (3, 4, 5)] == [None, b"<p>version 4", b"<p>version 5"]
    assert (await harness.store.query("SELECT count(*) AS n FROM bodies_by_id"))[0]["n"] == 2
    assert await harness.store.maintenance.prune(NOW + 1, 100) == 1
    assert await _versions(harness) == [5], "the newest version stays, whatever its age"
    before, after = await harness.store.maintenance.compact()
    assert before > 0
    assert after > 0
