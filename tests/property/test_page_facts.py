"""Properties of every page: reading never fails, the facts are bounded, and repeating a directive changes nothing."""

from hypothesis import given
from hypothesis import strategies as st

from crawler.model import PageFacts, Reading
from crawler.page.charset import to_utf8
from crawler.page.directives import directives, x_robots_tag
from crawler.page.html import read_page
from crawler.url import canonicalise

READINGS = st.sampled_from(list(Reading))
TERMS = st.sampled_from(["all", "none", "index", "noindex", "follow", "nofollow", "noarchive", "max-snippet:-1", "x"])
CONTENTS = st.lists(TERMS, max_size=4).map(", ".join)
HREFS = st.one_of(
    st.text(max_size=12), st.sampled_from(["x", "x#y", "#y", "../x", "//b.test", "mailto:x", "http://[", "?q", ""])
)
PIECES = st.one_of(
    st.text(max_size=10).map(str.encode),
    st.binary(max_size=6),
    HREFS.map(lambda href: f'<a href="{href}" rel=nofollow>x'.encode()),
    HREFS.map(lambda href: f"<base href='{href}'>".encode()),
    HREFS.map(lambda href: f"<link rel=canonical href='{href}'>".encode()),
    HREFS.map(lambda href: f"<meta http-equiv=refresh content='0;url={href}'>".encode()),
    CONTENTS.map(lambda content: f"<meta name=robots content='{content}'>".encode()),
    st.sampled_from(
        b"<title> </title> <svg> <!-- --> <template> </a> <frameset> <meta/charset=utf-16> <frame/src=f> <a/href> "
        b"<meta/content> <meta/name=url/content='http://c.test/#x'> <math> <a/xlink:href=x> <base/xlink:href=x> "
        b"<link/xlink:href=x/rel=next> <frame/xlink:src=x> <iframe/xlink:href=x> <area/xlink:href=x>".split()
    ),
)
PAGES = st.lists(PIECES, max_size=12).map(b"".join)
HEADERS = st.lists(st.tuples(st.sampled_from(["Link", "X-Robots-Tag"]), st.text(max_size=40)), max_size=3).map(tuple)


def page(body: bytes, headers: tuple[tuple[str, str], ...], charset: str | None, reading: Reading) -> PageFacts:
    return read_page(
        body, url="http://a.test/d/", headers=headers, charset=charset, token="figtree", reading=reading, now=0.0
    )


@given(PAGES, HEADERS, st.none() | st.text(max_size=10) | st.just("utf-8"), READINGS)
def test_a_page_is_read_whatever_it_is(
    body: bytes, headers: tuple[tuple[str, str], ...], charset: str | None, reading: Reading
) -> None:
    facts = page(body, headers, charset, reading)
    targets = [link.url for link in facts.links]
    assert len(targets) == len(set(targets))
    for url in (*targets, facts.base_url, *filter(None, (facts.canonical_url, facts.meta_url))):
        assert canonicalise(url) == url
    assert all(len(link.anchor) <= 200 and link.anchor == " ".join(link.anchor.split()) for link in facts.links)
    assert facts.follow or not targets
    assert facts.index or (facts.title, facts.description, facts.keywords) == (None, None, None)


@given(st.lists(CONTENTS, max_size=4), READINGS)
def test_directives_said_twice_or_in_another_order_say_the_same(contents: list[str], reading: Reading) -> None:
    def verdict(said: list[str]) -> tuple[bool, bool]:
        found = directives([("META robots", content) for content in said], reading=reading, now=0.0)
        return found.index, found.follow

    assert verdict(contents) == verdict(contents + contents) == verdict(contents[::-1]) == verdict([",".join(contents)])


@given(st.lists(CONTENTS, max_size=4))
def test_strict_never_allows_what_the_draft_forbids(contents: list[str]) -> None:
    tags = [("META robots", content) for content in contents]
    strict = directives(tags, reading=Reading.STRICT, now=0.0)
    draft = directives(tags, reading=Reading.DRAFT1996, now=0.0)
    assert strict.index <= draft.index
    assert strict.follow <= draft.follow


@given(st.lists(st.text(max_size=60), max_size=3), st.text(max_size=8), READINGS, st.floats(0, 4e9))
def test_any_header_is_read(values: list[str], token: str, reading: Reading, now: float) -> None:
    assert len(directives(x_robots_tag(values, token), reading=reading, now=now).evidence) <= len(values)


@given(CONTENTS)
def test_a_header_means_what_the_same_tag_means(content: str) -> None:
    from_header = directives(x_robots_tag([content], "figtree"), reading=Reading.STRICT, now=0.0)
    from_tag = directives([("META robots", content)], reading=Reading.STRICT, now=0.0)
    assert (from_header.index, from_header.follow) == (from_tag.index, from_tag.follow)


@given(st.binary(max_size=200), st.none() | st.text(max_size=12) | st.sampled_from(["utf-8", "gbk", "iso-2022-jp"]))
def test_what_the_parser_gets_is_always_utf_8(body: bytes, charset: str | None) -> None:
    assert to_utf8(body, charset)[1].decode("utf-8") is not None
