"""The audit over a store: what it reads, that it believes no verdict in it, and what it says."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from crawler.audit import log_reader
from crawler.audit.checks import Check
from crawler.audit.document import document, write_report
from crawler.audit.rendering import render
from crawler.audit.run_audit import AuditResult, run_audit
from crawler.errors import UsageError
from crawler.model import Preference
from crawler.settings.keys import KEYS
from crawler.settings.loading import settings_from
from crawler.settings.settings import Settings
from crawler.store.keys import url_number
from crawler.store.sqlite.store import SqliteStore

BODY = b"User-agent: *\nDisallow: /closed/\nCrawl-delay: 3\n"
START = 1_700_000_000.0
DOCUMENT = Path(__file__).parents[3] / "docs/audit.md"


class Doctored:
    """A store to be filled by hand; times are seconds from the beginning of its run."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.path = path

    def run(self, settings: Settings, *, at: float = 0.0, end: float | None = 1000.0) -> None:
        self.db.execute(
            "INSERT INTO run (started_at, finished_at, crawler_version, settings) VALUES (?, ?, '9.9', ?)",
            (START + at, None if end is None else START + end, json.dumps(asdict(settings))),
        )
        self.db.execute(
            "INSERT INTO worker (run_id, host, pid, started_at, seen_at) SELECT max(id), 'here', 1, ?1, ?1 FROM run",
            (START + at,),
        )

    def site(self, name: str) -> int:
        self.db.execute("INSERT INTO politeness_group (name) VALUES (?)", (name,))
        self.db.execute(
            "INSERT INTO site (name, host, registered_domain, group_id) "
            "SELECT ?1, ?1, ?1, max(id) FROM politeness_group",
            (name,),
        )
        return int(self.db.execute("SELECT max(id) FROM site").fetchone()[0])

    def robots(self, site: int, at: float, body: bytes = BODY, run: int = 1) -> None:
        """A robots.txt asked for and put in force, for ten minutes."""
        self.request(site, at, "/robots.txt", "robots")
        digest = hashlib.sha256(body).digest()
        self.db.execute("INSERT INTO robots_text (sha256, body) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, body))
        self.db.execute(
            "INSERT INTO robots_copy (site_id, text_id, action, status, fetched_at, valid_from, valid_until, run_id,"
            " answered_by, headers) SELECT s.id, t.id, 'parse', '200', ?2, ?2, ?2 + 600, ?4, s.name || '/robots.txt',"
            """ '[["Cache-Control", "max-age=600"]]' FROM robots_text t, site s WHERE s.id = ?1 AND sha256 = ?3""",
            (site, START + at + 0.1, digest, run),
        )

    def request(self, site: int, at: float, path: str, purpose: str = "page", **more: object) -> None:
        row = {"run_id": 1, "site_id": site, "path": path, "purpose": purpose, "started_at": START + at}
        row |= {"finished_at": START + at + 0.1, "status": 200, "bytes": 1, "robots_id": 1, "verdict_line": 1, **more}
        self.db.execute(f"INSERT INTO request ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
        self.db.execute("UPDATE worker SET requests = requests + 1 WHERE run_id = ?", (row["run_id"],))


@pytest.fixture
async def doctored(db_path: Path) -> Doctored:
    await (await SqliteStore.open(db_path)).close()
    return Doctored(db_path)


def settings(values: Mapping[str, object] | None = None) -> Settings:
    return settings_from({"identity.contact": "who@example.org", **(values or {})}, source="test")


async def audited(store: Doctored) -> AuditResult:
    opened = await SqliteStore.open(store.path, read_only=True)
    try:
        return await run_audit(opened, START + 2000)
    finally:
        await opened.close()


def shown(found: AuditResult) -> str:
    out = StringIO()
    render(found, Console(file=out, width=200))
    return out.getvalue()


async def test_an_empty_log(doctored: Doctored) -> None:
    found = await audited(doctored)
    assert found.violation_count == 0
    assert "log is empty" in shown(found)
    assert "log is empty" in document(found)


async def test_an_obedient_crawl(doctored: Doctored) -> None:
    doctored.run(settings())
    for host in "ab":
        site = doctored.site(f"http://{host}.test")
        doctored.robots(site, 1)
        doctored.request(site, 4.1, "/")
        doctored.request(site, 8, "/x")
    found = await audited(doctored)
    assert found.violations == []
    assert {c.value: t.judged for c, t in found.counts.items()} == {
        "log": 6, "identity": 6, "robots first": 4, "robots fresh": 4, "permission": 4, "preference": 0, "use": 0,
        "overlap": 4, "pause": 4, "retry-after": 0, "rests": 0, "hours": 0, "pages": 0,
        "operator": 0, "sample": 0,
    }  # fmt: skip
    assert found.limits == []


async def test_requests_without_an_address_to_connect_to_are_told_apart(doctored: Doctored) -> None:
    doctored.run(settings())
    for host, kinds in {"a": ["dns_no_name"], "b": ["dns", "address"], "c": ["connect"], "d": [None]}.items():
        site = doctored.site(f"http://{host}.test")
        for n, kind in enumerate(kinds):
            status = None if kind else 200
            doctored.request(
                site, 1 + 1000 * n, "/robots.txt", "robots", status=status, error_kind=kind, robots_id=None
            )
    found = await audited(doctored)
    said = "3 further requests were not sent: 2 sites had no address that the crawler may connect to"
    assert said in shown(found)
    assert f"{said}." in document(found)
    assert (found.as_json()["unsent"], found.as_json()["sites_without_address"]) == (3, 2)


@pytest.mark.parametrize(
    ("purpose", "source", "visited_at", "found"),
    [
        (["train-ai"], "META", None, ["http://a.test/x"]),
        (["search", "train-ai"], "header", 900, ["http://a.test/x"]),
        (["search"], "META", None, []),
        ([], "META", None, []),
        (["train-ai"], "META", 1500, []),  # a later visit has recorded the preference
    ],
)
async def test_a_page_that_is_kept_against_its_preference(
    doctored: Doctored, purpose: list[str], source: str, visited_at: float | None, found: list[str]
) -> None:
    doctored.run(settings({"identity.purpose": purpose}))
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, 4.1, "/x")
    number = url_number(site, "/x", 0)
    said = [Preference("noai", "train-ai", "n", source, None, "META robots: noai")._asdict()]
    seen_at = None if visited_at is None else START + visited_at
    doctored.db.execute("INSERT INTO url (id, path, state, depth) VALUES (?, '/x', 'fetched', 0)", (number,))
    doctored.db.execute("INSERT INTO body (id, sha256, data) VALUES (1, x'00', x'00')")
    doctored.db.execute("INSERT INTO preference_set (id, said) VALUES (7, ?)", (json.dumps(said),))
    doctored.db.execute(
        "INSERT INTO page (url_id, status, content_type, fetched_at, last_seen_at, noindex, nofollow, body_id,"
        " body_bytes, preferences_id) VALUES (?, 200, '', ?, ?, 0, 0, 1, 1, 7)",
        (number, START + 4.2, seen_at),
    )
    violations = (await audited(doctored)).violations
    assert [violation.url for violation in violations] == found
    assert {violation.check for violation in violations} <= {Check.PREFERENCE}


@pytest.mark.parametrize(
    ("level", "by_header", "kept", "said"),
    [
        ("immediate", False, {"body_id": 1, "title": "x"}, "kept: body, title"),
        ("immediate", True, {"title": "x"}, "kept: title; it states Content-Signal: use=immediate"),
        ("immediate", False, {}, ""),
        ("reference", False, {"body_id": 1, "title": "x"}, "exports hand out its body"),
        ("reference", True, {"body_id": 1, "directives": '["header: noarchive, use=reference"]'}, ""),
        ("full", True, {"body_id": 1}, ""),
    ],
)
async def test_a_page_of_which_more_is_kept_than_its_use_allows(
    doctored: Doctored, level: str, by_header: bool, kept: dict[str, object], said: str
) -> None:
    doctored.run(settings())
    site, signal = doctored.site("http://a.test"), f"Content-Signal: use={level}"
    doctored.robots(site, 1, b"" if by_header else f"User-agent: *\n{signal}\n".encode())
    doctored.request(site, 4.1, "/x")
    number = url_number(site, "/x", 0)
    stated = [Preference("content-signal", "use", level, "header", None, signal)._asdict()]
    doctored.db.execute("INSERT INTO url (id, path, state, depth) VALUES (?, '/x', 'fetched', 0)", (number,))
    doctored.db.execute("INSERT INTO preference_set (id, said) VALUES (7, ?)", (json.dumps(stated),))
    page = {"url_id": number, "status": 200, "content_type": "", "fetched_at": START + 4.15, "noindex": 0}
    page |= {"nofollow": 0, "body_bytes": 1, "preferences_id": 7 if by_header else None, **kept}
    marks = ", ".join("?" * len(page))
    doctored.db.execute(f"INSERT INTO page ({', '.join(page)}) VALUES ({marks})", [*page.values()])
    found = await audited(doctored)
    assert [(each.check, each.url, each.done) for each in found.violations] == (
        [(Check.USE, "http://a.test/x", said)] if said else []
    )
    assert found.counts[Check.USE].judged == (level != "full")
    if said and not by_header:
        assert (found.violations[0].line, found.violations[0].rule) == (2, signal)


@pytest.mark.parametrize(
    ("runs", "judged", "found"),
    [
        ([{"limits.max_pages_per_site": 2}], 1, 1),
        ([{"limits.max_pages_per_site": 3}], 1, 0),
        ([{"limits.max_pages_per_site": 2}, {"limits.max_pages_per_site": 3}], 1, 0),
        ([{"limits.max_pages_per_site": 2}, {}], 0, 0),
        ([{"site": {"a.test": {"max_pages": 2}}}], 1, 1),
        ([{"site": {"a.test": {"max_pages": 0}}, "limits.max_pages_per_site": 2}], 0, 0),
        ([{"site": {"b.test": {"max_pages": 2}}}], 0, 0),
    ],
)
async def test_a_site_that_gave_more_pages_than_its_limit(
    doctored: Doctored, runs: list[dict[str, object]], judged: int, found: int
) -> None:
    """A revisit is not limited: a page that an earlier request did not bring is not counted."""
    for values in runs:
        doctored.run(settings(values))
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, 4.1, "/3", status=404)
    for n in range(4):
        doctored.request(site, 8.1 + 4 * n, f"/{n}")
        number = url_number(site, f"/{n}", 0)
        doctored.db.execute("INSERT INTO url (id, path, state, depth) VALUES (?, ?, 'fetched', 0)", (number, f"/{n}"))
        doctored.db.execute(
            "INSERT INTO page (url_id, status, content_type, fetched_at, noindex, nofollow, body_bytes)"
            " VALUES (?, 200, '', ?, 0, 0, 1)",
            (number, START + 9.0),
        )
    result = await audited(doctored)
    said = [(each.check, each.url, each.done) for each in result.violations]
    assert said == [(Check.PAGES, "http://a.test", "3 pages at a first visit")] * found
    assert result.counts[Check.PAGES].judged == judged


async def test_the_operators_orders_are_held_against_the_log(doctored: Doctored) -> None:
    doctored.run(settings())
    doctored.run(settings())
    doctored.db.execute("UPDATE run SET settings = json_set(settings, '$.auxiliary_run', 'rup') WHERE id = 2")
    for host in "ab":
        site = doctored.site(f"http://{host}.test:81")
        doctored.robots(site, 1)
        for n in range(10, 100, 10):
            doctored.request(site, n, f"/{n}")
    doctored.request(1, 105, "/errand", run_id=2)
    before = (await audited(doctored)).sha256
    doctored.db.executemany(
        "INSERT INTO control (asked_at, command, name, done_at) VALUES (?, ?, ?, ?)",
        [
            (START + at, command, name, None if done_at is None else START + done_at)
            for at, command, name, done_at in [
                (15, "block", "a.test", 20.5),
                (35, "unblock", "a.test", 35.2),
                (55, "block", "http://b.test:81", 59),
                (65, "unblock", "http://b.test:81", None),
                (79.6, "pause", "", 79.7),
                (89.4, "pause", "", 89.5),
                (95, "resume", "", 96),
                (104, "pause", "", None),
            ]
        ],
    )
    found = await audited(doctored)
    assert [(violation.check, violation.url) for violation in found.violations] == [
        (Check.OPERATOR, "http://a.test:81/30"),
        (Check.OPERATOR, "http://b.test:81/60"),
        (Check.OPERATOR, "http://a.test:81/90"),
        (Check.OPERATOR, "http://b.test:81/90"),
    ]
    assert (found.counts[Check.OPERATOR].judged, found.counts[Check.OPERATOR].violations) == (20, 4)
    assert "no request to a.test, blocked since 2" in shown(found)
    assert "sent 9.5 s later" in shown(found)
    assert found.sha256 != before


async def test_recorded_verdicts_are_not_believed(doctored: Doctored) -> None:
    """The doctored rows say that line 1 of a good copy allowed it, and the group's pace that it was time."""
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, 4.0, "/closed/x")
    found = await audited(doctored)
    assert [violation.check for violation in found.violations] == [Check.PERMISSION, Check.PAUSE]
    forbidden, early = found.violations
    assert (forbidden.line, forbidden.rule) == (2, "Disallow: /closed/")
    assert (early.required, early.done) == ("3.000 s after the request before it (Crawl-delay)", "2.900 s")
    text = shown(found)
    assert "line 2: Disallow: /closed/" in text
    assert hashlib.sha256(BODY).hexdigest() in text
    assert "2 violations" in text


async def test_recorded_ends_are_not_believed(doctored: Doctored) -> None:
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, 700, "/")
    assert [violation.check for violation in (await audited(doctored)).violations] == [Check.FRESH]
    doctored.db.execute("UPDATE robots_copy SET valid_until = valid_until + 1000")
    found = await audited(doctored)
    assert [violation.check for violation in found.violations] == [Check.LOG, Check.FRESH]
    assert "http://a.test/robots.txt" in shown(found)
    assert "the recorded end is 1000.000 s later" in document(found)


async def test_a_redirect_to_another_site(doctored: Doctored) -> None:
    """The sites are of two politeness groups, so their requests are judged far from each other."""
    doctored.run(settings(), at=-1)
    asked, there = doctored.site("http://z.test"), doctored.site("http://a.test")
    doctored.request(asked, 0, "/robots.txt", "robots", status=301, location="//a.test/shared")
    doctored.robots(there, -1)
    doctored.robots(asked, 3, b"")
    doctored.db.execute(
        "UPDATE request SET site_id = ?, path = '/shared', for_site_id = ? WHERE id = 3", (there, asked)
    )
    doctored.db.execute("UPDATE robots_copy SET answered_by = 'http://a.test/shared' WHERE site_id = ?", (asked,))
    doctored.request(asked, 5, "/")
    assert (await audited(doctored)).violations == []
    doctored.db.execute("UPDATE request SET path = '/secret' WHERE id = 3")
    found = (await audited(doctored)).violations
    assert [(v.check, v.url) for v in found] == [
        (Check.LOG, "http://z.test/robots.txt"), (Check.PERMISSION, "http://a.test/secret"),
    ]  # fmt: skip
    doctored.db.execute("UPDATE request SET for_site_id = 77 WHERE id = 3")
    assert (Check.PERMISSION, "http://a.test/secret") in [
        (v.check, v.url) for v in (await audited(doctored)).violations
    ]


async def test_a_version_from_a_path_elsewhere_serves_other_sites_too(doctored: Doctored) -> None:
    doctored.run(settings())
    asked, there, other = (doctored.site(f"http://{name}.test") for name in "zab")
    doctored.robots(there, 0)
    doctored.request(asked, 1, "/robots.txt", "robots", status=301, location="//a.test/shared")
    doctored.robots(asked, 5, b"")
    (hop,) = doctored.db.execute("SELECT max(id) FROM request").fetchone()
    doctored.db.execute(
        "UPDATE request SET site_id = ?, path = '/shared', for_site_id = ? WHERE id = ?", (there, asked, hop)
    )
    doctored.db.execute("UPDATE robots_copy SET answered_by = 'http://a.test/shared' WHERE site_id = ?", (asked,))
    doctored.request(other, 20, "/robots.txt", "robots", status=301, location="//a.test/shared")
    doctored.db.execute(
        "INSERT INTO robots_copy (site_id, text_id, action, status, fetched_at, valid_from, valid_until, run_id,"
        " answered_by, headers) SELECT ?, text_id, action, status, 21 + ?, 21 + ?, valid_until, run_id, answered_by,"
        " '[]' FROM robots_copy WHERE site_id = ?",
        (other, START, START, asked),
    )
    doctored.request(other, 25, "/")
    assert (await audited(doctored)).violations == []

    async def found(change: str) -> list[tuple[Check, str]]:
        columns = "action, text_id, valid_from, valid_until, answered_by"
        before = doctored.db.execute(f"SELECT {columns} FROM robots_copy WHERE site_id = ?", (other,)).fetchone()
        doctored.db.execute(f"UPDATE robots_copy SET {change} WHERE site_id = ?", (other,))
        violations = (await audited(doctored)).violations
        doctored.db.execute(f"UPDATE robots_copy SET ({columns}) = (?, ?, ?, ?, ?) WHERE site_id = ?", (*before, other))
        return [(violation.check, violation.url) for violation in violations]

    assert await found("valid_until = valid_until + 5") == [(Check.LOG, "http://b.test/robots.txt")]
    assert (Check.LOG, "http://b.test/robots.txt") in await found("action = 'free', text_id = NULL")
    assert (Check.LOG, "http://b.test/robots.txt") in await found("answered_by = 'http://a.test/other'")
    assert await found(f"valid_from = {START + 15.0}") != [], "before the redirect"


async def test_a_redirect_to_the_robots_of_another_site(doctored: Doctored) -> None:
    """The version there serves both sites, and is requested once."""
    doctored.run(settings())
    asked, there = doctored.site("http://z.test"), doctored.site("http://a.test")
    doctored.robots(there, 0)
    doctored.request(asked, 1, "/robots.txt", "robots", status=301, location="//a.test/robots.txt")
    doctored.db.execute(
        "INSERT INTO robots_copy (site_id, text_id, action, status, fetched_at, valid_from, valid_until, run_id,"
        " answered_by, headers) SELECT ?, text_id, action, status, 2 + ?, 2 + ?, valid_until, run_id,"
        " 'http://a.test/robots.txt', '[]' FROM robots_copy",
        (asked, START, START),
    )
    doctored.request(asked, 5, "/")
    assert (await audited(doctored)).violations == []
    doctored.db.execute("UPDATE robots_copy SET valid_until = valid_until + 5 WHERE site_id = ?", (asked,))
    (found,) = (await audited(doctored)).violations
    assert (found.check, found.url) == (Check.LOG, "http://z.test/robots.txt")


async def test_headers_that_cannot_be_read(doctored: Doctored) -> None:
    doctored.run(settings())
    doctored.robots(doctored.site("http://a.test"), 1)
    for headers in ("", "{}x", "[1]", "7"):
        doctored.db.execute("UPDATE robots_copy SET headers = ?", (headers,))
        with pytest.raises(UsageError, match=r"robots.txt of http://a.test cannot be read"):
            await audited(doctored)


async def test_a_request_taken_out_of_the_log(doctored: Doctored) -> None:
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, 5, "/")
    doctored.request(site, 10, "/x")
    doctored.db.execute("DELETE FROM request WHERE id = 2")
    found = (await audited(doctored)).violations
    assert [(each.check, each.done) for each in found] == [(Check.LOG, "1 of 3 missing"), (Check.LOG, "the log has 2")]


async def test_a_request_taken_from_the_end_of_the_log(doctored: Doctored) -> None:
    """No number lacks then; but the worker counted it."""
    doctored.run(settings())
    doctored.robots(site := doctored.site("http://a.test"), 1)
    doctored.request(site, 5, "/")
    doctored.run(settings())
    doctored.request(site, 10, "/x", run_id=2)
    assert (await audited(doctored)).violations == []
    doctored.db.execute("DELETE FROM request WHERE id = 3")
    (found,) = (await audited(doctored)).violations
    assert (found.check, found.done) == (Check.LOG, "the log has 0")
    assert "of run 2 " in found.required


async def test_a_request_without_its_site(doctored: Doctored) -> None:
    doctored.run(settings())
    doctored.request(77, 5, "/")
    (found,) = (await audited(doctored)).violations
    assert (found.check, found.required) == (Check.LOG, "a site for every request")


async def test_a_text_that_was_changed(doctored: Doctored) -> None:
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, 5, "/closed/x")
    doctored.db.execute("UPDATE robots_text SET body = ?", (b"User-agent: *\nDisallow:\n",))
    found = await audited(doctored)
    assert [violation.check for violation in found.violations] == [Check.LOG, Check.PERMISSION]


async def test_slices_hang_together(doctored: Doctored, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state at the end of one slice counts in the next."""
    monkeypatch.setattr(log_reader, "_EVENTS_PER_SLICE", 1)
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, 5, "/", finished_at=START + 9)
    doctored.request(site, 8, "/x")
    (found,) = (await audited(doctored)).violations
    assert (found.check, found.before) == (Check.OVERLAP, "http://a.test/")


async def test_the_order_of_the_log_is_that_of_time(doctored: Doctored) -> None:
    """Rows are written when answers end; a request is judged by when it began."""
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.request(site, 8, "/x")
    doctored.request(site, 5, "/", finished_at=START + 9)
    doctored.robots(site, 1)
    assert [violation.check for violation in (await audited(doctored)).violations] == [Check.OVERLAP]


async def test_each_run_by_its_own_settings(doctored: Doctored) -> None:
    hurried = {"politeness.delay": 0, "politeness.slow_factor": 0}
    doctored.run(settings(hurried), end=50)
    doctored.run(settings({"limits.concurrency": 7}), at=100, end=None)
    site = doctored.site("http://a.test")
    doctored.robots(site, 1, b"")
    doctored.request(site, 1.2, "/")
    doctored.request(site, 101, "/x", run_id=2)
    doctored.request(site, 102, "/y", run_id=2)
    found = await audited(doctored)
    assert [(v.check, v.run, v.url[-1]) for v in found.violations] == [(Check.PAUSE, 2, "y")]
    (limit,) = (limit for limit in found.limits if "Run 2 has no recorded end" in limit)
    assert "(7 at most in each)" in limit, "requests that the next run repeats"
    console = Console(file=(printed := StringIO()), width=200)
    render(found, console)
    assert " logged requests to 1 site\n" in printed.getvalue()


async def test_killed_runs_are_told_of_in_one_line(doctored: Doctored) -> None:
    for number in range(1, 13):
        doctored.run(settings(), at=100.0 * number, end=100.0 * number + 1 if number == 5 else None)
    (limit,) = [limit for limit in (await audited(doctored)).limits if "no recorded end" in limit]
    assert limit.startswith("Runs 1 to 4 and 6 to 12 have no recorded end: killed, or still running.")


async def test_runs_of_equal_settings_are_described_once(doctored: Doctored) -> None:
    slow = settings({"politeness.delay": 9})
    for number in range(40):
        doctored.run(slow if number == 20 else settings(), at=100 * number, end=100 * number + 50)
    lines = document(await audited(doctored)).splitlines()
    assert sum(line.startswith("- Robot: ") for line in lines) == 2
    assert [line for line in lines if line.startswith("**Run")] == ["**Runs 1 to 20, 22 to 40**", "**Run 21**"]
    assert sum(line.startswith(f"| {number} | 20") for line in lines for number in range(1, 41)) == 40


async def test_hosts_whose_certificates_are_not_verified_are_told(doctored: Doctored) -> None:
    doctored.run(settings())
    assert not any("certificates" in limit for limit in (await audited(doctored)).limits)
    doctored.run(settings({"fetch.verify": ["b.test=off", "*.a.test=off"]}), at=100)
    (limit,) = [limit for limit in (await audited(doctored)).limits if "certificates" in limit]
    assert limit.startswith("The certificates of *.a.test, b.test were not verified (fetch.verify)")


async def test_a_clock_that_was_set_back_is_told(doctored: Doctored) -> None:
    doctored.run(settings())
    doctored.run(settings(), at=-500, end=None)
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.request(site, -400, "/", run_id=2)
    assert any("clock was set back by 401.1 s before run 2" in limit for limit in (await audited(doctored)).limits)


async def test_settings_that_cannot_be_read(doctored: Doctored) -> None:
    doctored.run(settings())
    doctored.db.execute("UPDATE run SET settings = '{}'")
    with pytest.raises(UsageError, match=r"run 1: .* cannot be read \(identity, politeness, robots, fetch not"):
        await audited(doctored)


async def test_hours_of_a_time_zone_that_this_machine_does_not_know(doctored: Doctored) -> None:
    doctored.run(settings())
    doctored.db.execute("UPDATE run SET settings = json_set(settings, '$.politeness.hours', json(?))",
                        ('["22-06 Europe/Nowhere"]',))  # fmt: skip
    with pytest.raises(UsageError) as raised:
        await audited(doctored)
    assert str(raised.value) == (
        "run 1: politeness.hours cannot be judged: '22-06 Europe/Nowhere': 'Europe/Nowhere' is no time zone that this"
        " machine knows; if the name is right, install the time zones: pip install tzdata"
    )


async def test_a_run_before_a_setting_existed_has_its_default(doctored: Doctored) -> None:
    keys = [key.path for key in KEYS.values()]
    for key in keys:
        doctored.run(settings())
        doctored.db.execute(
            "UPDATE run SET settings = json_remove(settings, ?) WHERE id = (SELECT max(id) FROM run)", (f"$.{key}",)
        )
    found = await audited(doctored)
    assert found.violation_count == 0
    assert len(found.runs) == len(keys)
    for key, run in zip(keys, found.runs, strict=True):
        assert run.settings == (Settings() if key == "identity.contact" else settings()), key


async def test_the_hash_equals_that_of_its_document(doctored: Doctored, tmp_path: Path) -> None:
    """docs/audit.md has a program for it, so that anyone can reckon it without this crawler."""
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.robots(site, 1)
    doctored.db.execute(
        "INSERT INTO robots_copy (site_id, action, status, fetched_at, valid_from, valid_until, run_id)"
        " SELECT id, 'free', '404', ?, ?, ?, 1 FROM site",
        (START, START, START + 1),
    )
    doctored.db.execute("INSERT INTO control (asked_at, command, name) VALUES (?, 'block', 'x.test')", (START,))
    doctored.request(site, 5, "/ü", error='a "quoted" text', status=None)
    before = (await audited(doctored)).sha256
    assert documented_hash(tmp_path) == before
    doctored.db.execute("UPDATE request SET started_at = started_at + 0.001 WHERE id = 2")
    assert (await audited(doctored)).sha256 != before


def documented_hash(folder: Path) -> str:
    (program,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), flags=re.M | re.S)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


async def test_the_report(doctored: Doctored, tmp_path: Path) -> None:
    doctored.run(settings({"identity.agent": "FigTree"}))
    site = doctored.site("http://a.test")
    doctored.robots(site, 1, b"User-agent: *\nDisallow: /*`|\n")
    doctored.request(site, 5, "/x?`|")
    doctored.db.execute(
        "INSERT INTO url (id, path, state, reason_code, reason, depth)"
        " VALUES (1, '/', 'excluded', 'scope', 'scope: elsewhere', 1)"
    )
    found = await audited(doctored)
    write_report(tmp_path / "report.md", found)
    text = (tmp_path / "report.md").read_text()
    assert "**1 violation found** in 2 requests to 1 site" in text
    assert "FigTree/9.9 (+mailto:who@example.org)" in text
    assert f"SHA-256 of the records that were judged: `{found.sha256}`" in text
    assert "- address: `` http://a.test/x?`| ``" in text
    assert "- rule: `` line 2: Disallow: /*`| ``" in text
    assert "| outside the scope of the crawl | 1 |" in text
    assert [path.name for path in tmp_path.iterdir() if "report" in path.name] == ["report.md"]


async def test_a_report_that_cannot_be_written_leaves_the_old_one(doctored: Doctored, tmp_path: Path) -> None:
    found = await audited(doctored)
    with pytest.raises(UsageError, match=r"nowhere/report\.md: the folder .* does not exist"):
        write_report(tmp_path / "nowhere" / "report.md", found)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="folder"):
        write_report(tmp_path / "folder", found)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".folder")]


async def test_violations_past_the_bound_are_counted(doctored: Doctored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.audit.checks.MAX_LISTED", 2)
    doctored.run(settings())
    site = doctored.site("http://a.test")
    for n in range(5):
        doctored.request(site, 5 + 10 * n, "/")
    found = await audited(doctored)
    assert (len(found.violations), found.violation_count) == (2, 10)
    assert "… and 8 more violations" in shown(found)
    assert "8 more are counted above" in document(found)


async def test_as_json(doctored: Doctored) -> None:
    doctored.run(settings())
    site = doctored.site("http://a.test")
    doctored.request(site, 5, "/")
    answer = json.loads(json.dumps((await audited(doctored)).as_json()))
    assert answer["violations_found"] == 2
    assert [violation["check"] for violation in answer["violations"]] == ["robots first", "robots fresh"]
    assert {check["check"] for check in answer["checks"]} == {check.value for check in Check}
    assert answer["violations"][0]["url"] == "http://a.test/"
