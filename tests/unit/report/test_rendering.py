"""The document as a whole: the text of a site stays text, and nothing loads or runs but the package's own files."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawler.audit.checks import Check, Violation
from crawler.audit.run_audit import AuditResult
from crawler.errors import UsageError
from crawler.inspect.seeds import Outcome
from crawler.model import State
from crawler.report.gather import BrokenLinks, BrokenTarget, DoubtfulSite, Facts, gather
from crawler.report.rendering import described, render
from crawler.report.write import require_html
from crawler.robots.doubts import Doubt, Doubts
from crawler.settings.loading import settings_from
from crawler.settings.settings import Settings
from crawler.store.named_rows import row_class
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness

HOSTILE = "\"'></title></style></script><script>alert(1)</script><a href=javascript:alert(1)>x</a><img src=x onerror=y>"
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
TEMPLATES = [path for path in files("crawler.report").joinpath("templates").iterdir() if path.name.endswith(".j2")]


@pytest.fixture
async def facts(tmp_path: Path) -> Facts:
    harness = Harness(lambda: SqliteStore.open(tmp_path / "crawl.db"))
    await harness.reopen(settings=asdict(Settings()))
    gathered = await gather(harness.store, "crawl.db", NOW)
    await harness.close()
    return gathered


def parsed(facts: Facts) -> LexborHTMLParser:
    return LexborHTMLParser(render(facts).decode())


def run(number: int, settings: str = "{}", text: str = "nothing is left in the frontier") -> Any:
    columns = ("number", "started_at", "finished_at", "ended_code", "ended_by", "crawler_version", "settings")
    return row_class(columns)(number, NOW, NOW + 60, "bug", text, text, settings)


def row(**columns: object) -> Any:
    return row_class(tuple(columns))(**columns)


def with_text(facts: Facts, text: str) -> Facts:
    """Facts that have ``text`` in every place that a crawled site or an operator can fill."""
    numbers = ("number", "requests", "bytes", "mean_s", "disallowed", "crawl_delay_s", "pause_s", "links_in", *State)
    site = row(site=text, robots_action=text, robots_status=text, **dict.fromkeys(numbers, 1))
    mirror = row(site=text, main_site=f"javascript:{text}", evidence="host", leads_to=text, contradiction=None)
    return replace(
        facts,
        store=text,
        first_seeds=[(text, Outcome.FETCHED)],
        runs=[run(1, text, text)],
        audit=text,
        excluded=[row(code="scope", urls=1, example_url=f"javascript:{text}", example=text)],
        failed=[row(code="not_found", urls=1, example_url=text, example=f"404 {text}")],
        broken=BrokenLinks(9, 1, [BrokenTarget(text, text, 9, [text])]),
        answers=[(text, 1)],
        types=[(text, 2)],
        robots=[(text, 2)],
        doubtful=[DoubtfulSite(text, 3, Doubts((Doubt(1, text, text),), 2))],
        sites=[site],
        mirrors=[mirror],
        counts=facts.counts._replace(links=9, states=dict.fromkeys(State, 1)),
        survey=text,
    )


def structure(page: LexborHTMLParser) -> list[tuple[str | None, list[str]]]:
    """Every element with the names of its attributes."""
    return [(node.tag, sorted(node.attributes)) for node in page.css("*")]


async def test_the_policy_allows_only_our_script_and_style(facts: Facts) -> None:
    page = parsed(facts)
    (policy,) = [meta.attributes["content"] or "" for meta in page.css("meta[http-equiv=Content-Security-Policy]")]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert (directives["default-src"], directives["base-uri"], directives["form-action"]) == ("'none'",) * 3
    for tag, name in (("script", "script-src"), ("style", "style-src")):
        (element,) = page.css(tag)
        digest = b64encode(sha256(element.text().encode()).digest()).decode()
        assert directives[name] == f"'sha256-{digest}'"
    first = page.css("head > *")
    assert [node.tag for node in first[:2]] == ["meta", "meta"]  # before everything that it applies to


async def test_hostile_text_stays_text(facts: Facts) -> None:
    page = parsed(with_text(facts, HOSTILE))
    assert page.body is not None
    assert page.body.text().count("<script>alert(1)</script>") > 20
    assert len(page.css("script")) == len(page.css("style")) == 1
    assert page.css("img, iframe, object, embed, link, form, base, [src]") == []
    assert {(node.attributes["href"] or "")[0] for node in page.css("[href]")} == {"#"}
    names = {name for node in page.css("*") for name in node.attributes if name.startswith("on") or name == "style"}
    assert names == set()


@given(st.text(st.sampled_from("<>&'\"=/`;:{}%#ax \n\x00\x1b\u202e\ud800") | st.characters(), min_size=1, max_size=40))
@example("{{ facts }}{% for x in y %}{# no #}")
@example("--><!--")
@example("\x7f\x85\u2066\uffff")
@example("]]></title></svg>")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_changes_the_structure_of_the_document(facts: Facts, text: str) -> None:
    """In text, attributes and SVG alike: elements and attributes are the same as with a harmless text."""
    page = parsed(with_text(facts, f"{text}."))
    assert structure(page) == structure(parsed(with_text(facts, "harmless")))
    shown = UNFIT.sub("\ufffd", text)
    (seed,) = page.css("li > .url")
    assert seed.text() == f"{shown}."
    cells = [cell.attributes["data-v"] for cell in page.css("td.address")]
    assert f"{shown}." in cells


async def test_joiners_that_scripts_need_are_kept(facts: Facts) -> None:
    text = "می\u200cخواهم 👩\u200d🚀"
    (seed,) = parsed(replace(facts, first_seeds=[(text, Outcome.FETCHED)])).css("li > .url")
    assert seed.text() == text


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_leave_escaping_to_jinja(template: Path) -> None:
    """No template switches escaping off, has an attribute without quotes, or links to a crawled address."""
    text = template.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe|autoescape|Markup|xmlattr|tojson", text)
    assert not re.search(r"=\s*\{\{", re.sub(r"\{%.*?%\}", "", text))
    assert re.findall(r'(?:href|src|action)="([^"]*)"', text) in ([], ["#{{ anchor }}"])
    assert not re.search(r"\son\w+=|style=", text)


async def test_the_same_facts_give_the_same_document(facts: Facts) -> None:
    assert render(with_text(facts, "x")) == render(with_text(facts, "x"))


async def test_every_link_leads_to_a_section(facts: Facts) -> None:
    page = parsed(facts)
    targets = {f"#{node.attributes['id']}" for node in page.css("h2")}
    assert {node.attributes["href"] for node in page.css("nav a")} == targets
    assert len(targets) == 8  # without a sample and without links, two sections are empty


async def test_violations_have_their_evidence_and_the_rest_is_counted(facts: Facts) -> None:
    assert isinstance(facts.audit, AuditResult)
    broken = [Violation(Check.PAUSE, "2 s", f"{n} ms", url=f"http://a.test/{n}") for n in range(30)]
    facts.audit.counts[Check.PAUSE].violations = 30
    page = parsed(replace(facts, audit=replace(facts.audit, violations=broken)))
    verdict = page.css_first(".verdict")
    assert verdict is not None
    assert verdict.attributes["class"] == "verdict bad"
    assert verdict.text().startswith("30 violations of politeness")
    text = page.css("body")[0].text()
    assert "http://a.test/19" in text
    assert "http://a.test/20" not in text
    assert "… and 10 more" in text


async def test_consecutive_runs_with_the_same_settings_share_a_card(facts: Facts) -> None:
    same = facts.runs[0].settings
    other = same.replace('"delay_s": 2', '"delay_s": 9')
    assert other != same
    page = parsed(replace(facts, runs=[run(1, same), run(2, same), run(3, other)]))
    titles = [node.text() for node in page.css("h3")]
    assert [title for title in titles if title.endswith("settings")] == [
        "Runs 1 to 2: settings",
        "Run 3: changed settings",
    ]


async def test_the_settings_of_a_run_are_described_in_words(tmp_path: Path) -> None:
    options = {
        "identity.contact": "you@example.org",
        "politeness.delay": 3,
        "scope.exclude": ["^x"],
        "limits.max_pages": 1000,
        "limits.max_time": 90,
        "fetch.verify": ["b.test=off"],
    }
    harness = Harness(lambda: SqliteStore.open(tmp_path / "other.db"))
    await harness.reopen(settings=asdict(settings_from(options, source="test")))
    gathered = await gather(harness.store, "other.db", NOW)
    await harness.close()
    words = dict(described(gathered.runs[0]))
    assert "(+mailto:you@example.org)" in words["Robot"]
    assert words["Contact"] == "you@example.org"
    assert words["Warning"] == "the certificates of b.test are not verified"
    assert words["Pause per host"].startswith("the longest of 3 s, 5 × the time of the last answer (30 s at most)")
    assert words["Scope"] == "on the registered domains of its seeds; not what matches ^x"
    assert words["Limits"].startswith("1,000 pages, 1 min 30 s, 10.5 MB per page")


def test_a_missing_jinja_is_a_usage_error_that_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match=r"`crawler report` needs jinja2; .* pip install '\.\[report\]'"):
        require_html(tmp_path / "report.html")
