"""Any text at all as a URL: a canonical form or NotCrawlable, and canonical forms stay as they are."""

from __future__ import annotations

import string

from hypothesis import example, given
from hypothesis import strategies as st

from crawler.url import (
    MAX_URL_CHARS,
    Joiner,
    NotCrawlable,
    canonicalise,
    host_of,
    registered_domain,
    scheme_of,
    split,
)

any_text = st.text(st.characters())
pieces = st.lists(
    st.sampled_from(
        ["http:", "https:", "HTTP:", "//", "/", "\\", "a.test", "b.co.uk", "[::1]", "[", "]", "127.1", "@", ":", ":80",
         ":8080", "?", "#", "..", ".", "%2e", "%", "%zz", "ü", "\ud800", "\x00", "\t", " ", "xn--", "x", "javascript:"]
    )
    | st.text(string.printable, max_size=3),
    max_size=12,
).map("".join)  # fmt: skip
texts = any_text | pieces
bases = st.none() | texts | st.sampled_from(["http://a.test/b/c?d", "https://[::1]:8443/"])


def canonical_or_none(text: str, base: str | None = None) -> str | None:
    try:
        return canonicalise(text, base)
    except NotCrawlable:
        return None


@given(texts, bases)
def test_only_not_crawlable_is_raised_and_what_is_canonical_stays_so(text: str, base: str | None) -> None:
    url = canonical_or_none(text, base)
    if url is not None:
        assert canonicalise(url) == url
        assert canonicalise(url, "http://elsewhere.test/x/") == url
        assert canonicalise(f"{url}#fragment") == url
        assert len(url) <= MAX_URL_CHARS
        assert url.isascii()
        assert not set(url) & set("# \t\r\n\x00")


hrefs = st.lists(
    st.sampled_from(["../", "./", "/", "//", "a", "b.html", ".", "..", ".x", "x.", "~", "%2e", "?", "q=1", "\\", ":",
                     " ", "é", "http://", "https:", "a.test", "A.TEST", ":80", ":8080", "u@", "1.2"])
    | st.text(string.printable.replace("#", ""), max_size=3),
    max_size=8,
).map("".join)  # fmt: skip


@given(hrefs, texts)
@example("../../a", "http://a.test/b/c")
@example("../a/b.html", "http://a.test/x/y/z?q=/w/")
def test_a_link_is_joined_as_the_standard_joins_it(href: str, page: str) -> None:
    base = canonical_or_none(page, "http://a.test:8080/b/c/d.html?e")
    if base is not None:
        try:
            joined = Joiner(base)(href)
        except NotCrawlable:
            joined = None
        assert joined == canonical_or_none(href, base)


@given(texts, bases)
def test_the_parts_of_a_canonical_url_make_it_up(text: str, base: str | None) -> None:
    url = canonical_or_none(text, base)
    if url is not None:
        site, path = split(url)
        assert site + path == url
        assert path.startswith("/")
        host = host_of(url)
        assert host_of(site) == host
        shown = f"[{host}]" if ":" in host else host
        _, hosted, port = site.removeprefix(f"{scheme_of(url)}:").partition(f"//{shown}")
        assert host
        assert hosted
        assert not port or 0 <= int(port.removeprefix(":")) <= 65535
        assert host.endswith(registered_domain(host))
