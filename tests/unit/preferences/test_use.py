"""``Content-Signal: use``: the levels as the terms of a robots tag."""

from __future__ import annotations

import pytest

from crawler.model import Preference, Reading
from crawler.page.directives import directives
from crawler.page.headers import header_facts
from crawler.preferences.purposes import MAX_PREFERENCES, bounded
from crawler.preferences.schemes import content_signal, content_usage
from crawler.preferences.use import use_terms


@pytest.mark.parametrize(
    ("statement", "terms"),
    [
        ("use=immediate", "noindex, nofollow, noarchive, use=immediate"),
        ("search=yes,ai-train=no,use=reference", "noarchive, use=reference"),
        ("use=full", ""),
        ("search=no", ""),
    ],
)
def test_a_level_is_terms_of_a_robots_tag(statement: str, terms: str) -> None:
    assert use_terms(content_signal(statement, "robots.txt")) == terms


def test_the_most_restrictive_level_counts() -> None:
    lines = [*content_signal("use=reference", "robots.txt"), *content_signal("use=immediate", "header")]
    assert use_terms(lines).startswith("noindex")


@pytest.mark.parametrize(("level", "kept"), [("full", True), ("reference", True), ("immediate", False)])
def test_the_header_of_a_page(level: str, kept: bool) -> None:
    headers = (("Content-Signal", "search=yes"), ("content-signal", f"use={level}"))
    facts = header_facts(headers, url="http://a.example/", token="figtree", reading=Reading.STRICT, now=0.0)
    assert (facts.index, facts.follow, facts.archive) == (kept, kept, level == "full")
    assert ("use", level) in [(one.category, one.value) for one in facts.preferences]


def test_no_tag_of_a_page_overrides_immediate_use() -> None:
    tags = [("robots.txt", use_terms(content_signal("use=immediate", "robots.txt"))), ("meta", "index, follow")]
    found = directives(tags, reading=Reading.DRAFT1996, now=0.0)
    assert (found.index, found.follow) == (False, False)


def test_invented_labels_displace_no_refusal() -> None:
    found: list[Preference] = []
    for n in range(2 * MAX_PREFERENCES):
        found += content_usage(f"label{n}=n", "robots.txt", line=n) or ()
    found += content_usage("train-ai=n", "robots.txt", line=1000) or ()
    assert "train-ai" in {one.category for one in bounded(found)}


def test_few_labels_of_one_statement_are_recorded() -> None:
    statement = ", ".join([*(f"label{n}=n" for n in range(50)), "search=n"])
    assert len(content_usage(statement, "header") or ()) == 11
