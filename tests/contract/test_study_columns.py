"""The columns for studies: of answers, of sites, and the resources of pages."""

from __future__ import annotations

import json

from crawler.frontier.decide import Outcome, Queued
from crawler.model import AnswerFacts, Resource
from crawler.reasons import Reason, ReasonCode
from tests.contract.visits import Harness, fetched, request
from tests.records import replace

A, B = "https://www.shop.co.uk/", "http://127.0.0.1:8080/"
ANSWER = AnswerFacts(json.dumps({"server": "nginx"}), "192.0.2.1", "TLSv1.3")


def visit(queued: Queued) -> Outcome:
    if queued.url == B:
        return fetched(queued)
    resources = (Resource("script", "cdn.b.co.uk", 2), Resource("style", "www.shop.co.uk", 1))
    outcome = fetched(queued, language="de-AT", resources=resources)
    assert outcome.page is not None
    return replace(outcome, page=replace(outcome.page, answer=ANSWER))


async def crawl(harness: Harness) -> None:
    await harness.seed(A, f"{A}two", B)
    for claim in await harness.claim():
        asked = [request(queued.site_id, "/", address="192.0.2.1") for queued in claim.urls]
        await harness.commit(*map(visit, claim.urls), requests=asked, released=[claim.group_id])


async def test_pages_have_the_facts_of_their_answers_and_sites(harness: Harness) -> None:
    await crawl(harness)
    columns = "language, host, registered_domain, headers, address, tls_version"
    rows = await harness.store.query(f"SELECT {columns} FROM pages ORDER BY url DESC")
    shop = ("de-AT", "www.shop.co.uk", "shop.co.uk", *ANSWER)
    assert [tuple(row.values()) for row in rows] == [shop, shop, (None, "127.0.0.1", "127.0.0.1", None, None, None)]
    assert await harness.store.query("SELECT count(*) AS n FROM answer") == [{"n": 1}]
    versions = await harness.store.query("SELECT DISTINCT headers, tls_version FROM page_versions")
    assert {row["headers"] for row in versions} == {ANSWER.headers, None}
    assert await harness.store.query("SELECT DISTINCT address FROM requests") == [{"address": "192.0.2.1"}]
    sites = await harness.store.query("SELECT host, registered_domain FROM sites ORDER BY host")
    assert [tuple(row.values()) for row in sites] == [("127.0.0.1", "127.0.0.1"), ("www.shop.co.uk", "shop.co.uk")]


async def test_resources_name_third_parties(harness: Harness) -> None:
    await crawl(harness)
    rows = await harness.store.query(
        "SELECT r.url, r.kind, r.host, r.registered_domain, r.times FROM resources r "
        "JOIN pages p ON p.url_id = r.url_id "
        "WHERE r.registered_domain <> p.registered_domain ORDER BY r.url"
    )
    assert [tuple(row.values()) for row in rows] == [
        (url, "script", "cdn.b.co.uk", "b.co.uk", 2) for url in (A, f"{A}two")
    ]


async def test_what_is_forgotten_leaves_no_answer(harness: Harness) -> None:
    await crawl(harness)
    numbers = [row["url_id"] for row in await harness.store.query("SELECT url_id FROM pages")]
    await harness.store.maintenance.forget(numbers, Reason(ReasonCode.FORGOTTEN))
    await harness.store.maintenance.sweep_forgotten()
    assert await harness.store.query("SELECT * FROM answer") == []
    assert await harness.store.query("SELECT * FROM resources") == []


async def test_the_same_answer_is_stored_in_the_first_commit_only(harness: Harness) -> None:
    await harness.seed(A)
    for links in ([f"{A}two"], [f"{A}three"], []):
        (claim,) = await harness.claim()
        outcome = visit(claim.urls[0])
        await harness.commit(
            replace(outcome, links=(), offers=fetched(claim.urls[0], links).offers), released=[claim.group_id]
        )
    assert await harness.store.query("SELECT count(*) AS n FROM pages WHERE address = '192.0.2.1'") == [{"n": 3}]
    assert await harness.store.query("SELECT count(*) AS n FROM answer") == [{"n": 1}]
