"""The report's figures, compared with rows that the test puts into a store."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path

import pytest

from crawler.audit.run_audit import AuditResult
from crawler.inspect.seeds import Outcome
from crawler.model import State
from crawler.reasons import ErrorKind, ReasonCode, RequestError
from crawler.report.gather import MAX_BROKEN_TARGETS, MAX_DOUBTFUL_SITES, BrokenTarget, Facts, gather
from crawler.report.rendering import render
from crawler.robots.doubts import Doubts, doubts_about
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness, deferred, excluded, failed, fetched, link, redirected, request, robots

TIMEOUT = RequestError(ErrorKind.TIMEOUT, "no answer in time")

STORE = Path(__file__).parents[3] / "docs/store.md"
A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    harness = Harness(lambda: SqliteStore.open(tmp_path / "crawl.db"))
    await harness.reopen(settings=asdict(Settings()))
    yield harness
    await harness.close()


async def gathered(harness: Harness) -> Facts:
    facts = await gather(harness.store, "crawl.db", NOW + 1e6)
    assert render(facts).startswith(b"<!doctype html>")  # every set of facts can be rendered
    return facts


async def test_an_empty_store_has_a_report(harness: Harness) -> None:
    facts = await gathered(harness)
    assert (facts.seed_outcomes, facts.sites, facts.mirrors, facts.timeline.slots) == ({}, [], [], [])
    assert (facts.sizes.total, facts.answer_times.quantiles) == (0, ())
    assert b"The crawler has not sent a request" in render(facts)


async def test_states_reasons_and_depths(harness: Harness) -> None:
    await harness.seed(A, B)
    claims = {claim.group: claim for claim in await harness.claim()}
    refusals = {
        f"{A}p1": "scope: outside",
        f"{A}p2": "scope: not below a seed",
        f"{A}p3": "depth: 9 links",
    }
    await harness.finish(claims["a.test"], fetched(claims["a.test"].urls[0], [*refusals, f"{A}q"], refusals=refusals))
    await harness.finish(claims["b.test"], failed(claims["b.test"].urls[0], "500 Internal Server Error (2 attempts)"))
    (claim,) = await harness.claim()
    await harness.finish(claim, excluded(claim.urls[0], "mirror of http://c.test (Host, line 3)"))
    facts = await gathered(harness)
    assert facts.first_seeds == [(A, Outcome.FETCHED), (B, Outcome.BAD_ANSWER)]
    assert facts.seed_outcomes == {Outcome.BAD_ANSWER: 1, Outcome.FETCHED: 1}
    assert facts.depths == {0: {State.FETCHED: 1, State.FAILED: 1}, 1: {State.EXCLUDED: 4}}
    assert [(reason.code, reason.urls) for reason in facts.excluded] == [("scope", 2), ("depth", 1), ("mirror", 1)]
    assert facts.excluded[1] == (ReasonCode.DEPTH, 1, f"{A}p3", "depth: 9 links")
    assert facts.failed == [(ReasonCode.SERVER_ERROR, 1, B, "500 Internal Server Error (2 attempts)")]


async def test_sites_whose_robots_txt_has_lines_in_doubt(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the copy in force, sites with most pages first. All are counted, the first are listed; a text is read once."""
    judged: list[bytes] = []

    def judge(body: bytes) -> Doubts:
        judged.append(body)
        return doubts_about(body)

    monkeypatch.setattr("crawler.report.gather.doubts_about", judge)
    names = [f"http://s{n:02}.test" for n in range(MAX_DOUBTFUL_SITES + 5)]
    await harness.seed(*(f"{name}/" for name in names))
    claims = {claim.urls[0].url: claim for claim in await harness.claim(100)}
    for name in names[1:]:
        await harness.news(claims[f"{name}/"].urls[0].site_id, name, robots(b"Disallow: /x\n"))
    mended, clean = (claims[f"{name}/"].urls[0].site_id for name in names[1:3])
    await harness.news(mended, names[1], robots(b"User-agent: *\nDisallow: /x\n"))
    await harness.news(clean, names[2], deferred(NOW, NOW + 60))
    await harness.finish(claims[f"{names[-1]}/"], fetched(claims[f"{names[-1]}/"].urls[0]))
    facts = await gathered(harness)
    assert facts.all_doubtful == len(names) - 3
    assert sorted(judged) == [b"Disallow: /x\n", b"User-agent: *\nDisallow: /x\n"]
    assert [(row.site, row.fetched) for row in facts.doubtful[:2]] == [(names[-1], 1), (names[3], 0)]
    assert len(facts.doubtful) == MAX_DOUBTFUL_SITES
    assert [doubt.line for doubt in facts.doubtful[0].doubts.first] == [1]
    assert "The table shows the 50 sites with most pages." in render(facts).decode()


async def test_sites_and_the_links_between_them(harness: Harness) -> None:
    await harness.seed(A, B)
    claims = {claim.group: claim for claim in await harness.claim()}
    site = claims["a.test"].urls[0].site_id
    await harness.news(site, "http://a.test", robots(), crawl_delay_s=7.0)
    await harness.commit(
        fetched(claims["a.test"].urls[0], [f"{A}x", B, C, f"{C}c", link(f"{C}d", follow=False)], title="The first"),
        fetched(claims["b.test"].urls[0], [A, f"{B}y"]),
        requests=[
            request(site, "/", bytes=300),
            request(site, "/x", NOW + 5, status=None, error=TIMEOUT, bytes=0),
        ],
        released=[claim.group_id for claim in claims.values()],
    )
    facts = await gathered(harness)
    by_name = {row.site: row for row in facts.sites}
    row = by_name["http://a.test"]
    assert (row.fetched, row.queued, row.requests, row.bytes) == (1, 1, 2, 300)
    assert (row.mean_s, row.robots_action, row.crawl_delay_s, row.links_in) == (0.5, "parse", 7.0, 1)
    assert (by_name["http://b.test"].robots_action, by_name["http://c.test"].links_in) == (None, 3)
    assert facts.fetched_sites == 2
    assert facts.answers == [("200", 1), ("no answer in time", 1)]
    assert facts.robots == [("parse", 1)]


async def test_links_to_failed_urls_directly_or_by_redirects(harness: Harness) -> None:
    await harness.seed(A, B)
    claims = {claim.group: claim for claim in await harness.claim()}
    gone, old, older, fine = (f"{A}{name}" for name in ("gone", "old", "older", "fine"))
    await harness.commit(
        fetched(claims["a.test"].urls[0], [gone, older, fine]),
        fetched(claims["b.test"].urls[0], [link(gone, follow=False), old, A]),
        released=[claim.group_id for claim in claims.values()],
    )
    (claim,) = await harness.claim()
    by_url = {queued.url: queued for queued in claim.urls}
    await harness.finish(
        claim,
        failed(by_url[gone], "404 Not Found"),
        redirected(by_url[old], gone),
        redirected(by_url[older], old),
        fetched(by_url[fine]),
    )
    facts = await gathered(harness)
    assert (facts.broken.links, facts.broken.targets) == (4, 3)
    assert facts.broken.first[0] == BrokenTarget(gone, "404 Not Found", 2, [A, B])
    assert sorted(facts.broken.first[1:], key=lambda row: row.url) == [
        BrokenTarget(old, f"302 to {gone}: 404 Not Found", 1, [B]),
        BrokenTarget(older, f"302 to {old}: 404 Not Found", 1, [A]),
    ]
    statements = re.findall(r"^```sql\n(.*?)^```", STORE.read_text(), flags=re.M | re.S)
    (statement,) = (each for each in statements if "'redirected'" in each)
    rows = await harness.store.query(statement.rstrip().removesuffix(";"))
    ends = {(row["target"], row["source"], row["reason"]) for row in rows}
    assert ends == {(url, page, "404 Not Found") for url, page in ((gone, A), (gone, B), (old, B), (older, A))}


async def test_the_list_of_broken_links_is_bounded(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    pages = [f"{A}p{n}" for n in range(5)]
    await harness.finish(claim, fetched(claim.urls[0], pages))
    (claim,) = await harness.claim()
    gone = [f"{A}gone{n}" for n in range(MAX_BROKEN_TARGETS + 5)]
    await harness.finish(claim, *(fetched(queued, gone) for queued in claim.urls))
    while claims := await harness.claim():
        for claim in claims:
            await harness.finish(claim, *(failed(queued) for queued in claim.urls))
    facts = await gathered(harness)
    assert (facts.broken.links, facts.broken.targets) == (5 * len(gone), len(gone))
    assert len(facts.broken.first) == MAX_BROKEN_TARGETS
    assert {(row.pages, len(set(row.linked_from))) for row in facts.broken.first} == {(5, 3)}
    assert f"The table shows the {MAX_BROKEN_TARGETS} most linked of them" in render(facts).decode()


async def test_mirrors_have_their_evidence(harness: Harness) -> None:
    site = await harness.site_number("http://a.test")
    await harness.news(site, "http://a.test", robots(), main_site="http://b.test")
    facts = await gathered(harness)
    assert [(m.site, m.main_site, m.evidence, m.leads_to) for m in facts.mirrors] == [
        ("http://a.test", "http://b.test", "host", "http://b.test")
    ]
    assert facts.all_mirrors == 1


async def test_the_timeline_has_few_slots_and_none_for_a_gap(harness: Harness) -> None:
    """Two periods of a hundred seconds, a year apart."""
    site = await harness.site_number("http://a.test")
    year_s = 365 * 86400
    times = [NOW + at for at in range(100)] + [NOW + year_s + at for at in range(100)]
    statuses = [200, 301, 404, 503, None]
    rows = [request(site, "/", at, status=statuses[n % 5], error=None) for n, at in enumerate(times)]
    await harness.commit(requests=rows)
    line = (await gathered(harness)).timeline
    assert line.width_s == 5
    assert len(line.slots) == 40
    assert [sum(slot.requests[kind] for slot in line.slots) for kind in range(5)] == [40] * 5
    assert [sum(slot.requests) for slot in line.slots] == [5] * 40
    assert line.slots[0].number == NOW // 5


async def test_a_gap_is_one_dashed_line(harness: Harness) -> None:
    site = await harness.site_number("http://a.test")
    await harness.commit(requests=[request(site, "/", NOW), request(site, "/", NOW + 7200)])
    page = render(await gathered(harness)).decode()
    assert page.count('class="gap"') == 2  # of pages, of requests
    assert "nothing for 1 h 59 min" in page


async def test_the_report_says_why_an_audit_is_impossible(harness: Harness) -> None:
    facts = await gathered(harness)
    assert isinstance(facts.audit, AuditResult)
    await harness.reopen(settings={"identity": {}})
    facts = await gathered(harness)
    missing = "politeness, robots, fetch not recorded"
    assert facts.audit == f"run 2: its settings cannot be read ({missing}), so nothing can be proven"
    page = render(facts).decode()
    assert "The audit of the request log is impossible" in page
    assert "Settings</dt>" in page
