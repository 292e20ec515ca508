"""For any robots.txt, the doubts are few, short, printable and true."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from crawler.model import Reading
from crawler.robots.doubts import MAX_DOUBTS, doubts_about
from crawler.robots.readings import read
from crawler.robots.text import parse

LINES = st.sampled_from(
    [
        *(
            "",
            "#",
            "User-agent: *",
            "User-agent: a",
            "User-agent:",
            "User-agent: a*",
            "Useragent: *",
            "NoDisallow: /a",
            "User agent *",
        ),
        *(
            "Disallow: /",
            "Disallow: a",
            "Disallow: $",
            "Disallow: *a",
            "Disallow: %2Fa",
            "Disallow: /a, /b",
            "Allow: /a",
        ),
        *("Allow: a", "Allow: %2F", "Dissallow: /", "Disallow /a", "Disallow /a: b", "Sitemap: /s", "Noindex: /a"),
        *("Crawl-delay: 1,5", "Crawl-delay: 3", "Crawl-delay 9", "Request-rate: 1", "Host: b.ru", "Disallow: ? /a"),
    ]
)
FILES = st.lists(LINES, max_size=12)
PATHS = st.text(st.sampled_from("/ab%2Ff?*$, "), max_size=6).map(lambda tail: "/" + tail)
STRICT_ALONE = "only strict obeys"
VOID = ("ignored", "applies to no robot")


@given(st.one_of(st.binary(max_size=400), FILES.map(lambda lines: "\r".join(lines).encode())))
@example(b"Disallow: \xff\x00\nDisallow\xff /\n" * 30)
@example(b"\xff\xfeDisallow")
def test_any_bytes_have_few_short_doubts(body: bytes) -> None:
    found = doubts_about(body)
    assert len(found.first) == min(found.count, MAX_DOUBTS)
    assert all(str(doubt).isprintable() and len(str(doubt)) < 250 for doubt in found.first)
    numbers = [doubt.line for doubt in found.first]
    assert numbers == sorted(set(numbers))
    assert found == doubts_about(body + b"\n# the end")


@given(FILES, PATHS, st.sampled_from(list(Reading)))
@example(["User-agent: *", "Disallow: a", "User-agent: *", "Crawl-delay: 3"], "/", Reading.DRAFT1996)
def test_a_line_reported_as_ineffective_decides_nothing(lines: list[str], path: str, reading: Reading) -> None:
    """Without it, or empty, the file says the same: a rule without an effect still ends a list of user agents."""
    without = list(lines)
    for doubt in doubts_about("\n".join(lines).encode()).first:
        at = doubt.line - 1
        field, colon, _ = lines[at].partition(":")
        if any(word in doubt.means for word in VOID):
            without[at] = "#"
        elif STRICT_ALONE in doubt.means and reading is not Reading.STRICT:
            without[at] = field + colon if colon else "#"
        elif "nothing" in doubt.means or "no pause" in doubt.means:
            without[at] = field + colon
    one, other = (
        read(parse("\n".join(file).encode()), token="a", reading=reading, site="http://a.ru")
        for file in (lines, without)
    )
    assert one.verdict(path) == other.verdict(path)
    assert (one.crawl_delay_s, one.main_site) == (other.crawl_delay_s, other.main_site)
