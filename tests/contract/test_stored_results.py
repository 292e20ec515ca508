"""The results of a crawl in the store: pages, links, bodies, robots versions, requests, mirrors and views."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from crawler.model import Link, Purpose, RobotsAction, RobotsCopy, State
from crawler.reasons import ErrorKind, Reason, ReasonCode, RequestError
from crawler.store.computed import Computed
from crawler.store.rows import AgentLine, RobotsNews
from tests.contract.visits import NOW, Harness, deferred, fetched, link, redirected, request, retried, robots
from tests.records import replace

#: The error of a request without an address to connect to.
UNSENT = RequestError(ErrorKind.DNS_NO_NAME, "no such host")

TIMEOUT = RequestError(ErrorKind.TIMEOUT, "no answer in time")

A, B = "http://a.test/", "http://b.test/"


async def test_a_page_is_kept_with_its_body_links_and_texts(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    said: dict[str, Any] = {
        "title": "T",
        "description": "D",
        "keywords": "K",
        "document_state": "STATIC",
        "canonical_url": B,
    }
    links: list[Link | str] = [f"{A}x", link(f"{B}y?q=1", follow=False)]
    await harness.finish(claim, fetched(claim.urls[0], links, body=b"<p>hello", **said))
    (row,) = await harness.store.query("SELECT * FROM pages")
    assert {name: row[name] for name in said} == said
    assert row["url"] == A
    assert (row["status"], row["content_type"], row["fetched_at"], row["depth"]) == (200, "text/html", NOW, 0)
    assert (row["noindex"], row["nofollow"], row["body_bytes"]) == (0, 0, 8)
    assert row["body_sha256"] == hashlib.sha256(b"<p>hello").hexdigest()
    assert await harness.store.bodies.of_page(A) == b"<p>hello"
    assert await harness.store.query("SELECT source, target, anchor, rel FROM links ORDER BY target") == [
        {"source": A, "target": f"{A}x", "anchor": "anchor", "rel": ""},
        {"source": A, "target": f"{B}y?q=1", "anchor": "anchor", "rel": "nofollow"},
    ]


async def test_an_empty_page_is_kept_with_its_empty_body(harness: Harness) -> None:
    """``Content-Length: 0``. The other pages of the batch are kept, too."""
    await harness.seed(A, f"{A}empty")
    (claim,) = await harness.claim()
    await harness.finish(
        claim, *(fetched(queued, body=b"" if "empty" in queued.url else b"x") for queued in claim.urls)
    )
    kept = await harness.store.query("SELECT url, body_bytes, body_sha256 IS NULL AS has_none FROM pages ORDER BY url")
    assert kept == [
        {"url": A, "body_bytes": 1, "has_none": 0},
        {"url": f"{A}empty", "body_bytes": 0, "has_none": 0},
    ]
    assert await harness.store.bodies.of_page(f"{A}empty") == b""


async def test_a_page_without_index_has_no_body(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], body=None, index=False, follow=False))
    assert await harness.store.query("SELECT noindex, nofollow, body_sha256 FROM pages") == [
        {"noindex": 1, "nofollow": 1, "body_sha256": None}
    ]
    assert await harness.store.bodies.of_page(A) is None
    assert await harness.store.bodies.of_page(f"{A}unknown") is None
    assert await harness.store.bodies.of_page("http://unknown.test/") is None


async def test_a_body_is_kept_once_for_all_pages_that_have_it(harness: Harness) -> None:
    await harness.seed(*(f"{A}{n}" for n in range(4)))
    (claim,) = await harness.claim()
    outcomes = [fetched(queued, body=b"same" if n < 3 else b"other") for n, queued in enumerate(claim.urls)]
    await harness.commit(*outcomes[:2])
    await harness.commit(*outcomes[2:])
    assert await harness.store.query("SELECT count(DISTINCT body_sha256) AS n, count(*) AS m FROM pages") == [
        {"n": 2, "m": 4}
    ]
    assert [await harness.store.bodies.of_page(outcome.queued.url) for outcome in outcomes] == [b"same"] * 3 + [
        b"other"
    ]
    numbers = {row["body_id"] for row in await harness.store.query("SELECT body_id FROM pages_by_id")}
    bodies = await harness.store.bodies.get([*numbers, max(numbers) + 1])
    assert bodies.keys() == numbers
    assert set(bodies.values()) == {b"same", b"other"}


async def test_a_robots_version_has_the_status_and_the_note_of_its_last_answer(harness: Harness) -> None:
    site = await harness.site_number("http://a.test")
    for number, (status, note) in enumerate((("200", "first"), ("304", "second"), ("200 elsewhere", "third"))):
        copy = replace(robots(at=NOW + number, note=note), status=status)
        await harness.news(site, "http://a.test", copy)
    (version,) = await harness.store.query("SELECT status, note, fetched_at, confirmed_at FROM robots_versions")
    assert tuple(version.values()) == ("200 elsewhere", "third", NOW, NOW + 2)


async def test_robots_versions_follow_each_other_in_time(harness: Harness) -> None:
    site = await harness.site_number("http://a.test")
    first = await harness.news(site, "http://a.test", robots(b"one", until=NOW + 100))
    harness.now += 100
    renewed = await harness.news(site, "http://a.test", robots(b"one", at=NOW + 100, until=NOW + 200))
    second = await harness.news(site, "http://a.test", robots(b"two", at=NOW + 150, until=NOW + 300))
    await harness.news(site, "http://a.test", deferred(NOW + 300, NOW + 360))
    fourth = await harness.news(site, "http://a.test", robots(b"one", at=NOW + 360, until=NOW + 900))
    assert len({first, renewed, second, fourth}) == 4
    rows = await harness.store.query("SELECT * FROM robots_versions ORDER BY valid_from")
    assert [(r["body"], r["status"], r["valid_from"] - NOW, r["valid_until"] - NOW) for r in rows] == [
        (b"one", "200", 0, 150),
        (b"two", "200", 150, 300),
        (None, "503", 300, 360),
        (b"one", "200", 360, 900),
    ]
    assert (rows[0]["fetched_at"], rows[0]["confirmed_at"]) == (NOW, NOW + 100)
    assert await harness.store.query("SELECT count(*) AS n FROM robots_answers") == [{"n": 5}]
    assert rows[0]["version_sha256"] == hashlib.sha256(b"one").hexdigest() == rows[3]["version_sha256"]
    (seen,) = await harness.store.query("SELECT robots_status, robots_expires_at, robots_action FROM sites")
    assert seen == {"robots_status": "200", "robots_expires_at": NOW + 900, "robots_action": "parse"}


async def test_one_commit_takes_the_robots_copies_of_many_sites(harness: Harness) -> None:
    names = [f"http://{letter}.test" for letter in "abc"]
    a, b, c = [await harness.site_number(name) for name in names]
    await harness.news(a, names[0], robots(b"old"), main_site="http://m.test")
    news = [
        RobotsNews(a, names[0], robots(b"new", at=NOW + 10), 3.0, None),
        RobotsNews(b, names[1], robots(b"new"), None, names[2], agent_servers=(AgentLine(2, "/", "atp://x.org:831"),)),
        RobotsNews(c, names[2], deferred(NOW, NOW + 60), 5.0, None),
    ]
    numbers = (await harness.commit(robots=news)).robots_ids
    assert {site: known.robots_id for site in names if (known := await harness.store.site(site))} == {
        name: numbers[site] for name, site in zip(names, (a, b, c), strict=True)
    }
    assert len(set(numbers.values())) == 3
    rows = await harness.store.query(
        "SELECT robots_action, robots_status, crawl_delay_s, main_site FROM sites ORDER BY site"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("parse", "200", 3.0, None),
        ("parse", "200", None, names[2]),
        ("defer", "503", 5.0, None),
    ]
    assert await harness.store.query("SELECT site, main_site FROM mirrors") == [
        {"site": names[1], "main_site": names[2]}
    ]
    versions = await harness.store.query(
        "SELECT valid_until FROM robots_versions WHERE site = :site", {"site": names[0]}
    )
    assert sorted(row["valid_until"] for row in versions) == [NOW + 10, NOW + 1000]
    assert await harness.store.query("SELECT site FROM agent_servers") == [{"site": names[1]}]


async def test_failures_of_robots_txt_in_a_row_are_one_version(harness: Harness) -> None:
    site = await harness.site_number("http://a.test")
    for n in range(3):
        await harness.news(site, "http://a.test", deferred(NOW + 60 * n, NOW + 60 * n + 60))
    rows = await harness.store.query("SELECT valid_from, valid_until FROM robots_versions")
    assert rows == [{"valid_from": NOW, "valid_until": NOW + 180}]


@pytest.mark.parametrize("action", [RobotsAction.FREE, RobotsAction.RESTRICTED, RobotsAction.GIVEN_UP])
async def test_answers_without_a_file_are_versions_too(harness: Harness, action: RobotsAction) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    copy = RobotsCopy(action, "404", NOW, NOW + 10, note="said so")
    await harness.news(claim.urls[0].site_id, "http://a.test", copy)
    await harness.commit(released=[claim.group_id])
    (claim,) = await harness.claim()
    assert next(iter(claim.sites.values())).copy == copy


async def test_mirrors_come_and_go(harness: Harness) -> None:
    site = await harness.site_number("http://a.test")
    await harness.news(site, "http://a.test", robots(), main_site="http://b.test")
    assert await harness.store.query("SELECT site, main_site, evidence FROM mirrors") == [
        {"site": "http://a.test", "main_site": "http://b.test", "evidence": "host"}
    ]
    assert (await harness.store.heard()).mirrors == [("http://a.test", "http://b.test")]
    await harness.news(site, "http://a.test", robots(b"other"))
    assert (await harness.store.heard()).mirrors == []
    assert await harness.store.query("SELECT main_site FROM sites") == [{"main_site": None}]


async def test_every_request_is_a_row(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    site = claim.urls[0].site_id
    number = await harness.news(site, "http://a.test", robots())
    rows = [
        request(site, "/robots.txt", purpose=Purpose.ROBOTS),
        request(site, "/", NOW + 2, robots_id=number, verdict_line=3),
        request(
            site,
            "/",
            NOW + 9,
            status=None,
            error=TIMEOUT,
            robots_id=number,
            retry_after_s=5.0,
        ),
    ]
    await harness.commit(requests=rows)
    stored = await harness.store.query("SELECT * FROM requests ORDER BY started_at")
    version = hashlib.sha256(b"User-agent: *\n").hexdigest()
    assert [(r["url"], r["site"], r["purpose"], r["robots_version"], r["verdict_line"]) for r in stored] == [
        (f"{A}robots.txt", "http://a.test", "robots", None, None),
        (A, "http://a.test", "page", version, 3),
        (A, "http://a.test", "page", version, None),
    ]
    assert [(r["finished_at"] - r["started_at"], r["status"], r["error"], r["bytes"]) for r in stored] == [
        (0.5, 200, None, 100),
        (0.5, 200, None, 100),
        (0.5, None, "no answer in time", 100),
    ]


async def test_counts_agree_with_the_views(harness: Harness) -> None:
    await harness.seed(A, B, "http://c.test/")
    claims = {claim.group: claim for claim in await harness.claim()}
    first, second, third = (claims[name].urls[0] for name in ("a.test", "b.test", "c.test"))
    await harness.commit(
        fetched(first, [f"{A}x", f"{A}y"]), redirected(second, f"{B}there"), retried(third, NOW + 5),
        requests=[request(first.site_id, "/"), request(third.site_id, "/", status=None, error=UNSENT)],
        released=[claim.group_id for claim in claims.values()],
    )  # fmt: skip
    counts = await harness.store.counts()
    assert counts.states == {
        State.QUEUED: 4,
        State.FETCHED: 1,
        State.REDIRECTED: 1,
        State.EXCLUDED: 0,
        State.FAILED: 0,
    }
    assert (counts.pages, counts.links, counts.requests, counts.sites) == (1, 2, 1, 3)
    assert await harness.store.queued_count() == 4
    assert await harness.store.fetched_count() == await harness.store.fetched_by_run() == 1
    sites = await harness.store.query("SELECT site, queued, fetched FROM sites ORDER BY site")
    assert [tuple(row.values()) for row in sites] == [
        ("http://a.test", 2, 1),
        ("http://b.test", 1, 0),
        ("http://c.test", 1, 0),
    ]
    await harness.reopen()
    assert (await harness.store.fetched_count(), await harness.store.fetched_by_run()) == (1, 0)


PROMISED = {
    "urls": "url, site, state, reason, depth, discovered_from, next_at",
    "pages": "url, status, content_type, fetched_at, depth, title, description, keywords, canonical_url, "
    "document_state, noindex, nofollow, body_sha256, body_bytes",
    "links": "source, target, anchor, rel",
    "sites": "site, main_site, robots_status, robots_expires_at, crawl_delay_s, delay_s, next_at, queued, fetched",
    "robots_versions": "site, version_sha256, fetched_at, valid_from, valid_until, status, body",
    "mirrors": "site, main_site, evidence",
    "ranks": "url, pagerank, in_links, in_sites",
    "site_ranks": "site, pagerank, pages, in_links, in_sites",
    "samples": "url, site, stratum, probability, method",
    "requests": "url, site, purpose, started_at, finished_at, status, error, bytes, robots_version, verdict_line",
}


@pytest.mark.parametrize(("view", "columns"), PROMISED.items())
async def test_every_promised_view_and_column_is_there(harness: Harness, view: str, columns: str) -> None:
    assert await harness.store.query(f"SELECT {columns} FROM {view}") == []


async def test_every_known_url_has_a_number_and_no_other(harness: Harness) -> None:
    await harness.seed(A, f"{A}x", B)
    numbers = {await harness.store.find(url) for url in (A, f"{A}x", B)}
    assert len(numbers - {None}) == 3
    assert await harness.store.find(f"{A}unknown") is None
    assert await harness.store.find("http://unknown.test/") is None


async def test_what_was_computed_is_older_than_the_next_request_and_a_forgotten_page(harness: Harness) -> None:
    store = harness.store
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.commit(fetched(claim.urls[0]), released=[claim.group_id], requests=[request(1, "/")])
    assert await store.computed() == {}
    await store.results.replace_ranks([], [], await store.last_request())
    await store.results.replace_near_duplicates([], await store.last_request())
    assert await store.computed() == {Computed.RANKS: False, Computed.NEAR_DUPLICATES: False}
    await store.maintenance.forget([claim.urls[0].id], Reason(ReasonCode.FORGOTTEN))
    assert await store.computed() == {Computed.RANKS: True, Computed.NEAR_DUPLICATES: True}
    await store.results.replace_ranks([], [], await store.last_request())
    assert await store.computed() == {Computed.RANKS: False, Computed.NEAR_DUPLICATES: True}
    await harness.commit(requests=[request(1, "/next")])
    assert await store.computed() == {Computed.RANKS: True, Computed.NEAR_DUPLICATES: True}
