"""What holds for every file and URL: strict is the stricter of both, and matching is what the patterns say."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model import Reading
from crawler.robots import parse, read
from crawler.robots.paths import rfc_form, rfc_pattern

PATHS = st.text(st.sampled_from("/ab*$?%2Ff "), max_size=8).map(lambda tail: "/" + tail)
AGENTS = st.sampled_from(["*", "fig", "FigTree/1", "figtree2", "other", "* fig", "other fig", ""])
HOSTS = st.sampled_from(["a.ru", "b.ru", "http://a.ru", "http://b.ru", "b_b.ru", "a.ru:80", "a.ru:81"])
LINES = st.one_of(
    AGENTS.map("User-agent: {}".format),
    AGENTS.map("User-agent: {}".format),
    PATHS.map("Disallow: {}".format),
    PATHS.map("Allow: {}".format),
    st.tuples(PATHS, PATHS).map(lambda paths: "Disallow: {} {}".format(*paths)),
    HOSTS.map("Host: {}".format),
    st.integers(0, 9).map("Crawl-delay: {}".format),
    st.sampled_from(["", "# comment", "Disallow:", "Unknown: x"]),
)
FILES = st.lists(LINES, max_size=14).map("\n".join)


@given(FILES, PATHS, st.sampled_from(["fig", "figtree", "rex", ""]))
def test_strict_never_allows_what_either_reading_forbids(text: str, path: str, token: str) -> None:
    file = parse(text.encode())
    draft, rfc, strict = (
        read(file, token=token, reading=reading, site="http://a.ru")
        for reading in (Reading.DRAFT1996, Reading.RFC9309, Reading.STRICT)
    )
    url_path = path.replace(" ", "%20")
    both = draft.verdict(url_path).allowed and rfc.verdict(url_path).allowed
    verdict = strict.verdict(url_path)
    assert both or not verdict.allowed
    # Strict alone forbids only mirrors whose Host line has a scheme before the name.
    assert verdict.allowed == both or (strict.main_site is not None and "Host: http://" in text)
    assert (strict.crawl_delay_s or 0) == max(draft.crawl_delay_s or 0, rfc.crawl_delay_s or 0)
    assert draft.main_site is None or strict.main_site is not None


@given(st.text(st.sampled_from("/ab*"), max_size=10), st.booleans(), st.text(st.sampled_from("/ab"), max_size=12))
def test_wildcards_mean_what_a_regular_expression_would(pattern: str, anchored: bool, path: str) -> None:
    expected = re.match(".*".join(map(re.escape, pattern.split("*"))) + ("$" if anchored else ""), path)
    compiled = rfc_pattern(pattern + "$" * anchored)
    assert compiled.matches(rfc_form(path)) == (expected is not None)
    assert compiled.octets == len(pattern) + anchored


@given(FILES, PATHS)
def test_rfc9309_the_longest_match_decides_and_allow_wins_a_tie(text: str, path: str) -> None:
    file = parse(f"User-agent: *\n{text}".replace("User-agent: ", "User-agent: *#").encode())
    form = rfc_form(path)
    matching = [
        (rfc_pattern(line.value).octets, line.field == "allow")
        for line in file.lines
        if line.field in ("allow", "disallow") and line.value and rfc_pattern(line.value).matches(form)
    ]
    if "%2F" in path.partition("?")[2] or "%2f" in path.partition("?")[2]:
        return  # such a path is compared in a second form too
    verdict = read(file, token="x", reading=Reading.RFC9309, site="http://a.ru").verdict(path)
    assert verdict.allowed is (max(matching)[1] if matching else True)


@pytest.mark.parametrize("reading", list(Reading))
@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("Disallow: /*a*a*a*a*a*a*b", "/" + "a" * 10_000),
        ("Disallow: /" + "*a" * 100_000 + "b", "/" + "a" * 10_000),
        ("Disallow: /*" + "a" * 4_000 + "b" + "a" * 4_000, "/" + "a" * 10_000),
        ("Disallow: /" + "%41" * 100_000, "/" + "%41" * 3_000),
        ("Disallow: " + "/a " * 100_000, "/" + "b" * 10_000),
        ("Host: " + "a-" * 200_000, "/"),
        ("Host: " + "a." * 200_000, "/"),
        ("Crawl-delay: " + "9" * 400_000, "/"),
        ("Mobile-agent-server: /" + " " * 400_000 + "x", "/"),
        ("Request-rate: 1/5" + " " * 400_000 + "\x00", "/"),
    ],
    ids=lambda value: value[:24],
)
def test_no_line_costs_more_than_its_length(reading: Reading, line: str, path: str) -> None:
    """Linear work takes some tenths of a second here; what backtracks would take hours."""
    started = time.process_time()
    rules = read(parse(f"User-agent: *\n{line}\n".encode()), token="x", reading=reading, site="http://a.ru")
    rules.verdict(path)
    rules.agent_server(path)
    assert time.process_time() - started < 10
