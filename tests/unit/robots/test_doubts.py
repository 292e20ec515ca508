"""Doubtful lines of a robots.txt: those that are reported, and those that are not."""

from __future__ import annotations

import re

import pytest

from crawler.robots.doubts import MAX_DOUBTS, Doubts, doubts_about


def doubts(text: str | bytes) -> Doubts:
    return doubts_about(text if isinstance(text, bytes) else text.encode())


UNLIKE = "it contains invisible characters or characters that look like blanks; only strict obeys the displayed text"


VOID_USAGE = "it is no dictionary such as train-ai=n with keys in lower case, so it states nothing"
VOID_SIGNAL = "it gives no yes or no to search, ai-input or ai-train, and no level of use, so it states nothing"


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("Disallow: private", "the path does not begin with /; only strict obeys the line, as /private"),
        (
            "Disallow: http://example.org/x",
            "it is a URL and no path; only strict obeys it, and only if it is of this site",
        ),
        ("Disallow: ?sort=", "the path does not begin with /; only strict obeys the line, as /*?sort="),
        ("disallow: $", "the path does not begin with /, so the line closes nothing"),
        ("Disallow: %2Fx", "the path does not begin with /; only strict obeys the line, as /%2Fx"),
        ("Allow: public", "the path does not begin with /, so the line opens nothing"),
        ("Content-Usage: /a Train-AI=n", VOID_USAGE),
        ("Content-Usage: train-ai: n", VOID_USAGE),
        ("Content-Signal: train=no", VOID_SIGNAL),
        ("Content-Signal: ai-train: no", VOID_SIGNAL),
        ("Dissallow: /x", "the field is unknown; only strict obeys the line, as Disallow"),
        ("Disalow: /x", "the field is unknown; only strict obeys the line, as Disallow"),
        ("Dis allow: /x", "the field is unknown; only strict obeys the line, as Disallow"),
        ("- Disallow: /x", "the field is unknown; only strict obeys the line, as Disallow"),
        ("\ufeffDisallow: /x", UNLIKE),
        ("Dis\u200ballow: /x", UNLIKE),
        ("Disallow:\xa0/x", UNLIKE),
        ("Disallow\xa0/x", "Disallow has no colon; only strict obeys the line"),
        ("Alow: /x", "the field is unknown; only strict obeys the line, as Allow"),
        ("User agent: x", "the field is unknown; only strict obeys the line, as User-agent"),
        ("Useragent: x", "the field is unknown; only strict obeys the line, as User-agent"),
        ("User_Agents: x", "the field is unknown; only strict obeys the line, as User-agent"),
        ("Crawl delay: 3", "the field is unknown; only strict obeys the line, as Crawl-delay"),
        ("Site-map: /s.xml", "the field is unknown; the line is ignored; a known field is Sitemap"),
        ("Disallow /x", "Disallow has no colon; only strict obeys the line"),
        ("Disallow; /x", "Disallow has no colon; only strict obeys the line"),
        ("disallow\uff1a/x", "Disallow has no colon; only strict obeys the line"),
        ("Disallow http://example.org/", "Disallow has no colon; only strict obeys the line"),
        ("User agent *", "User-agent has no colon; only strict obeys the line"),
        ("NoDisallow: /x", "the field is unknown; the line is ignored; a known field is Disallow"),
        ("Disallow-old: /x", "the field is unknown; the line is ignored; a known field is Disallow"),
        ("User agent strings vary", "User-agent has no colon; the line is ignored"),
        ("Disallow all of it", "Disallow has no colon; the line is ignored"),
        ("Disallow: mailto:", "the path does not begin with /, so the line closes nothing"),
        ("Crawl-delay: 1,5", "the value is not a number of seconds such as 2 or 1.5, so it sets no pause"),
        ("Crawl-delay: 10 s", "the value is not a number of seconds such as 2 or 1.5, so it sets no pause"),
        ("Request-rate: 1", "the value is not a rate such as 1/10s, so it sets no pause"),
        ("Disallow: /a, /b", "commas do not separate paths; they are read as a part of the path"),
        ("Disallow: /c // the c", "only # begins a comment; the text is read as a part of the path"),
        ("Disallow: /d Disallow: /e", "the second field on the line is read as a part of the path"),
        ("User-agent: *Disallow: /", "the second field on the line is read as a part of the name"),
        (r"User-agent: *\nDisallow: /", "the second field on the line is read as a part of the name"),
        ("User-agent:", "it names no robot, so the rules below it apply to no robot"),
        ("User-agent: /", "it names no robot, so the rules below it apply to no robot"),
        ("User-agent: Google*", "* means all robots only if it stands alone; here it is a part of a name"),
        ("User-agent: All", "it names a robot of this name; * names all robots"),
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
        *("Disallow: *.pdf", "Disallow: /*?sort=", "Disallow: /x$", "Disallow: /a,b", "Disallow: /c // /d", "Allow: *"),
        *("User-agent: * Rex", "User-agent: Googlebot, Bingbot", "User-agent: Mozilla/5.0 (compatible; x/1)"),
        *(
            "Crawl-delay:",
            "Crawl-delay: 0",
            "Crawl-delay: .5",
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
    assert {doubt.line: doubt.means for doubt in found.first} == {
        1: "it stands above every User-agent line; only strict obeys it, for every robot",
        2: "it stands above every User-agent line; only strict obeys it, for every robot",
        3: "it stands above every User-agent line, so it applies to no robot",
    }


def test_rules_below_a_misspelt_user_agent_line_bind_its_robots_in_strict_alone() -> None:
    assert [str(doubt) for doubt in doubts("User Agent: x\nDisallow: /b\n").first] == [
        "line 1 (User Agent: x): the field is unknown; only strict obeys the line, as User-agent",
        "line 2 (Disallow: /b): it stands above every correct User-agent line; only strict obeys it, for the robots of"
        " the misspelt one",
    ]


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


def test_doubts_read_utf16_like_the_parser() -> None:
    (doubt,) = doubts("\ufeffUser-agent: *\nDisallow: private\n".encode("utf-16-le")).first
    assert doubt.line == 2


def test_doubts_ignore_what_the_parser_ignores() -> None:
    assert doubts(b"User-agent: *\n" + b"#" * (5 * 1024 * 1024) + b"\nDissallow: /x\n") == Doubts()


def test_a_file_of_many_names_costs_no_more_comparisons_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def compare(name: str, *_: object, **__: object) -> list[str]:
        compared.append(name)
        return []

    monkeypatch.setattr("crawler.robots.fields.nearest", compare)
    doubts("".join(f"name{'x' * (n % 30)}{n}: 1\n" for n in range(5000)) + "a" * 41 + ": 1\n")
    assert len(compared) == 1000
    doubts("Dissallow: /x\n" * 5000)
    assert compared[1000:] == ["dissallow"]
