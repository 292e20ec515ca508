"""What only ``strict`` closes or opens: docs/protocols.md, section 1, "What an owner clearly meant"."""

from __future__ import annotations

import pytest

from crawler.model import Reading
from crawler.robots import readings, text
from crawler.robots.meant import meant_path
from crawler.robots.readings import SiteRules, read
from crawler.robots.rules import Verdict
from crawler.robots.text import octets_read, parse

DRAFT, RFC, STRICT = Reading.DRAFT1996, Reading.RFC9309, Reading.STRICT
SITE = "http://www.own.example"


def rules(text: str, reading: Reading = STRICT, site: str = SITE, token: str = "figtree") -> SiteRules:
    return read(parse(text.encode()), token=token, reading=reading, site=site)


def closes_in_strict_alone(text: str, path: str, site: str = SITE) -> bool:
    of = {reading: rules(text, reading, site).verdict(path).allowed for reading in Reading}
    assert of[DRAFT], "the draft reading must not change"
    assert of[RFC], "the rfc9309 reading must not change"
    return not of[STRICT]


# --- paths ---


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("admin.cfm", "/admin.cfm"),
        ("admin.cfm", "/admin.cfm?x=1"),
        ("reports/", "/reports/1"),
        ("us/*/private", "/us/en/private"),
        ("./private", "/private"),
        ("?sort=", "/list?sort=up"),
        (".pdf$", "/a/b.pdf"),
        ("https://www.own.example/x", "/x/y"),
        ("http://www.own.example/x", "/x"),
        ("HTTP://WWW.OWN.example:80/x", "/x"),
        ("https://own.example/x", "/x"),
        ("https://www.own.example", "/anything"),
        ("https://www.own.example/*?print", "/a?print"),
        ("www.own.example/x/", "/x/"),
        ("own.example/x/", "/x/"),
    ],
)
def test_a_path_without_a_slash_or_a_url_of_the_site_closes_in_strict_alone(value: str, path: str) -> None:
    text = f"User-agent: *\nDisallow: {value}\n"
    assert closes_in_strict_alone(text, path)
    assert closes_in_strict_alone(text, "/other") is value.endswith("example")


@pytest.mark.parametrize(
    "value",
    ["https://other.example/x", "https://own.example:8443/x", "https://x.own.example/x", "mailto:", "$", "http://"],
)
def test_a_url_of_another_site_and_what_is_unclear_close_nothing(value: str) -> None:
    assert not any(closes_in_strict_alone(f"User-agent: *\nDisallow: {value}\n", path) for path in ("/", "/x"))


@pytest.mark.parametrize("end", ["*", "?", " "])
def test_a_path_of_many_dots_is_read_in_one_pass(end: str) -> None:
    """A host that is sought by trying every dot would take hours for this line."""
    dots = "a." * 1_000_000 + end + "x"
    assert meant_path(dots, SITE) == f"/{dots}"


def test_the_evidence_shows_the_line_as_written_and_as_read() -> None:
    verdict = rules("User-agent: *\nDisallow: admin.cfm\n").verdict("/admin.cfm")
    assert verdict == Verdict(False, 2, "Disallow: admin.cfm (read as Disallow: /admin.cfm)", STRICT)


def test_a_mended_allow_line_opens_nothing_that_another_line_closes() -> None:
    text = "User-agent: *\nAllow: public\nAllow: https://www.own.example/\nDisallow: /\n"
    assert not rules(text).verdict("/public").allowed


def test_a_mended_allow_line_excepts_from_mended_rules() -> None:
    text = "User-agent: *\nAllow: admin/public\nDisallow: admin\n"
    assert rules(text).verdict("/admin/public").allowed
    assert closes_in_strict_alone(text, "/admin/x")


# --- rules without a robot ---


@pytest.mark.parametrize("rest", ["", "\nUser-agent: figtree\nDisallow:\n", "\nUser-agent: other\nDisallow: /o\n"])
def test_rules_above_or_without_a_user_agent_line_bind_every_robot(rest: str) -> None:
    text = f"Disallow: /a\nAllow: /b/c\nDisallow: /b\n{rest}"
    assert closes_in_strict_alone(text, "/a")
    assert closes_in_strict_alone(text, "/b")
    assert not closes_in_strict_alone(text, "/b/c")
    assert not closes_in_strict_alone(text, "/o")


def test_a_pause_above_every_user_agent_line_or_behind_it_is_kept() -> None:
    for file in ("Crawl-delay: 9\nUser-agent: *\nDisallow: /a\n", "User-agent: * Crawl-delay: 9 Disallow: /a"):
        assert [rules(file, reading).crawl_delay_s for reading in (DRAFT, RFC, STRICT)] == [None, None, 9.0]


# --- misspelt fields and missing colons ---


@pytest.mark.parametrize(
    "text",
    [
        "User Agent: *\nDisallow: /x\n",
        "Useragent: figtree\nDisallow: /x\n",
        "User_agent: *\nDisallow: /x\n",
        "User-agents: *\nDisallow: /x\n",
        "User-agent *\nDisallow: /x\n",
        "User-agent: *\nDisalow: /x\n",
        "User-agent: *\nDissallow: /x\n",
        "User-agent: *\nDis allow: /x\n",
        "User-agent: *\nDisallows: /x\n",
        "User-agent: *\n- Disallow: /x\n",
        "User-agent: *\nDisallow /x\n",
        "User-agent: *\nDisallow /x /y\n",
        "User-agent: *\nDisallow; /x\n",
        "User-agent: *\nDisallow\uff1a/x\n",
        "User-agent: *\nDisallow https://www.own.example/x\n",
        "User Agent: *\nDisallow x\nDisalow: x\n",
        "User\u00a0Agent: *\nDisalow:\u00a0/x\n",
        "User-agent: * Disallow: /x",
        "User-agent:*Disallow:/x",
        "User-agent: * Crawl-delay: 9 Disallow: /x Sitemap: http://www.own.example/s.xml Host: www.own.example",
        "User Agent: *; Disalow: /y, Disallow: /x",
        r"User-agent: *\nDisallow: /x\nDisallow: /y",
        "User-agent: *\nDisallow: /y Allow: /z Disallow: /x\n",
        "User-agent: *\nDisallow: /x, /y\n",
        "User-agent: *\nDisallow: /y,/x,/z\n",
        "User-agent: *\nDisallow: /x; /y\n",
        "User-agent: *\nDisallow: '/x'\n",
        "User-agent: *\nDisallow: /x // private\n",
        'User-agent: "*"\nDisallow: /x\n',
        "User-agent: **\nDisallow: /x\n",
        "User-agent: other,*\nDisallow: /x\n",
        "User-agent: *, figtree\nDisallow: x\n\nUser-agent: figtree\nDisallow: /y\n",
        "User-agent: *, figtree\nDisallow: /y,/x\n\nUser-agent: figtree\nDisallow: /y\n",
        "User-agent: figtree *.*\nDisallow: x\n\nUser-agent: figtree\nDisallow: /y\n",
        "User-agent: *\nAllow: '/x'\nDisallow: x\n",
    ],
)
def test_misspelt_lines_that_a_person_reads_close_in_strict_alone(text: str) -> None:
    assert closes_in_strict_alone(text, "/x")


@pytest.mark.parametrize(
    "line",
    [
        *("NoDisallow: /x", "Disallow-old: /x", "xDisallow: /x", "//Disallow: /x", ";Disallow: /x", "# Disalow: /x"),
        *("Disallow the path /x", "Disallow", "Deny: /x", "Sitemaps: /x", '"disallow": /x', "Hots: b.ru"),
        *("Note: Disallow: /x", "User-agent: other Disallow: /x", "Disallow: /y (not /x)"),
        *(
            "Disallow: /*host:",
            "Disallow: /*;sitemap:x",
            "Disallow: /*allow:",
            "Disallow: *,host:",
            "Allow: /*disallow:/",
        ),
    ],
)
def test_lines_in_doubt_close_nothing(line: str) -> None:
    assert not closes_in_strict_alone(f"User-agent: *\nDisallow: /other\n{line}\n", "/x")


def test_a_misspelt_user_agent_line_frees_nobody_from_the_record_above() -> None:
    """Neither document knows that line, so the rule below it belongs to the record above."""
    text = "User-agent: *\nDisallow: /a\nUser Agent: other\nDisallow: /b\n"
    for reading in Reading:
        assert not rules(text, reading).verdict("/b").allowed


def test_a_mended_record_names_its_robot() -> None:
    text = "User Agent: figtree\nDisallow: /f\n\nUser Agent: other\nDisallow: /o\n"
    assert closes_in_strict_alone(text, "/f")
    assert not closes_in_strict_alone(text, "/o")


def test_a_misspelt_host_line_names_no_main_site() -> None:
    assert rules("User Agent: *\nHost: b.example\nDisalow: /x\n").main_site is None


def test_an_html_page_closes_nothing() -> None:
    for line in ("Disallow: x", "Disalow: /x", "Disallow: /x"):
        assert rules(f"<html>\n{line}\n").verdict("/x").allowed


# --- wildcards in Allow lines of the draft half ---


@pytest.mark.parametrize(
    ("allow", "path"),
    [
        ("/core/*.css", "/core/a/b.css?v=1"),
        ("/core/*.css$", "/core/a.css"),
        ("/$", "/"),
        ("/*?page=", "/core?page=2"),
        ("/%7Ea*%2f", "/~ab%2F"),
    ],
)
def test_strict_reads_wildcards_in_allow_lines_above_the_rule_that_closes(allow: str, path: str) -> None:
    text = f"User-agent: *\nAllow: {allow}\nDisallow: /\n"
    assert [rules(text, reading).verdict(path).allowed for reading in (DRAFT, RFC, STRICT)] == [False, True, True]
    assert rules(text).verdict(path).line == 2
    assert not rules(text).verdict("/other").allowed


def test_the_first_match_of_the_draft_still_decides() -> None:
    for first in ("Disallow: /", "Host: b.example\nDisallow: /"):
        text = f"User-agent: *\n{first}\nAllow: /$\n"
        assert rules(text, RFC).verdict("/").allowed
        assert not rules(text).verdict("/").allowed


def test_wildcards_in_disallow_lines_stay_text_in_the_draft_half() -> None:
    """The other half closes what they mean; their literal text closes too."""
    text = "User-agent: *\nDisallow: /a*\nAllow: /a*b$\n"
    assert not rules(text).verdict("/a*").allowed
    assert rules(text).verdict("/axb").allowed, "RFC 9309: the longer match; the draft: the first match is the Allow"


# --- long files ---


def test_strict_reads_five_megabytes_and_tells_where_the_last_whole_group_ends() -> None:
    filler = "User-agent: other\n" + f"Disallow: /{'filler' * 10}\n" * 10_000
    body = f"{filler}User-agent: *\nDisallow: /x\n".encode()
    assert 512 * 1024 < len(body) < 5 * 1024 * 1024

    of = {
        reading: read(parse(body, max_bytes=octets_read(reading)), token="figtree", reading=reading, site=SITE)
        for reading in Reading
    }
    assert [of[reading].verdict("/x").allowed for reading in (DRAFT, RFC, STRICT)] == [True, True, False]
    longer = parse(body * 8, max_bytes=octets_read(STRICT))
    assert longer.truncated
    (note,) = longer.notes
    assert note.startswith("longer than 5242880 bytes; the rest is ignored, and the group that begins in line ")
    assert note.endswith("(User-agent: other) may be incomplete")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_strict_closes_a_site_with_more_lines_than_are_read(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_BYTES", 4_096)
    for module in (text, readings):
        monkeypatch.setattr(module, "MAX_LINES", 1_000)
    lines = ["User-agent: *", *["Disallow: /a"] * 999, "Disallow: /b"]
    few, many = ((end.join(rules) + end).encode() for rules in (lines[:-1], lines))
    of = {
        reading: read(parse(many, max_bytes=octets_read(reading)), token="figtree", reading=reading, site=SITE)
        for reading in Reading
    }
    assert [of[reading].verdict("/x").allowed for reading in (DRAFT, RFC, STRICT)] == [True, True, False]
    verdict = of[STRICT].verdict("/x")
    assert (verdict.line, verdict.text) == (1_001, "more than 1,000 lines (Disallow: / is implied)")
    file = parse(many, max_bytes=octets_read(STRICT))
    assert [line.number for line in file.lines if line.text][-1] == 1_000
    assert file.notes == ("more than 1,000 lines: strict closes the whole site",)
    padded = b"User-agent: *\n" + b" # padding\n\n" * 1_000 + b"Disallow: /b\n"
    for body in (few, padded):
        assert not parse(body, max_bytes=octets_read(STRICT)).closes
    file = parse(few, max_bytes=octets_read(STRICT))
    assert read(file, token="figtree", reading=STRICT, site=SITE).verdict("/x").allowed


def test_all_lines_of_the_first_octets_are_read() -> None:
    body = b"\n" * 200_000 + b"User-agent: *\nDisallow: /b\n"
    file = parse(body, max_bytes=octets_read(STRICT))
    assert not file.closes
    assert not read(file, token="figtree", reading=STRICT, site=SITE).verdict("/b").allowed
