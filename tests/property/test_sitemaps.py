"""For any sitemap, reading never fails, keeps its limits, and loses nothing before a cut."""

import gzip

from hypothesis import example, given
from hypothesis import strategies as st

from crawler.dates import any_date
from crawler.sitemaps.findings import SitemapKind, SitemapLimits
from crawler.sitemaps.read import read_sitemap
from crawler.url import canonicalise

URL = "http://a.example/dir/sitemap.xml"
NAMES = ["urlset", "url", "loc", "lastmod", "sitemapindex", "sitemap", "rss", "item", "link", "guid", "feed", "entry"]
TAGS = [tag for name in NAMES for tag in (f"<{name}>", f"</{name}>", f"<x:{name}>")]
TEXTS = [
    "http://a.example/",
    "/x",
    "2002-09-07",
    "&amp;",
    "&x;",
    "&",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "\n",
    "\r",
    " ",
]
MARKUP = [
    "<?xml version='1.0' encoding='",
    "koi8-r",
    "utf-16",
    "'?>",
    "<!DOCTYPE x",
    "[",
    "<link href='/a' rel='",
    "'>",
]
FRAGMENTS = [text.encode() for text in (*TAGS, *TEXTS, *MARKUP)] + [b"\x1f\x8b", b"\xff\xfe", b"\x00", b"\xfc"]
BODIES = st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(b"".join))
PATHS = st.lists(st.text("ab/?=&ü'\"<", max_size=6), max_size=12)


def written(paths: list[str]) -> bytes:
    """A urlset of these paths."""
    escaped = (path.replace("&", "&amp;").replace("<", "&lt;") for path in paths)
    return f"<urlset>{''.join(f'<url><loc>http://a.example/{path}</loc></url>' for path in escaped)}</urlset>".encode()


@given(BODIES, st.booleans(), st.integers(1, 3), st.integers(1, 150))
@example(b"<?xml version='1.0' encoding='gb2312'?><urlset><url><loc>/\xff</loc></url></urlset>", False, 3, 150)
def test_any_bytes_can_be_read_within_limits(body: bytes, packed: bool, entries: int, size: int) -> None:
    body = gzip.compress(body) if packed else body
    limits = SitemapLimits(max_entries=entries, max_bytes=size)
    sitemap = read_sitemap(body, url=URL, limits=limits)
    found = [entry.url for entry in sitemap.entries] + list(sitemap.sitemaps)
    assert len(found) <= entries
    assert found == list(dict.fromkeys(canonicalise(url) for url in found))
    assert sitemap.kind is not SitemapKind.UNKNOWN or (not found and sitemap.notes)
    assert not sitemap.truncated or sitemap.notes
    assert all(note.isprintable() for note in sitemap.notes)


@given(PATHS, st.integers(0, 400), st.booleans())
def test_a_cut_loses_nothing_before_it(paths: list[str], cut: int, packed: bool) -> None:
    body = written(paths)
    whole = read_sitemap(body, url=URL)
    meant = [canonicalise(f"http://a.example/{path}") for path in paths]
    assert [entry.url for entry in whole.entries] == list(dict.fromkeys(meant))
    part = read_sitemap(gzip.compress(body[:cut]) if packed else body[:cut], url=URL)
    assert part.entries == whole.entries[: len(part.entries)]
    assert len(part.entries) == len(set(meant[: body[:cut].count(b"</url>")]))
    assert part.truncated == (8 <= cut < len(body))


@given(st.one_of(st.text(max_size=70), st.text("0123456789-:TZ+. SatSep,GM", max_size=35)))
def test_any_text_is_a_date_or_none(text: str) -> None:
    time = any_date(text)
    assert time is None or abs(time) < 3e11
