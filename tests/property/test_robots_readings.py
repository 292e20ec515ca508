"""For every file and URL, strict is the stricter of both readings, and matching follows the patterns."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model import Reading
from crawler.robots.paths import rfc_form, rfc_pattern
from crawler.robots.readings import read
from crawler.robots.text import parse
from tests.fuzz import FILES, TARGETS, URL_PATHS, check_meant, check_strict, examples


@examples(500)
@given(TARGETS["strict"][0])
def test_strict_never_allows_what_either_reading_forbids(case: tuple[str, str, str]) -> None:
    check_strict(case)


@examples(300)
@given(TARGETS["meant"][0])
def test_no_mended_line_opens_what_strict_closes_without_it(case: tuple[str, str, str]) -> None:
    check_meant(case)


@given(st.text(st.sampled_from("/ab*"), max_size=10), st.booleans(), st.text(st.sampled_from("/ab"), max_size=12))
def test_wildcards_mean_what_a_regular_expression_would(pattern: str, anchored: bool, path: str) -> None:
    expected = re.match(".*".join(map(re.escape, pattern.split("*"))) + ("$" if anchored else ""), path)
    compiled = rfc_pattern(pattern + "$" * anchored)
    assert compiled.matches(rfc_form(path)) == (expected is not None)
    assert compiled.octets == len(pattern) + anchored


@given(FILES, URL_PATHS.filter(lambda path: "%2F" not in path.upper() and "?" not in path))
def test_rfc9309_the_longest_match_decides_and_allow_wins_a_tie(text: str, path: str) -> None:
    text = re.sub("%(?![0-9A-F]{2})", "", text)  # half escapes are compared in another form too
    file = parse(re.sub("(?i)user-agent: ?", "User-agent: *#", f"User-agent: *\n{text}").encode())
    form = rfc_form(path)
    matching = [
        (rfc_pattern(line.value).octets, line.field == "allow")
        for line in file.lines
        if line.field in ("allow", "disallow") and line.value and rfc_pattern(line.value).matches(form)
    ]
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
