"""Every figure of the report, computed again from the rows of a store with more sites than the report lists."""

from __future__ import annotations

import asyncio
import math
import random
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from crawler.audit.run_audit import AuditResult
from crawler.formatting import size
from crawler.frontier.decide import Outcome, Queued
from crawler.model import Purpose, RobotsAction, RobotsCopy, State
from crawler.reasons import ErrorKind, Reason, ReasonCode, RequestError
from crawler.report.gather import ANSWERS, MAX_BROKEN_TARGETS, MAX_SITES, Facts, gather
from crawler.report.rendering import render
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness, deferred, excluded, fetched, redirected, request, robots
from tests.records import replace

SITES = 260
Rows = list[dict[str, Any]]


def copy_for(n: int) -> RobotsCopy:
    """Of ten sites, one has no usable robots.txt, one was given up, one answers 403, and the others have a file."""
    if n % 10 == 7:
        return deferred(NOW, NOW + 60)
    if n % 10 == 8:
        return RobotsCopy(RobotsAction.GIVEN_UP, "503", NOW, NOW + 1000)
    if n % 10 == 9:
        return RobotsCopy(RobotsAction.RESTRICTED, "403", NOW, NOW + 1000)
    return robots(b"Disallow: /x\n" if n % 4 == 0 else b"User-agent: *\nDisallow: /x\n")


def outcome_of(queued: Queued, n: int, chance: random.Random) -> Outcome:
    """The outcome of a URL of the site with this number."""
    action, place = copy_for(n).action, chance.random()
    if action is RobotsAction.GIVEN_UP:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.ROBOTS_GIVEN_UP, "503"))
    if action is RobotsAction.RESTRICTED or place < 0.15:
        return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.ROBOTS, "line 2, Disallow: /x (strict)"))
    if place < 0.25:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.NOT_FOUND, "404"))
    if place < 0.3:
        return redirected(queued, f"http://s{chance.randrange(SITES):03}.test/{chance.randrange(9)}")
    if place < 0.35:
        return excluded(queued, "type: content type image/png is not wanted")
    site = queued.url.rsplit("/", 1)[0]
    links = [f"{site}/{chance.randrange(8)}" for _ in range(5)]
    links += [f"http://s{chance.randrange(SITES):03}.test/{chance.randrange(4)}" for _ in range(2)]
    made = fetched(queued, dict.fromkeys(links), body=b"x" * chance.randrange(1, 9000), max_depth=2)
    assert made.page is not None
    code = chance.choices(
        [ReasonCode.FETCHED, ReasonCode.NOINDEX, ReasonCode.WITHHELD, ReasonCode.UNREAD], [8, 2, 1, 1]
    )
    facts = replace(made.page.facts, index=code == [ReasonCode.FETCHED])
    page = replace(made.page, facts=facts, content_type=f"text/t{chance.randrange(20):02}")
    return replace(made, page=page, reason=Reason(code[0], "200"))


async def crawl(harness: Harness) -> None:
    """Three rounds over all sites; each request is in the log."""
    chance = random.Random(5)
    harness.max_depth = 2
    await harness.seed(*(f"http://s{n:03}.test/" for n in range(SITES)))
    for round_number in range(3):
        claims = await harness.claim(SITES, 5)
        for claim in claims:
            n = int(claim.group[1:4])
            site_id = claim.urls[0].site_id
            copy = copy_for(n)
            delay_s = float(n) if n % 3 == 0 else None
            number = await harness.news(site_id, f"http://s{n:03}.test", copy, crawl_delay_s=delay_s)
            log = [
                request(site_id, "/robots.txt", NOW + n, purpose=Purpose.ROBOTS, retry_after_s=5.0 * (n % 5) or None)
            ]
            outcomes = []
            if copy.action is not RobotsAction.DEFER:
                outcomes = [outcome_of(queued, n, chance) for queued in claim.urls]
            for queued, outcome in zip(claim.urls, outcomes, strict=False):
                if outcome.state in (State.FETCHED, State.REDIRECTED) or outcome.reason.code is ReasonCode.NOT_FOUND:
                    at = NOW + 400 * round_number + n
                    path = queued.url.removeprefix(f"http://s{n:03}.test")
                    status = chance.choice([*range(200, 212), 404, 503, None])
                    error = None if status else RequestError(ErrorKind.TIMEOUT, "no answer in time")
                    ended = at + chance.random() * 3
                    log.append(
                        request(site_id, path, at, finished_at=ended, status=status, error=error, robots_id=number)
                    )
            await harness.commit(*outcomes, requests=log, released=[claim.group_id])


@dataclass(frozen=True)
class Seen:
    """The facts of the report, its text, and all rows of the store."""

    facts: Facts
    html: str
    urls: Rows
    pages: Rows
    requests: Rows
    sites: Rows
    links: Rows
    robots: Rows


async def gathered(harness: Harness) -> Facts:
    await harness.reopen(settings=asdict(Settings()))
    await crawl(harness)
    facts = await gather(harness.store, "crawl.db", NOW + 1e6)
    await harness.close()
    return facts


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    path = tmp_path_factory.mktemp("figures") / "crawl.db"
    facts = asyncio.run(gathered(Harness(lambda: SqliteStore.open(path))))
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row

        def rows(statement: str) -> Rows:
            return [dict(row) for row in database.execute(statement)]

        return Seen(
            facts,
            render(facts).decode(),
            rows("SELECT u.*, s.site FROM urls_by_id u JOIN sites_by_id s ON s.site_id = u.site_id"),
            rows("SELECT * FROM pages_by_id"),
            rows("SELECT r.*, s.site FROM requests_by_id r JOIN sites_by_id s ON s.site_id = r.site_id"),
            rows("SELECT * FROM sites_by_id"),
            rows(
                "SELECT l.*, a.site AS source_site, b.site AS target_site FROM links_by_id l "
                "JOIN sites_by_id a ON a.site_id = l.source_site_id JOIN sites_by_id b ON b.site_id = l.target_site_id"
            ),
            rows("SELECT s.site, r.* FROM sites_by_id s JOIN robots_by_id r ON r.robots_copy = s.robots_copy"),
        )


def largest(counted: Counter[Any]) -> dict[Any, int]:
    """The first twelve groups, and the sum of the others."""
    first = dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:12])
    rest = counted.total() - sum(first.values())
    return first | ({"all others": rest} if rest else {})


def test_the_store_has_more_sites_than_the_report_lists(seen: Seen) -> None:
    assert len(seen.sites) > MAX_SITES == len(seen.facts.sites)
    assert f"The table shows {MAX_SITES} of {len(seen.sites)} sites" in seen.html


def test_the_overview(seen: Seen) -> None:
    facts = seen.facts
    assert facts.counts.states == dict.fromkeys(State, 0) | Counter(row["state"] for row in seen.urls)
    assert facts.counts.pages == len(seen.pages)
    assert facts.counts.sites == len(seen.sites)
    assert facts.counts.links == len(seen.links)
    assert facts.totals.requests == facts.counts.requests == len(seen.requests)
    assert facts.totals.bytes == sum(row["bytes"] for row in seen.requests)
    assert facts.totals.sites == len({row["site"] for row in seen.requests})
    assert facts.totals.requests_per_run == Counter(row["run_id"] for row in seen.requests)
    assert facts.fetched_sites == len({row["site"] for row in seen.urls if row["state"] == State.FETCHED})
    first = min(row["started_at"] for row in seen.requests)
    assert facts.timeline.active_s == pytest.approx(max(row["finished_at"] for row in seen.requests) - first)
    for figure in (len(seen.pages), len(seen.urls), len(seen.links), len(seen.requests)):
        assert f"<b>{figure:,}</b>" in seen.html
    assert f"<b>{size(facts.totals.bytes)}</b>" in seen.html
    assert f"… and {sum(facts.seed_outcomes.values()) - 10} more" in seen.html


def test_the_time_line(seen: Seen) -> None:
    width_s = seen.facts.timeline.width_s
    pages = Counter(int(row["fetched_at"] // width_s) for row in seen.pages)
    answers: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for row in seen.requests:
        answer = "no answer" if row["status"] is None else f"{row['status'] // 100}xx"
        answers[int(row["started_at"] // width_s)][answer] += 1
    slots = {slot.number: slot for slot in seen.facts.timeline.slots}
    assert {n: slot.pages for n, slot in slots.items() if slot.pages} == pages
    assert {n: [answers[n][answer] for answer in ANSWERS] for n in slots} == {n: s.requests for n, s in slots.items()}


def test_the_pages(seen: Seen) -> None:
    facts = seen.facts
    depths: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for row in seen.urls:
        depths[row["depth"]][row["state"]] += 1
    assert facts.depths == depths
    types = Counter(row["content_type"] for row in seen.pages)
    assert len(types) > 12
    assert dict(facts.types) == largest(types)
    asked = [row for row in seen.requests if row["purpose"] == "page"]
    answers = largest(Counter(str(row["status"] or row["error_kind"]) for row in asked))
    assert {"no answer in time" if what == "timeout" else what: n for what, n in answers.items()} == dict(facts.answers)
    assert sum(n for _, n in facts.answers) == len(asked)
    assert facts.page_bytes == sum(row["body_bytes"] for row in seen.pages)
    reasons = Counter(row["reason_code"] for row in seen.urls if row["state"] == State.FETCHED)
    assert (facts.noindex, facts.withheld) == (reasons["noindex"], reasons["withheld"])
    assert f"{facts.noindex} of {len(seen.pages)} pages ask not to be indexed" in seen.html


@pytest.mark.parametrize("quantity", ["sizes", "answer_times"])
def test_the_distributions(seen: Seen, quantity: str) -> None:
    asked = [row for row in seen.requests if row["purpose"] == "page" and row["status"] is not None]
    times = sorted(row["finished_at"] - row["started_at"] for row in asked)
    values = sorted(row["body_bytes"] for row in seen.pages) if quantity == "sizes" else times
    found = getattr(seen.facts, quantity)
    ends = [*found.bounds[1:], math.inf]
    assert list(found.counts) == [
        sum(low <= value < high for value in values) for low, high in zip(found.bounds, ends, strict=True)
    ]
    assert found.total == len(values)
    assert found.maximum == values[-1]
    assert list(found.quantiles) == [values[math.ceil(share * len(values)) - 1] for share in (0.5, 0.9, 0.99)]


def test_the_reasons(seen: Seen) -> None:
    for state, groups in ((State.EXCLUDED, seen.facts.excluded), (State.FAILED, seen.facts.failed)):
        rows = [row for row in seen.urls if row["state"] == state]
        assert {group.code: group.urls for group in groups} == Counter(row["reason_code"] for row in rows)
        assert f">{100 * groups[0].urls / len(rows):.0f} %<" in seen.html


def test_the_broken_links(seen: Seen) -> None:
    """Redirects lead on to the URL at their end."""
    by_id = {row["url_id"]: row for row in seen.urls}

    def is_broken(url_id: int) -> bool:
        steps = 0
        while by_id[url_id]["state"] == State.REDIRECTED and steps < 50:
            url_id, steps = by_id[url_id]["target_id"], steps + 1
        return bool(by_id[url_id]["state"] == State.FAILED)

    broken = Counter(row["target_id"] for row in seen.links if is_broken(row["target_id"]))
    found = seen.facts.broken
    assert (found.links, found.targets) == (broken.total(), len(broken))
    assert [row.pages for row in found.first] == sorted(broken.values(), reverse=True)[:MAX_BROKEN_TARGETS]


def test_robots_txt(seen: Seen) -> None:
    """URLs of sites that were given up, or whose robots.txt has no usable answer, are not disallowed."""
    facts = seen.facts
    assert dict(facts.robots) == Counter(row["action"] for row in seen.robots)
    rows = [row for row in seen.urls if row["state"] == State.EXCLUDED and row["reason_code"] == "robots"]
    by_site = Counter(row["site"] for row in rows)
    assert sum(n for _, n in facts.disallowed) == len(rows)
    assert dict(facts.disallowed)["all others"] == len(rows) - sum(sorted(by_site.values(), reverse=True)[:12])
    assert all(by_site[site] == n for site, n in facts.disallowed[:-1])
    silent = {f"http://s{n:03}.test" for n in range(SITES) if n % 10 in (7, 8)}
    assert not silent & by_site.keys()
    (given_up,) = (group for group in facts.failed if group.code == ReasonCode.ROBOTS_GIVEN_UP)
    assert given_up.urls == sum(row["site"] in silent and row["state"] == State.FAILED for row in seen.urls)
    doubtful = {f"http://s{n:03}.test" for n in range(0, SITES, 4)} & {
        row["site"] for row in seen.robots if row["action"] == "parse"
    }
    assert facts.all_doubtful == len(doubtful)


def test_the_sites(seen: Seen) -> None:
    sent = Counter(row["site"] for row in seen.requests)
    fetched_of = Counter(row["site"] for row in seen.urls if row["state"] == State.FETCHED)
    least = sorted((fetched_of[row["site"]] for row in seen.sites), reverse=True)[MAX_SITES - 1]
    for site in seen.facts.sites:
        urls = [row for row in seen.urls if row["site"] == site.site]
        counted = Counter(row["state"] for row in urls)
        assert [getattr(site, state) for state in State] == [counted[state] for state in State]
        assert fetched_of[site.site] >= least
        assert site.requests == sent[site.site]
        assert site.bytes == sum(row["bytes"] for row in seen.requests if row["site"] == site.site)
        assert site.disallowed == sum(row["reason_code"] == "robots" for row in urls)
        times = [
            row["finished_at"] - row["started_at"]
            for row in seen.requests
            if row["site"] == site.site and row["purpose"] == "page" and row["status"] is not None
        ]
        assert site.mean_s == (pytest.approx(sum(times) / len(times)) if times else None)
        assert site.links_in == sum(
            row["target_site"] == site.site and row["source_site"] != site.site for row in seen.links
        )


def test_the_audit(seen: Seen) -> None:
    assert isinstance(seen.facts.audit, AuditResult)
    assert sum(count.violations for count in seen.facts.audit.counts.values()) == seen.facts.audit.violation_count
    assert f"{seen.facts.audit.violation_count:,} violation" in seen.html
