"""Reasons are read again by how they begin: what writes them, and what reads them, must mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import crawler
from crawler import reasons
from crawler.engine.changed_options import DECIDED_BY
from crawler.frontier.decide import Outcome, Queued, RetrySettings, after_fetch, before_fetch
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.frontier.traps import TrapSettings
from crawler.model import Failed, FetchResult, Reading, Redirected, RobotsAction, RobotsCopy
from crawler.reasons import ErrorKind
from crawler.robots.mirrors import Cycle
from crawler.robots.readings import read
from crawler.robots.text import parse
from tests.virtual_time import EPOCH_S

SITE, B = "http://a.test", "http://b.test"
QUEUED = Queued(1, f"{SITE}/a/a/a/a/a/a/a/a/", 1, 5)
ANY = Scope(ScopeSettings(ScopeMode.ANY), [QUEUED.url])
STATEMENTS = sorted(Path(crawler.__file__).parent.glob("store/sql/*/queries.sql"))


def under(scope: Scope) -> str:
    return scope.refusal(QUEUED.url, QUEUED.depth) or ""


def asked(answer: FetchResult) -> str:
    return after_fetch(QUEUED, answer, None, ANY, RetrySettings(max_redirects=0)).reason


def barred(action: RobotsAction, robots: str = "", main: Cycle | None = None) -> str:
    copy = RobotsCopy(action, "403", EPOCH_S, EPOCH_S)
    rules = read(parse(robots.encode()), token="TestBot", reading=Reading.STRICT, site=SITE)
    outcome = before_fetch(QUEUED, copy, rules, "/a/", ANY, main)
    assert isinstance(outcome, Outcome)
    return outcome.reason


def failed(kind: ErrorKind) -> FetchResult:
    return Failed(QUEUED.url, EPOCH_S, EPOCH_S, kind=kind, detail="10.0.0.1")


WRITTEN: dict[str, tuple[Callable[[], str], ...]] = {
    reasons.SCOPE: (
        lambda: under(Scope(ScopeSettings(ScopeMode.HOST), ["http://b.test/"])),
        lambda: under(Scope(ScopeSettings(ScopeMode.DOMAIN), ["http://b.test/"])),
        lambda: under(Scope(ScopeSettings(ScopeMode.PREFIX), ["http://a.test/b/"])),
        lambda: under(Scope(ScopeSettings(ScopeMode.ANY, exclude=("a",)), [])),
        lambda: under(Scope(ScopeSettings(ScopeMode.ANY, include=("b",)), [])),
    ),
    reasons.CONTACT: (lambda: under(Scope(ScopeSettings(ScopeMode.ANY), [], lambda host: False)),),
    reasons.DEPTH: (lambda: under(Scope(ScopeSettings(ScopeMode.ANY, max_depth=4), [])),),
    reasons.TRAP: (
        lambda: under(Scope(ScopeSettings(ScopeMode.ANY), [], traps=TrapSettings())),
        lambda: under(Scope(ScopeSettings(ScopeMode.ANY), [], traps=TrapSettings(max_url_chars=9))),
    ),
    reasons.ROBOTS: (
        lambda: barred(RobotsAction.RESTRICTED),
        lambda: barred(RobotsAction.GIVEN_UP),
        lambda: barred(RobotsAction.PARSE, "User-agent: *\nDisallow: /"),
    ),
    reasons.MIRROR: (
        lambda: barred(RobotsAction.PARSE, "User-agent: *\nDisallow:\nHost: b.test"),
        lambda: barred(RobotsAction.PARSE, "User-agent: *\nDisallow:\nHost: b.test", Cycle((SITE, B))),
    ),
    reasons.TYPE: (lambda: asked(failed(ErrorKind.UNWANTED_TYPE)),),
    reasons.ADDRESS: (lambda: barred(RobotsAction.UNREACHABLE), lambda: asked(failed(ErrorKind.ADDRESS))),
    reasons.REDIRECTS: (
        lambda: str(
            after_fetch(
                QUEUED,
                Redirected(QUEUED.url, EPOCH_S, EPOCH_S, status=301, location="/b"),
                None,
                ANY,
                RetrySettings(max_redirects=0),
            )
            .offers[0]
            .refusal
        ),
    ),
}
#: Written elsewhere: by the fetcher (``tests/e2e/test_crawl.py``), in SQL (below).
ELSEWHERE = {reasons.TOO_LARGE, reasons.SAMPLE}


def test_every_reason_that_options_decide_on_is_written_so() -> None:
    assert {*WRITTEN, *ELSEWHERE} == set(DECIDED_BY)
    for begins, ways in WRITTEN.items():
        for way in ways:
            reason = way()
            assert [word for word in DECIDED_BY if reason.startswith(word)] == [begins]


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.parent.name)
def test_statements_write_and_read_the_same_reasons(path: Path) -> None:
    sql = path.read_text()
    assert set(re.findall(r"reason = '(sample[^']*)'", sql)) == {f"{reasons.SAMPLE} not drawn"}
    assert re.findall(r"reason LIKE '([^']*)'", sql) == [f"{reasons.MIRROR} %"]
