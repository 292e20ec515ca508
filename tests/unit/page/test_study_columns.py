"""What studies need of a page: its declared language, the hash of its text, its resources, its headers."""

from __future__ import annotations

import json

import pytest

from crawler.engine.crawl_settings import KEPT_HEADERS
from crawler.model import Headers, PageFacts, Reading, Resource
from crawler.page.directives import SITE_TAG
from crawler.page.headers import MAX_HEADER_CHARS, header_facts, kept_headers
from crawler.page.html import MAX_RESOURCE_HOSTS, read_page

RESOURCES = """
<base href="https://www.a.test/dir/">
<script src="https://cdn.b.test/x.js"></script><script src="//cdn.b.test/y.js"></script><script>inline()</script>
<link rel="preload stylesheet" href="style.css"><link rel=icon href="https://icons.b.test/i.png">
<p><img src="/pixel.gif"><img src="data:image/gif;base64,R0lGODlh"><img alt=none>
<iframe src="https://video.c.test/embed"></iframe>
"""


def page(html: str, headers: Headers = (), *, resources: bool = False) -> PageFacts:
    return read_page(
        html.encode(),
        url="http://a.test/",
        headers=headers,
        charset="utf-8",
        token="FigTree",
        reading=Reading.STRICT,
        now=0.0,
        resources=resources,
    )


@pytest.mark.parametrize(
    ("html", "header", "expected"),
    [
        ("<html lang=de-AT><meta http-equiv=content-language content=fr>", "en", "de-AT"),
        ("<html lang='' xml:lang=pt-BR>", None, "pt-BR"),
        ("<meta http-equiv=Content-Language content=' fr '>", "en", "fr"),
        ("<meta http-equiv=content-language content='fr, de'>", "en", "en"),
        ("<p>", "en", "en"),
        ("<p>", "en, de", None),
        ("<html lang='no such language'>", None, None),
        ("<html lang=de><meta name=robots content=noindex>", None, None),
    ],
)
def test_the_declared_language(html: str, header: str | None, expected: str | None) -> None:
    headers = () if header is None else (("Content-Language", header),)
    assert page(html, headers).language == expected


def test_a_document_that_is_no_html_has_the_language_of_its_header() -> None:
    facts = header_facts(
        (("content-language", "nl"),), url="http://a.test/", token="FigTree", reading=Reading.STRICT, now=0.0
    )
    assert facts.language == "nl"


def test_the_hash_of_the_text_is_that_of_pages_with_other_mark_up() -> None:
    one, other = page("<title>T</title><p>Some <b>text</b>"), page("<title>T</title><div class=x>Some text<br></div>")
    assert one.text_sha256 == other.text_sha256 is not None
    assert page("<title>T</title><p>Other text").text_sha256 != one.text_sha256
    assert page("<meta name=robots content=noindex>Some text").text_sha256 is None


def test_resources_are_counted_by_kind_and_host() -> None:
    facts = page(RESOURCES, resources=True)
    assert facts.resources == (
        Resource("frame", "video.c.test", 1),
        Resource("image", "www.a.test", 1),
        Resource("script", "cdn.b.test", 2),
        Resource("style", "www.a.test", 1),
    )


def test_resources_are_kept_on_request_and_only_of_pages_that_may_be_kept() -> None:
    assert page(RESOURCES).resources == ()
    assert page(f"<meta name=robots content=noindex>{RESOURCES}", resources=True).resources == ()


def test_resources_are_bounded() -> None:
    hosts = "".join(f"<img src=http://h{number}.test/>" for number in range(MAX_RESOURCE_HOSTS + 9))
    assert len(page(hosts, resources=True).resources) == MAX_RESOURCE_HOSTS


SENT: Headers = (
    ("Server", "nginx\x1b"),
    ("X-Robots-Tag", "noarchive"),
    ("x-robots-tag", "figtree: nofollow"),
    ("Set-Cookie", "session=1"),
    ("X-Powered-By", "PHP"),
    (SITE_TAG, "noindex"),
)


def test_headers_are_kept_by_name() -> None:
    assert json.loads(kept_headers(SENT, KEPT_HEADERS) or "") == {
        "server": "nginx\ufffd",
        "x-robots-tag": "noarchive, figtree: nofollow",
    }
    assert kept_headers(SENT, ("etag",)) is None


def test_all_headers_are_kept_on_request_but_no_cookie() -> None:
    kept = json.loads(kept_headers((*SENT, ("Content-Security-Policy", "a" * 9_000)), ("*",)) or "")
    assert kept.keys() == {"server", "x-robots-tag", "x-powered-by", "content-security-policy"}
    assert len(kept["content-security-policy"]) == MAX_HEADER_CHARS
