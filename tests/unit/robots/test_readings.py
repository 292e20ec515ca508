"""The deciding record and line in all three readings: docs/protocols.md, section 1, and its sources."""

import pytest

from crawler.model import Reading
from crawler.preferences.robots_tag import MAX_SITE_CHARS, MAX_SITE_RULES
from crawler.robots.readings import SiteRules, read
from crawler.robots.records import product_token
from crawler.robots.rules import Verdict
from crawler.robots.text import parse

DRAFT, RFC, STRICT = Reading.DRAFT1996, Reading.RFC9309, Reading.STRICT
EVERY = pytest.mark.parametrize("reading", list(Reading))
BOTH_OLD = pytest.mark.parametrize("reading", [DRAFT, STRICT])


def rules(text: str, token: str = "figtree", reading: Reading = STRICT, site: str = "http://a.example") -> SiteRules:
    return read(parse(text.encode()), token=token, reading=reading, site=site)


def allowed(text: str, path: str, token: str = "figtree", reading: Reading = STRICT) -> bool:
    return rules(text, token, reading).verdict(path).allowed


# --- 1996 draft, 3.2 and 3.2.1 ---

DRAFT_3_2 = """User-agent: webcrawler
User-agent: infoseek
Allow: /tmp/ok.html
Disallow: /tmp
Disallow: /user/foo
"""


@EVERY
@pytest.mark.parametrize("token", ["webcrawler", "infoseek"])
@pytest.mark.parametrize(
    ("path", "line"), [("/tmp/ok.html", 3), ("/tmp", 4), ("/tmp/a.html", 4), ("/user/foo.html", 5), ("/", None)]
)
def test_draft_3_2_example(reading: Reading, token: str, path: str, line: int | None) -> None:
    verdict = rules(DRAFT_3_2, token, reading).verdict(path)
    assert verdict.line == line
    assert verdict.allowed is (line in (3, None))


@EVERY
def test_draft_3_2_example_does_not_concern_others(reading: Reading) -> None:
    assert rules(DRAFT_3_2, "figtree", reading).verdict("/tmp/x") == Verdict(True, None, "", reading)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("FigTree/0.1 Robot/1.0 libwww-perl/5.04", "figtree"),
        ("figtree", "figtree"),
        (" Fig_Tree-2 (+http://x.example/)", "fig_tree-2"),
        ("*", ""),
        ("", ""),
    ],
)
def test_draft_3_2_1_product_token(header: str, token: str) -> None:
    assert product_token(header) == token


@EVERY
def test_draft_3_2_1_names_are_compared_case_insensitively(reading: Reading) -> None:
    text = "User-agent: FIGTREE\nDisallow: /a\n"
    assert not allowed(text, "/a", "FigTree/0.1 Robot/1.0", reading)


def test_draft_4_december_1996_a_record_applies_if_it_contains_the_token() -> None:
    text = "User-agent: my-FigTree-robot\nDisallow: /a\n"
    assert not allowed(text, "/a", reading=DRAFT)
    assert allowed(text, "/a", reading=RFC)
    assert not allowed(text, "/a", reading=STRICT)


def test_draft_3_2_1_the_first_record_with_the_token_wins_over_the_default() -> None:
    text = "User-agent: *\nDisallow: /d\n\nUser-agent: figtree\nDisallow: /1\n\nUser-agent: figtree\nDisallow: /2\n"
    for path, draft, rfc in [("/d", True, True), ("/1", False, False), ("/2", True, False)]:
        assert allowed(text, path, reading=DRAFT) is draft
        assert allowed(text, path, reading=RFC) is rfc
        assert allowed(text, path, reading=STRICT) is (draft and rfc)


def test_an_agent_without_a_name_gets_the_default_record() -> None:
    text = "User-agent: figtree\nDisallow: /1\n\nUser-agent: *\nDisallow: /2\n"
    for reading in Reading:
        assert allowed(text, "/1", "", reading)
        assert not allowed(text, "/2", "", reading)


# --- 1996 draft, 3.2.2 and 3.3; RFC 9309, 2.2.1 and 2.2.2 ---


def test_first_match_in_the_draft_longest_match_in_the_rfc() -> None:
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b\n"
    path = "/a/b/c"
    assert rules(text, reading=DRAFT).verdict(path) == Verdict(False, 2, "Disallow: /a", DRAFT)
    assert rules(text, reading=RFC).verdict(path) == Verdict(True, 3, "Allow: /a/b", RFC)
    assert rules(text, reading=STRICT).verdict(path) == Verdict(False, 2, "Disallow: /a", DRAFT)


def test_strict_names_the_reading_that_forbade() -> None:
    text = "User-agent: *\nAllow: /ok\nDisallow: /*?sort=\n"
    assert rules(text).verdict("/x?sort=1") == Verdict(False, 3, "Disallow: /*?sort=", RFC)
    assert rules(text).verdict("/ok") == Verdict(True, 2, "Allow: /ok", STRICT)
    assert rules(text).verdict("/x") == Verdict(True, None, "", STRICT)


def test_rfc9309_2_2_2_allow_wins_a_tie_wherever_it_stands() -> None:
    text = "User-agent: *\nDisallow: /page\nAllow: /page\n"
    assert rules(text, reading=RFC).verdict("/page").line == 3
    assert rules(text, reading=DRAFT).verdict("/page").line == 2


def test_draft_3_3_a_blank_line_ends_a_record_in_the_draft_only() -> None:
    text = "User-agent: *\nDisallow: /a\n\nDisallow: /b\n"
    assert allowed(text, "/b", reading=DRAFT)
    assert not allowed(text, "/b", reading=RFC)


@EVERY
@pytest.mark.parametrize("between", ["# a comment", "  # indented", "no colon", "Unknown: field", "Sitemap: /s.xml"])
def test_other_lines_do_not_end_a_record(reading: Reading, between: str) -> None:
    assert not allowed(f"User-agent: *\nDisallow: /a\n{between}\nDisallow: /b\n", "/b", reading=reading)


def test_draft_3_3_agents_without_a_rule_are_no_record() -> None:
    text = "User-agent: figtree\n\nUser-agent: *\nDisallow: /a\n"
    assert not allowed(text, "/a", reading=DRAFT)


@EVERY
def test_a_user_agent_line_after_a_rule_starts_the_next_record(reading: Reading) -> None:
    text = "User-agent: a\nDisallow: /a\nUser-agent: b\nDisallow: /b\n"
    assert not allowed(text, "/a", "a", reading)
    assert allowed(text, "/b", "a", reading)
    assert not allowed(text, "/b", "b", reading)


@EVERY
@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "User-agent: *\nDisallow:\n", "User-agent: *\nAllow:\nDisallow:\n"]
)
def test_a_file_without_rules_allows_everything(reading: Reading, text: str) -> None:
    assert rules(text, reading=reading).verdict("/") == Verdict(True, None, "", reading)


@EVERY
def test_an_empty_disallow_is_ignored_anywhere(reading: Reading) -> None:
    assert not allowed("User-agent: *\nDisallow:\nDisallow: /a\n", "/a", reading=reading)


@EVERY
def test_robots_txt_itself_is_always_allowed(reading: Reading) -> None:
    text = "User-agent: *\nDisallow: /\n"
    assert allowed(text, "/robots.txt", reading=reading)
    assert not allowed(text, "/robots.txt.bak", reading=reading)


def test_rfc9309_2_2_1_a_token_ends_where_a_version_begins() -> None:
    for value in ["figtree/2.0", "FigTree bot", "figtree*"]:
        assert not allowed(f"User-agent: {value}\nDisallow: /\n", "/", reading=RFC)
    for value in ["figtree2", "figtree-news", "fig"]:
        assert allowed(f"User-agent: *\nDisallow:\n\nUser-agent: {value}x\nDisallow: /\n", "/", "figtre", RFC)


def test_rfc9309_2_2_1_digits_count_if_a_group_has_the_token_with_them() -> None:
    text = "User-agent: bot2\nDisallow: /2\n\nUser-agent: bot\nDisallow: /1\n"
    assert not allowed(text, "/2", "bot2", RFC)
    assert allowed(text, "/2", "bot", RFC)
    assert not allowed(text, "/1", "bot", RFC)


# --- what a file looks like, and is not ---

SEEN = "User-agent: *\nDisallow: /a\nAllow: /b\nDisallow: /b/c\nCrawl-delay: 7\n"


@pytest.mark.parametrize(
    "body",
    [
        SEEN.replace(" ", "\xa0").encode(),
        SEEN.replace(" ", "\xa0").encode("latin-1"),
        SEEN.replace("\n", "\u3000\u200b\n").encode(),
        SEEN.replace("s", "\ufeffs").encode(),
        SEEN.replace("\n", "\x00\n").encode(),
        SEEN.replace("\n", "\r\n").encode("utf-16-le"),
        SEEN.encode("utf-16-be"),
    ],
)
def test_strict_also_obeys_the_displayed_text(body: bytes) -> None:
    asked = read(parse(body), token="figtree", reading=STRICT, site="http://a.example")
    assert [asked.verdict(path).allowed for path in ("/a", "/b", "/b/c", "/other")] == [False, True, False, True]
    assert (asked.verdict("/a").line, asked.crawl_delay_s) == (2, 7.0)


def test_the_displayed_text_opens_nothing() -> None:
    for opened in (
        "User-agent: Fig\u200bTree\nDisallow:\n",
        "User-agent: *\nAllow: /a\xa0\n",
    ):
        assert not allowed(f"{opened}\nUser-agent: *\nDisallow: /a\n", "/a")


def test_rfc9309_2_2_2_a_half_escape_is_compared_with_the_url_as_written() -> None:
    text = "User-agent: *\nDisallow: /*%\nDisallow: /x%2\nAllow: /a\n"
    for path, expected in [("/b%20c", False), ("/x%2f", False), ("/b", True), ("/x2", True), ("/a", True)]:
        assert allowed(text, path, reading=RFC) is expected, path
    assert allowed("User-agent: *\nDisallow: /%41\n", "/%2541", reading=RFC)


def test_the_evidence_is_printable_for_any_file() -> None:
    found = read(parse(b"User-agent: *\nDisallow: /\xe9\x1b\n"), token="x", reading=STRICT, site="http://a.ru")
    assert found.verdict("/%E9%1B") == Verdict(False, 2, "Disallow: /\ufffd\ufffd", DRAFT)


# --- FAQ, "How do I use /robots.txt": webcrawler, lycra, everybody else ---

FAQ = """# /robots.txt file for http://webcrawler.com/
# mail webmaster@webcrawler.com for constructive criticism

User-agent: webcrawler
Disallow:

User-agent: lycra
Disallow: /

User-agent: *
Disallow: /tmp
Disallow: /logs
"""


@EVERY
@pytest.mark.parametrize(
    ("token", "path", "expected"),
    [
        ("webcrawler", "/tmp", True),
        ("webcrawler", "/", True),
        ("lycra", "/", False),
        ("lycra", "/index.html", False),
        ("figtree", "/tmp/x", False),
        ("figtree", "/logs", False),
        ("figtree", "/", True),
    ],
)
def test_faq_webcrawler_and_lycra(reading: Reading, token: str, path: str, expected: bool) -> None:
    assert allowed(FAQ, path, token, reading) is expected


# --- FAQ, 'Revisited' (1996): several agents, several paths on a line ---

REVISITED_1 = "User-Agent: *\nDisallow: /\n\nUser-Agent: Lycos\nDisallow: /cgi-bin/ /tmp/\n"


@BOTH_OLD
@pytest.mark.parametrize(
    ("token", "path", "expected"),
    [
        ("figtree", "/", False),
        ("Lycos_Spider_(Rex)/1.0 libwww/3.1", "/", False),
        ("lycos", "/", True),
        ("lycos", "/cgi-bin/x", False),
        ("lycos", "/tmp/", False),
        ("lycos", "/tmp", True),
    ],
)
def test_revisited_example_1(reading: Reading, token: str, path: str, expected: bool) -> None:
    assert allowed(REVISITED_1, path, token, reading) is expected


REVISITED_2 = "User-Agent: Copernicus Fred\nDisallow:\n\nUser-Agent: * Rex\nDisallow: /t\n"


@BOTH_OLD
@pytest.mark.parametrize("token", ["copernicus", "fred", "rex", "figtree"])
@pytest.mark.parametrize("path", ["/tmp/", "/tea-time/", "/top-cat.txt", "/traverse.this"])
def test_revisited_example_2(reading: Reading, token: str, path: str) -> None:
    assert allowed(REVISITED_2, path, token, reading) is (token in ("copernicus", "fred"))


REVISITED_3 = """# This is for every spider!
User-Agent: *
# stay away from this
Disallow: /spiders/not/here/ #and everything in it
Disallow: # a little nothing
Disallow: #This could be habit forming!
# Don't comments make code much more readable!!!
"""


@EVERY
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/spiders/not/here/", False),
        ("/spiders/not/here/really/", False),
        ("/spiders/not/here/yes/even/me.html", False),
        ("/spiders/not/", True),
        ("/spiders/not/her", True),
    ],
)
def test_revisited_example_3(reading: Reading, path: str, expected: bool) -> None:
    assert allowed(REVISITED_3, path, reading=reading) is expected


def test_a_disallow_is_a_list_only_if_every_part_starts_with_a_slash() -> None:
    text = "User-agent: *\nDisallow: /my files/x\n"
    assert allowed(text, "/my", reading=DRAFT)
    assert not allowed(text, "/my%20files/x", reading=DRAFT)
    assert allowed("User-agent: *\nDisallow: /a /b\n", "/b", reading=RFC)
    assert allowed("User-agent: *\nAllow: /a /b\nDisallow: /\n", "/a%20/b", reading=DRAFT)


# --- FAQ, the standard of 1994, examples 1 to 3 ---

CYBERWORLD = "# robots.txt for http://www.site.com\n\nUser-Agent: *\nDisallow: /cyberworld/map/ # infinite space\n"


@EVERY
def test_standard_1994_example_1(reading: Reading) -> None:
    text = CYBERWORLD + "Disallow: /tmp/ # these will soon disappear\n"
    assert not allowed(text, "/cyberworld/map/1", reading=reading)
    assert not allowed(text, "/tmp/1", reading=reading)
    assert allowed(text, "/cyberworld/", reading=reading)


@EVERY
def test_standard_1994_example_2(reading: Reading) -> None:
    text = CYBERWORLD + "\n# Cybermapper knows where to go\nUser-Agent: cybermapper\nDisallow:\n"
    assert not allowed(text, "/cyberworld/map/1", reading=reading)
    assert allowed(text, "/cyberworld/map/1", "cybermapper", reading)


@EVERY
def test_standard_1994_example_3(reading: Reading) -> None:
    assert not allowed("# robots.txt for http://www.site.com\n\nUser-Agent: *\nDisallow: /\n", "/x", reading=reading)


# --- docs/protocols.md, section 1, "Beyond the documents" ---


@pytest.mark.parametrize(
    ("lines", "delay_s"),
    [
        ("Crawl-delay: 2.5", 2.5),
        ("Crawl-delay: 0", 0.0),
        ("Crawl-delay: 1,5", 1.5),
        ("Crawl-delay: 10 Sec.", 10.0),
        ("Crawl-delay: '2min'", 120.0),
        *((f"Crawl-delay: 10 {unit}", None) for unit in ("ms", "sins", "mecs", "minecs", "monds")),
        ("Crawl-delay: 86400", 86400.0),
        ("Crawl-delay: 1\nCrawl-delay: 3", 3.0),
        ("Request-rate: 1/5", 5.0),
        ("Request-rate: 2/10m 0600-0845", 300.0),
        ("Request-rate: 1/1h\nCrawl-delay: 10", 3600.0),
        ("Crawl-delay: " + "9" * 400, 1e9),
        ("Crawl-delay: soon", None),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: nan", None),
        ("Request-rate: 0/5", None),
        ("Request-rate: 1/5x", None),
    ],
)
@EVERY
def test_crawl_delay(reading: Reading, lines: str, delay_s: float | None) -> None:
    found = rules(f"User-agent: *\n{lines}\nDisallow: /x\n", reading=reading)
    assert found.crawl_delay_s == delay_s


def test_strict_takes_the_larger_crawl_delay_of_both_readings() -> None:
    text = "User-agent: figtree\nCrawl-delay: 1\nDisallow: /a\n\nUser-agent: figtree\nCrawl-delay: 7\n"
    assert rules(text, reading=DRAFT).crawl_delay_s == 1
    assert rules(text, reading=RFC).crawl_delay_s == 7
    assert rules(text, reading=STRICT).crawl_delay_s == 7


@EVERY
def test_a_crawl_delay_for_another_agent_does_not_apply(reading: Reading) -> None:
    text = "User-agent: slowbot\nCrawl-delay: 3600\n\nUser-agent: *\nCrawl-delay: 1\n\nUser-agent: x\nDisallow: /\n"
    assert rules(text, reading=reading).crawl_delay_s == 1


@EVERY
def test_sitemaps_stand_anywhere_and_come_out_canonical(reading: Reading) -> None:
    text = (
        "Sitemap: HTTP://Other.example:80/s.xml\nUser-agent: x\nDisallow: /\nSitemap: /own.xml\n\nsitemap: /own.xml\n"
        "Sitemap:\nSitemap: ftp://a.example/s.xml\n"
    )
    assert rules(text, reading=reading).sitemaps == ("http://other.example/s.xml", "http://a.example/own.xml")


# --- draft-illyes-repext-03: Robots-Tag, as a line of robots.txt ---


@EVERY
def test_robots_tag_lines_stand_anywhere_and_separate_nothing(reading: Reading) -> None:
    text = (
        "Robots-Tag: *;nosnippet\nUser-agent: *\nrobots-tag: FigTree;noindex\nDisallow: /a\nRobots-Tag: *;nosnippet\n"
    )
    found = rules(text, reading=reading)
    assert found.robots_tag == "nosnippet, noindex"
    assert not found.verdict("/a").allowed


def test_the_rules_of_many_robots_tag_lines_are_bounded_and_lose_no_known_term() -> None:
    many = "".join(f"Robots-Tag: *;x{n};max-snippet={n}\n" for n in range(1_000))
    again = "Robots-Tag: figtree;NoIndex\nRobots-Tag: other;nofollow\n" * 100
    long = f"Robots-Tag: *;unavailable_after={'9' * MAX_SITE_CHARS}\n"
    kept = rules(f"{long}{many}{again}Robots-Tag: *;noarchive noai\n").robots_tag
    terms = kept.split(", ")
    assert terms[:4] == ["noindex", "noarchive", "noai", "max-snippet: 0"]
    assert len(terms) == MAX_SITE_RULES
    assert len(rules(f"Robots-Tag: *{';long' * 10_000}\n" + f"Robots-Tag: *;{'x' * 999}\n" * 9).robots_tag) < 1_100
    wide = "".join(f"Robots-Tag: *;{'x' * 999}{n}\n" for n in range(9))
    assert len(rules(wide).robots_tag) <= MAX_SITE_CHARS
