"""Doubtful lines of a robots.txt: those that are reported, and those that are not."""

from __future__ import annotations

import re

import pytest

from crawler.robots.doubts import MAX_DOUBTS, Doubts, doubts_about


def doubts(text: str | bytes) -> Doubts:
    return doubts_about(text if isinstance(text, bytes) else text.encode())


VOID_USAGE = "it is no dictionary such as train-ai=n with keys in lower case, so it states nothing"
VOID_SIGNAL = "it gives no yes or no to search, ai-input or ai-train, and no level of use, so it states nothing"
NO_PAUSE = "the value is no number of seconds such as 1.5, and no rate such as 1/10s, so it sets no pause"


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("Disallow: private", "only strict obeys it, as Disallow: /private"),
        (
            "Disallow: http://a.example/x",
            "it is a URL and no path; only strict obeys it, and only if it is of this site",
        ),
        ("Disallow: ?sort=", "only strict obeys it, as Disallow: /*?sort="),
        ("Allow: public", "it opens no more than as it is written"),
        ("Content-Usage: /a Train-AI=n", VOID_USAGE),
        ("Content-Signal: train=no", VOID_SIGNAL),
        ("Dissallow: /x", "only strict obeys it, as Disallow: /x"),
        ("- Disallow: /x", "only strict obeys it, as Disallow: /x"),
        ("\ufeffDisallow: /x", "only strict obeys it, as Disallow: /x"),
        ("Dis\u200ballow: /x", "only strict obeys it, as Disallow: /x"),
        ("Disallow:\xa0/x", "only strict obeys it, as Disallow: /x"),
        ("Alow: /x", "only strict obeys it, as Allow: /x"),
        ("User agent: x", "only strict obeys it, as User-agent: x"),
        ("Crawl delay: 3", "only strict obeys it, as Crawl-delay: 3"),
        ("Site-map: /s.xml", "the field is unknown and the line is ignored; a known field is Sitemap"),
        ("Disallow; /x", "only strict obeys it, as Disallow: /x"),
        ("User agent *", "only strict obeys it, as User-agent: *"),
        ("NoDisallow: /x", "the field is unknown and the line is ignored; a known field is Disallow"),
        ("Crawl-delay: 1,5,2", NO_PAUSE),
        ("Request-rate: 1", NO_PAUSE),
        ("Disallow: /a, /b", "only strict obeys it, as Disallow: /a /b"),
        ("Disallow: /d Disallow: /e", "only strict obeys it, as Disallow: /d; Disallow: /e"),
        (r"User-agent: *\nDisallow: /", "only strict obeys it, as User-agent: *; Disallow: /"),
        ("User-agent: Google*", "* means all robots only if it stands alone; here it is a part of a name"),
    ],
)
def test_a_doubtful_line_is_reported_with_its_number_and_effect(line: str, means: str) -> None:
    (doubt,) = doubts(f"User-agent: *\n{line} # why\nDisallow: /other\n").first
    shown = re.sub("[\ufeff\u200b\xa0]", "\ufffd", line)
    assert (doubt.line, doubt.text, doubt.means) == (2, shown, means)
    assert str(doubt) == f"line 2 ({shown}): {means}"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "Content-Usage: train-ai=n, other=1",
            "Content-Usage: /a train-ai=maybe",
            "Content-Usage:",
            "Content-Signal: /a search=yes, other=no",
            "Content-Signal:",
            "Disallow:",
            "Allow:",
            "Disallow",
            "Disallow: /",
            "disallow : /x",
            "Disallow: /a /b",
            "Disallow: /my folder/",
        ),
        *(
            "Disallow: *.pdf",
            "Disallow: /*?sort=",
            "Disallow: /x$",
            "Disallow: /a,b",
            "Disallow: /a;s=1",
            "Disallow: /c // /d",
            "Allow: *",
        ),
        *("User-agent: * Rex", "User-agent: Googlebot, Bingbot", "User-agent: Mozilla/5.0 (compatible; x/1)"),
        *(
            "Crawl-delay:",
            "Crawl-delay: 0",
            "Crawl-delay: .5",
            "Crawl-delay: 1,5",
            "Crawl-delay: 10 sec",
            "Request-rate: 1/10m 0600-0845",
            "Visit-time: 0600-0845",
        ),
        *("Clean-param: ref /", "Noindex: /x", "Content-Signal: search=yes", "Content-Usage: bots=n", "NoFollow: /x"),
        *("Host: http://example.org", "Hosts: x", "Robot-version: 2.0", "Comment: be kind", "License: /l.xml", "a: b"),
        *("Sitemap: s.xml", "https://example.org/sitemap.xml", "Mobile-agent-server: / none", "a line of prose"),
        *("//Disallow: /x", ";Disallow: /x", "<!-- Disallow: /x", "# Dissallow: /x", "Sitemap-index: /i.xml"),
    ],
)
def test_unambiguous_lines_raise_no_doubt(line: str) -> None:
    assert doubts(f"User-agent: *\n{line}\n") == Doubts()


def test_rules_above_every_user_agent_line_bind_every_robot_in_strict_alone() -> None:
    found = doubts("Disallow: /a\nCrawl-delay: 5\nHost: b.ru\nSitemap: /s.xml\n\nUser-agent: x\nDisallow: /b\n")
    above = "it stands above every User-agent line, so"
    assert {doubt.line: doubt.means for doubt in found.first} == {
        1: f"{above} only strict obeys it",
        2: f"{above} only strict obeys it",
        3: f"{above} it applies to no robot",
    }


def test_few_doubts_are_shown_and_all_are_counted() -> None:
    found = doubts("User-agent: *\n" + "Disallow: a\n" * 1000)
    assert (len(found.first), found.count) == (MAX_DOUBTS, 1000)
    assert found.sentences()[-1] == "980 more such lines, not shown"
    assert len(found.sentences()) == MAX_DOUBTS + 1


def test_the_displayed_text_of_a_line_is_short_and_printable() -> None:
    (doubt,) = doubts(b"User-agent: *\nDisallow: \x1b[2J\xff" + b"a" * 1000).first
    assert doubt.text == "Disallow: \ufffd[2J\ufffd" + "a" * 65 + "…"


def test_an_html_page_has_a_note_and_no_doubtful_lines() -> None:
    assert doubts(b"<html>\nDissallow: /x\nDisallow /y\n") == Doubts()
