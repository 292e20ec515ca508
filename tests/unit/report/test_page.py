"""The page as a whole: nothing in it can load, run or be clicked but what is ours."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from crawler.audit.records import Check, Violation
from crawler.audit.run_audit import AuditResult
from crawler.model import State
from crawler.report.facts import Broken, BrokenLinks, DoubtfulSite, Facts, PageRow, Reason, Run
from crawler.report.gather import gather
from crawler.report.page import document
from crawler.report.words import rules, span, time_label, volume
from crawler.robots import Doubt, Doubts
from crawler.settings.loading import Settings, settings_from
from crawler.store.sql.store import SqliteStore
from tests.contract.visits import NOW, Harness

HOSTILE = "\"'></title></style></script><script>alert(1)</script><a href=javascript:alert(1)>x</a><img src=x onerror=y>"


@pytest.fixture
async def facts(tmp_path: Path) -> Facts:
    harness = Harness(lambda: SqliteStore.open(tmp_path / "crawl.db"))
    await harness.reopen(settings=asdict(Settings()))
    told = await gather(harness.store, "crawl.db", NOW)
    await harness.close()
    return told


def parsed(facts: Facts) -> LexborHTMLParser:
    return LexborHTMLParser(document(facts).decode())


def run(number: int, settings: str = "{}") -> Run:
    return Run(number, NOW, NOW + 60, "nothing is left in the frontier", "9.9", settings)


async def test_the_policy_lets_our_script_and_style_alone(facts: Facts) -> None:
    page = parsed(facts)
    (policy,) = [meta.attributes["content"] or "" for meta in page.css("meta[http-equiv=Content-Security-Policy]")]
    rules_of_it = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert (rules_of_it["default-src"], rules_of_it["base-uri"], rules_of_it["form-action"]) == ("'none'",) * 3
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (element,) = page.css(tag)
        digest = b64encode(sha256(element.text().encode()).digest()).decode()
        assert rules_of_it[rule] == f"'sha256-{digest}'"
    first = page.css("head > *")
    assert [node.tag for node in first[:2]] == ["meta", "meta"]  # before anything that it is to hold for


async def test_texts_of_strangers_stay_texts(facts: Facts) -> None:
    hostile = replace(
        facts,
        store=HOSTILE,
        first_seeds=[HOSTILE],
        runs=[replace(run(1, HOSTILE), ended_by=HOSTILE, crawler_version=HOSTILE)],
        audit=HOSTILE,
        excluded=[Reason(HOSTILE, 1, f"javascript:{HOSTILE}", HOSTILE)],
        failed=[Reason("404", 1, HOSTILE, HOSTILE)],
        broken=BrokenLinks(9, 1, [Broken(HOSTILE, HOSTILE, 9, [HOSTILE])]),
        answers=[(HOSTILE, 1)],
        types=[(HOSTILE, 2)],
        robots=[(HOSTILE, 2)],
        doubtful=[DoubtfulSite(HOSTILE, 3, Doubts((Doubt(1, HOSTILE, HOSTILE),), 2))],
        most_linked=[PageRow(f"javascript:{HOSTILE}", HOSTILE, 3)],
        graph=replace(facts.graph, sites=[(HOSTILE, 3)]),
        counts=replace(facts.counts, links=9, states=dict.fromkeys(State, 1)),
    )
    page = parsed(hostile)
    assert page.body is not None
    assert page.body.text().count("<script>alert(1)</script>") > 10
    assert len(page.css("script")) == len(page.css("style")) == 1
    assert page.css("img, iframe, object, embed, link, form, base, [src]") == []
    assert {(node.attributes["href"] or "")[0] for node in page.css("[href]")} == {"#"}
    handlers = {name for node in page.css("*") for name in node.attributes if name.startswith("on") or name == "style"}
    assert handlers == set()


async def test_every_link_leads_to_a_section(facts: Facts) -> None:
    page = parsed(facts)
    targets = {f"#{node.attributes['id']}" for node in page.css("h2")}
    assert {node.attributes["href"] for node in page.css("nav a")} == targets
    assert len(targets) == 10


async def test_violations_are_told_with_their_evidence_and_the_rest_is_counted(facts: Facts) -> None:
    assert isinstance(facts.audit, AuditResult)
    broken = [Violation(Check.PAUSE, "2 s", f"{n} ms", url=f"http://a.test/{n}") for n in range(30)]
    facts.audit.tally[Check.PAUSE].violations = 30
    page = parsed(replace(facts, audit=replace(facts.audit, violations=broken)))
    verdict = page.css_first(".verdict")
    assert verdict is not None
    assert verdict.attributes["class"] == "verdict bad"
    assert verdict.text().startswith("30 violations of politeness")
    text = page.css("body")[0].text()
    assert "http://a.test/19" in text
    assert "http://a.test/20" not in text
    assert "… and 10 more" in text


async def test_runs_under_the_same_rules_are_told_once(facts: Facts) -> None:
    settings = facts.runs[0].settings
    other = settings.replace('"delay_s": 2', '"delay_s": 9')
    assert other != settings
    page = parsed(replace(facts, runs=[run(1, settings), run(2, settings), run(3, other)]))
    titles = [node.text() for node in page.css("h3")]
    assert [title for title in titles if title.endswith("the rules")] == ["Runs 1 to 2: the rules", "Run 3: the rules"]


async def test_the_rules_of_a_run_are_told_in_words(tmp_path: Path) -> None:
    options = {
        "identity.contact": "you@example.org",
        "politeness.delay": 3,
        "scope.exclude": ["^x"],
        "limits.max_pages": 1000,
        "limits.max_time": 90,
    }
    harness = Harness(lambda: SqliteStore.open(tmp_path / "other.db"))
    await harness.reopen(settings=asdict(settings_from(options, source="test")))
    told = await gather(harness.store, "other.db", NOW)
    await harness.close()
    kept = dict(rules(told.runs[0]))
    assert "(+mailto:you@example.org)" in kept["Robot"]
    assert kept["Contact"] == "you@example.org"
    assert kept["Pause per host"].startswith("the longest of 3 s, 5 × what the last answer took (30 s at most)")
    assert kept["Scope"] == "the seeds' registrable domains; not what matches ^x"
    assert kept["Limits"].startswith("1,000 pages, 1 min 30 s, 10.5 MB per page")


@pytest.mark.parametrize(
    ("width_s", "label"),
    [(0.5, "08:00:01.5"), (5, "08:00:01"), (300, "08:00"), (3600, "15 Jan 08h"), (86400, "15 Jan 2027")],
)
def test_a_time_says_as_much_as_its_slot_is_wide(width_s: float, label: str) -> None:
    assert time_label(1_800_000_001.5, width_s) == label


def test_figures_have_no_digit_that_says_nothing() -> None:
    assert [volume(n) for n in (0, 999, 1000, 14_766, 5_699_944, 2e9)] == [
        "0 B", "999 B", "1 kB", "14.8 kB", "5.7 MB", "2 GB",
    ]  # fmt: skip
    assert [span(s) for s in (0.004, 1, 7.5, 64)] == ["4 ms", "1 s", "7.5 s", "1 min 4 s"]
