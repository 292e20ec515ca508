"""Whether a page may be indexed and followed: docs/protocols.md, section 3."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model import Reading
from crawler.page.directives import SITE_TAG, asked_of, directives, header_tags, x_robots_tag
from crawler.preferences.robots_tag import robots_tag

NOON = 1_764_767_393.0  # Wed, 03 Dec 2025 13:09:53 GMT
BOTH = (Reading.STRICT, Reading.RFC9309)


def verdict(*contents: str, reading: Reading = Reading.STRICT, now: float = 0.0) -> tuple[bool, bool]:
    said = directives([("META robots", content) for content in contents], reading=reading, now=now)
    return said.index, said.follow


@pytest.mark.parametrize("reading", list(Reading))
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", (True, True)),
        ("ALL", (True, True)),
        ("NONE", (False, False)),
        ("INDEX", (True, True)),
        ("NOINDEX", (False, True)),
        ("FOLLOW", (True, True)),
        ("NOFOLLOW", (True, False)),
        ("noindex,nofollow", (False, False)),
        (" NoIndex , Follow ", (False, True)),
        ("noindex nofollow", (False, False)),
        ("noindex; nofollow", (False, False)),
        ("noarchive, max-snippet:-1, max-image-preview:large", (True, True)),
        ("noindexing, nofollowing", (True, True)),
    ],
)
def test_the_six_terms(content: str, expected: tuple[bool, bool], reading: Reading) -> None:
    assert verdict(content, reading=reading) == expected


@pytest.mark.parametrize(
    ("content", "restrictive", "draft"),
    [
        ("FOLLOW, NOFOLLOW", (True, False), (True, True)),
        ("INDEX, NOINDEX", (False, True), (True, True)),
        ("ALL, NOINDEX", (False, True), (True, True)),
        ("NOFOLLOW, ALL", (True, False), (True, True)),
        ("ALL, NONE", (False, False), (True, True)),
        ("NONE, FOLLOW", (False, False), (False, True)),
        ("NONE, INDEX", (False, False), (True, False)),
    ],
)
def test_contradictions(content: str, restrictive: tuple[bool, bool], draft: tuple[bool, bool]) -> None:
    for reading in BOTH:
        assert verdict(content, reading=reading) == restrictive
    assert verdict(content, reading=Reading.DRAFT1996) == draft


def test_several_tags_add_up() -> None:
    assert verdict("noindex", "nofollow") == (False, False)
    assert verdict("noindex", "index") == (False, True)


def test_evidence_names_the_source_and_is_bounded() -> None:
    tags = [("META robots", "noindex\n,\tfollow")] + [("X-Robots-Tag", "x" * 10_000)] * 100
    evidence = directives(tags, reading=Reading.STRICT, now=0.0).evidence
    assert evidence[0] == "META robots: noindex , follow"
    assert len(evidence) == 20
    assert max(map(len, evidence)) < 250


@pytest.mark.parametrize(
    "date",
    [
        "Wed, 03 Dec 2025 13:09:53 GMT",
        "Wednesday, 03-Dec-25 13:09:53 GMT",
        "03 Dec 2025 14:09:53 +0100",
        "2025-12-03T13:09:53Z",
        "2025-12-03 13:09:53",
        "December 3, 2025 13:09:53 GMT",
    ],
)
def test_unavailable_after(date: str) -> None:
    content = f"max-snippet:-1, unavailable_after: {date}, nofollow"
    assert verdict(content, now=NOON - 1) == (True, False)
    assert verdict(content, now=NOON) == (False, False)


@pytest.mark.parametrize("blank", ["", " ", "\t"])
@pytest.mark.parametrize("name", ["max-image-preview", "MAX-SNIPPET", "max-video-preview"])
def test_the_value_of_a_directive_is_no_term(name: str, blank: str) -> None:
    assert verdict(f"{name}:{blank}none") == (True, True)
    assert verdict(f"{name}{blank}:{blank}none nofollow, archive") == (True, False)
    assert verdict(*(content for _, content in x_robots_tag([f"{name}:{blank}none"], "figtree"))) == (True, True)


def test_unavailable_after_no_date_is_passed_over() -> None:
    assert verdict("unavailable_after: soon, nofollow", now=NOON) == (True, False)
    assert verdict("unavailable_after: Sep 21, noindex", now=NOON) == (False, True)
    assert verdict("unavailable_after: 9999-99-99T99:99:99", now=NOON) == (True, True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("noindex", (False, True)),
        ("figtree: noindex", (False, True)),
        ("FigTree/1.0: none", (False, False)),
        ("*: nofollow", (True, False)),
        ("otherbot: noindex", (True, True)),
        ("otherbot: noindex, nofollow", (True, True)),
        ("otherbot: noindex, figtree: nofollow", (True, False)),
        ("nofollow, otherbot: noindex", (True, False)),
        ("max-snippet: -1, noindex", (False, True)),
        ("max-something-new: 3, noindex", (False, True)),
        ("otherbot: unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT", (True, True)),
        ("figtree: unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT", (False, True)),
        ("unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT, nofollow", (False, False)),
    ],
)
def test_x_robots_tag(value: str, expected: tuple[bool, bool]) -> None:
    said = directives(x_robots_tag([value], "FigTree"), reading=Reading.STRICT, now=NOON)
    assert (said.index, said.follow) == expected


def test_each_header_starts_without_an_agent() -> None:
    values = ["otherbot: noindex", "nofollow"]
    said = directives(x_robots_tag(values, "figtree"), reading=Reading.STRICT, now=0.0)
    assert (said.index, said.follow) == (True, False)
    assert said.evidence == ("X-Robots-Tag: nofollow",)


def test_index_does_not_outlast_unavailable_after() -> None:
    content = "index, unavailable_after: 2025-12-03T13:09:53Z"
    assert verdict(content, reading=Reading.DRAFT1996, now=NOON - 1) == (True, True)
    assert verdict(content, reading=Reading.DRAFT1996, now=NOON) == (False, True)


TERMS = st.sampled_from(
    [
        "noarchive",
        "NONE",
        "index",
        "x" * 150,
        "unavailable_after: 9 Jan 2031",
        "unavailable_after: 2030-01-01T05:00Z",
        "unavailable_after: Wednesday, 03-Dec-25 13:09:53 GMT",
        "unavailable_after: 9999-12-31T23:00:00-12:00",
        "unavailable_after: 0001-01-01T00:00:00+12:00",
        "unavailable_after: soon",
        "otherbot: noarchive",
        "nosnippet",
        "max-snippet: 20",
        "max-snippet:7, max-snippet:-1",
    ]
)


def _limit(content: str) -> float:
    return asked_of(json.dumps([f"META robots: {content}"])).snippet_chars


@given(st.lists(st.lists(TERMS | st.text(max_size=300), max_size=8).map(", ".join), max_size=30))
def test_stored_tags_yield_the_directives_of_the_page(contents: list[str]) -> None:
    said = directives([("META robots", content) for content in contents], reading=Reading.STRICT, now=-math.inf)
    assert len(said.evidence) <= 20
    stored = asked_of(json.dumps(said.evidence) if said.evidence else None)
    assert stored.archive is said.archive
    assert stored.snippet_chars == min(_limit(content) for content in ["", *contents])
    for now in (NOON, 1_893_474_000.0, 1_925_683_199.0, 1_925_683_200.0):
        tags = [("META robots", content) for content in contents]
        index = directives(tags, reading=Reading.STRICT, now=now).index
        assert index is (said.index and stored.until > now)


# --- excerpts: nosnippet and max-snippet (Google's specifications of robots meta tags) ---


@pytest.mark.parametrize(
    ("content", "chars"),
    [
        ("index", math.inf),
        ("nosnippet", 0),
        ("NOSNIPPET, max-snippet: 50", 0),
        ("max-snippet:50", 50),
        ("max-snippet : 50, max-snippet:20", 20),
        ("max-snippet:0", 0),
        ("max-snippet:-1", math.inf),
        ("max-snippet: many", math.inf),
        ("none", math.inf),
    ],
)
def test_the_longest_excerpt_is_kept_with_the_page(content: str, chars: float) -> None:
    said = directives([("META robots", content)], reading=Reading.DRAFT1996, now=0.0)
    assert asked_of(json.dumps(said.evidence)).snippet_chars == chars


def test_x_robots_tag_names_agents_for_excerpts_too() -> None:
    for value, chars in [("figtree: max-snippet: 9", 9), ("otherbot: nosnippet", math.inf), ("nosnippet", 0)]:
        evidence = [f"{source}: {content}" for source, content in x_robots_tag([value], "figtree")]
        assert asked_of(json.dumps(evidence)).snippet_chars == chars


# --- dates without a time ---


@pytest.mark.parametrize(
    "date",
    ["21 Sep 2020", "21-Sep-2020", "Monday, 21 Sep 2020", "Mon, 21-Sep-20", "2020-09-21", "September 21, 2020"],
)
def test_unavailable_after_a_day_begins_with_it(date: str) -> None:
    begins = 1_600_646_400.0
    assert verdict(f"unavailable_after: {date}", now=begins - 1) == (True, True)
    assert verdict(f"unavailable_after: {date}", now=begins) == (False, True)


# --- draft-illyes-repext-03: Robots-Tag ---


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ("*;nosnippet, ExampleBot;noindex", "nosnippet"),
        ("*;nosnippet, FigTree;noindex", "nosnippet, noindex"),
        ("figtree;noindex;nofollow, figtree;noarchive", "noindex, nofollow, noarchive"),
        ("*;max-snippet=20 ; nofollow=?1;noindex=?0", "max-snippet: 20, nofollow"),
        ('*;unavailable_after="21 Sep 2020, 10:00";noindex', "unavailable_after: 21 Sep 2020, 10:00, noindex"),
        ("*;unavailable_after=@1600646400", "unavailable_after: 2020-09-21T00:00:00+00:00"),
        ("otherbot;noindex", ""),
        ("figtree", ""),
        ("noindex", ""),
        ("", ""),
        (";,=;@", ""),
    ],
)
def test_robots_tag(value: str, rules: str) -> None:
    assert robots_tag(value, "figtree") == rules


def test_all_headers_and_the_robots_txt_of_the_site_add_up() -> None:
    headers = (
        ("X-Robots-Tag", "otherbot: noindex"),
        ("Robots-Tag", "*;nosnippet"),
        ("robots-tag", "figtree;noarchive"),
        (SITE_TAG, "nofollow"),
    )
    assert list(header_tags(headers, "FigTree")) == [
        ("Robots-Tag", "nosnippet"),
        ("Robots-Tag", "noarchive"),
        ("robots.txt", "nofollow"),
    ]
