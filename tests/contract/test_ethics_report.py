"""The part of the audit report for an ethics board, on both kinds of store."""

from __future__ import annotations

import csv
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawler.audit.document import document
from crawler.audit.run_audit import AuditResult, run_audit
from crawler.audit.study import Contacts
from crawler.audit.totals import write_sites
from crawler.clock import SystemClock
from crawler.frontier.operator import Command
from crawler.model import Purpose
from crawler.reasons import EndCode, ErrorKind, Reason, ReasonCode, RequestError, RunEnd
from crawler.settings.loading import apply
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.contract.conftest import Opener
from tests.contract.visits import NOW, Harness, excluded, fetched, request

if TYPE_CHECKING:
    from crawler.store.sections import Store

SITES = [f"http://s{n}.test/" for n in range(10)]
BLOCKED = f"{SITES[9]}private"
SETTINGS = {
    "identity.contact": "me@example.org",
    "identity.operator": "A Lab",
    "identity.data_use": "deleted after a year",
    "scope.mode": "host",
    "scope.exclude": ["/private/"],
    "limits.max_depth": 2,
    "limits.max_pages_per_site": 50,
}
FACTS: dict[int, dict[str, Any]] = {0: {"index": False}, 1: {"directives": ("META robots: NoArchive",)}}


async def crawled(opener: Opener) -> Store:
    """Ten sites: the site n has n + 1 requests. Pages that ask for restraint, one forgotten, one site blocked."""
    harness = Harness(opener)
    await harness.reopen(settings=asdict(apply(Settings(), SETTINGS, source="test")))
    await harness.seed(*SITES, BLOCKED)
    for claim in await harness.claim():
        outcomes, asked = [], []
        for queued in claim.urls:
            n = int(queued.url[8])
            if queued.url == BLOCKED:
                outcomes.append(excluded(queued, "blocked: by the operator"))
                continue
            asked = [request(queued.site_id, f"/{k}", NOW + k, bytes=100) for k in range(n + 1)]
            outcomes.append(fetched(queued, body=None if n == 0 else b"<p>body", **FACTS.get(n, {})))
        await harness.commit(*outcomes, requests=asked, released=[claim.group_id])
    number = await harness.store.find(SITES[2])
    assert number is not None
    await harness.store.maintenance.forget([number], Reason(ReasonCode.FORGOTTEN, "the owner asked"))
    await harness.store.control.give(Command.BLOCK, "s9.test", SystemClock(), "the owner asked by mail")
    await harness.store.end_run(RunEnd(EndCode.MAX_PAGES, "9"), NOW)
    await harness.close()
    store = await opener()
    if isinstance(store, SqliteStore):
        path = Path(store.name)
        await store.close()
        return await SqliteStore.open(path, read_only=True)
    return store


async def audited(opener: Opener, sites: Path) -> AuditResult:
    store = await crawled(opener)
    try:
        await write_sites(sites, store)
        return await run_audit(store, NOW)
    finally:
        await store.close()


async def test_the_report_has_the_facts(opener: Opener, tmp_path: Path) -> None:
    found = await audited(opener, tmp_path / "sites.csv")
    study = found.study
    assert study.contacts == Contacts(sites=10, least=1, median=5, ninetieth=9, most=10)
    assert study.most_contacted[0] == ("http://s9.test", 10, 1000)
    assert [site.requests for site in study.most_contacted] == list(range(10, 0, -1))
    assert study.kept == (9, 8, 1, 0, 1, 1, 0, NOW, NOW, 0, None)
    assert [(each.site, each.urls) for each in study.forgotten] == [("http://s2.test", 1)]
    assert [tuple(each) for each in study.blocked] == [("http://s9.test", 1, 1)]
    text = " ".join(document(found).split())
    for said in (
        "The operator is A Lab.",
        "| the limit of pages is reached |",
        "The crawl began at 11 seeds, and followed links on the hosts of its seeds, at most 2 links away.",
        "Never addresses that match one of these: `/private/`.",
        "It fetched at most 50 pages of each site.",
        "Requests were sent to 10 sites, for robots.txt, pages and others: at least 1, at most 10.",
        "Half of the sites had 5 or fewer, nine in ten 9 or fewer.",
        "| http://s9.test | 10 | 1,000 |",
        "The store keeps 9 pages, 8 of them with their bodies.",
        "Bodies of such pages: 0.",
        "1 page said NOARCHIVE. The store has the bodies of 1,",
        "in the operator's words: deleted after a year",
        "write to the contact, which every request names: `me@example.org`.",
        "still blocked: 1.",
        "| http://s9.test | 1 | 1 |",
        "the owner asked | 1 |",
        "the owner asked by mail",
    ):
        assert said in text, said


async def test_requests_that_were_not_sent_are_counted_apart(opener: Opener, tmp_path: Path) -> None:
    harness = Harness(opener)
    await harness.reopen(settings=asdict(apply(Settings(), SETTINGS, source="test")))
    await harness.seed("http://a.test/", "http://typo.tset/")
    unsent = {"status": None, "bytes": 0, "error": RequestError(ErrorKind.DNS_NO_NAME)}
    refused = {"status": None, "bytes": 0, "error": RequestError(ErrorKind.CONNECT)}
    for claim in await harness.claim():
        (queued,) = claim.urls
        asked = [request(queued.site_id, "/robots.txt", NOW + k, purpose=Purpose.ROBOTS, **unsent) for k in range(4)]
        if "typo" not in queued.url:
            asked[1:] = [request(queued.site_id, "/", NOW + 9, **refused), request(queued.site_id, "/", NOW + 20)]
        await harness.commit(requests=asked, released=[claim.group_id])
    await harness.close()
    store = await opener()
    try:
        found = await run_audit(store, NOW)
        await write_sites(tmp_path / "sites.csv", store)
    finally:
        await store.close()
    with (tmp_path / "sites.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["site"]: row for row in csv.DictReader(file)}
    typo, known = rows["http://typo.tset"], rows["http://a.test"]
    assert (typo["requests"], typo["unsent"], typo["robots_requests"], typo["first_at"]) == ("0", "4", "0", "")
    assert (known["requests"], known["unsent"], known["robots_requests"]) == ("2", "1", "0")
    assert datetime.fromisoformat(known["first_at"]).timestamp() == NOW + 9
    assert found.study.contacts == Contacts(sites=1, least=2, median=2, ninetieth=2, most=2)
    assert [site.site for site in found.study.most_contacted] == ["http://a.test"]
    assert ("robots", "not sent", 5) in found.totals.answers
    assert (found.totals.requests, found.totals.unsent) == (2, 5)


async def test_every_site_has_a_row(opener: Opener, tmp_path: Path) -> None:
    await audited(opener, tmp_path / "sites.csv")
    with (tmp_path / "sites.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["site"]: row for row in csv.DictReader(file)}
    each = [rows[site[:-1]] for site in SITES]
    assert [(row["requests"], row["bytes"]) for row in each] == [(str(n + 1), str(100 * (n + 1))) for n in range(10)]
    assert [row["bodies_kept"] for row in each[:4]] == ["0", "1", "0", "1"]
    assert (each[2]["forgotten"], each[9]["blocked"]) == ("1", "1")
    assert (each[0]["noindex_pages"], each[1]["noarchive_pages"]) == ("1", "1")
