"""Sitemaps that are bombs, circles, or the voice of somebody else."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

from crawler.demo.pages import Page, plain, redirect
from tests.hostile.behaviour import (
    FETCHED,
    FORBIDDEN,
    HEALTHY,
    NOTHING,
    PORT,
    SITEMAP,
    Behaviour,
    End,
    Exchange,
    Reply,
    answer,
    drips,
    excluded,
    failed,
)
from tests.hostile.html import EVIL

_HEAD = "<?xml version='1.0'?>"
_SET = f"{_HEAD}<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
_XML_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n<urlset>"
#: The lowest level is five times as fast, and every process of the tests that loads this module makes it.
_BOMB = gzip.compress(b"<urlset>" + b" " * 80_000_000, compresslevel=1, mtime=0)
_LAUGHS = "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))


def _xml(text: str | bytes) -> Page:
    return Page(text, content_type="application/xml")


def _sitemap(
    name: str, what: str, reply: Reply, end: End, more: Mapping[str, Reply] = NOTHING, *, quick: bool = False
) -> Behaviour:
    """A host whose robots.txt names /map.xml, and closes /listed/."""
    host = f"sitemap-{name}"
    robots = plain(f"User-agent: *\nDisallow: /listed/\nSitemap: http://{host}.test:{PORT}/map.xml\n")
    site = {"/robots.txt": robots, "/": Page("<title>Start</title>"), "/map.xml": reply, **more}
    return Behaviour(host, what, {"/": FETCHED, "/map.xml": end}, site, quick=quick, most_requests=14)


def _set_of(*locs: str, more: str = "") -> Page:
    """A sitemap of these URLs, each with ``more``."""
    urls = "".join(f"<url><loc>{loc}</loc>{more}</url>" for loc in locs)
    return _xml(f"{_SET}{urls}</urlset>")


def _listed(name: str, number: int = 1) -> str:
    return f"http://sitemap-{name}.test:{PORT}/listed/{number}"


def _index_of(loc: str) -> str:
    return f"{_HEAD}<sitemapindex><sitemap><loc>{loc}</loc></sitemap></sitemapindex>"


async def _index(exchange: Exchange) -> None:
    """An index of the next index."""
    number = int(exchange.path.partition("?")[2] or 0)
    exchange.status = 200
    text = _index_of(f"http://{exchange.host}:{exchange.port}/map.xml?{number + 1}")
    await exchange.send(answer(text.encode(), kind=b"application/xml"))


BEHAVIOURS: tuple[Behaviour, ...] = (
    _sitemap("laughs", "defines a billion laughs",
             _xml(f"{_HEAD}<!DOCTYPE x [<!ENTITY a0 'ha'>{_LAUGHS}]><urlset><url><loc>&a9;</loc></url></urlset>"),
             SITEMAP, quick=True),
    _sitemap("external", "includes a file of the crawler's machine",
             _xml(f"{_HEAD}<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>http://x/&e;</loc>"),
             SITEMAP, quick=True),
    _sitemap("gzip-bomb", "is a bomb of gzip",
             Page(_BOMB, content_type="application/gzip"), SITEMAP, quick=True),
    _sitemap("coded-bomb", "is a bomb of a content coding",
             answer(_BOMB, b"Content-Encoding: gzip", kind=b"application/xml"), End("fetched", frozenset({"sitemap"}))),
    _sitemap("index-circle", "is an index of itself",
             _xml(_index_of(f"http://sitemap-index-circle.test:{PORT}/map.xml")), SITEMAP),
    _sitemap("index-endless", "is an index of an index without end", _index, SITEMAP, quick=True),
    _sitemap("many", "lists 20,000 forbidden pages", _set_of(*(_listed("many", n) for n in range(20_000))), SITEMAP),
    _sitemap("foreign", "lists a healthy site's forbidden page", _set_of(HEALTHY + FORBIDDEN), SITEMAP),
    _sitemap("metadata", "lists the address of a cloud's metadata", _set_of("http://169.254.169.254/"), SITEMAP),
    _sitemap("nested", "nests 200,000 elements", _xml(_HEAD + "<a>" * 200_000), SITEMAP),
    _sitemap("attributes", "has a tag of 2 MB", _xml(_HEAD + "<urlset " + "a='b' " * 300_000 + ">"), SITEMAP),
    _sitemap("broken", "is broken after its first entry",
             _xml(f"{_SET}<url><loc>{_listed('broken')}</loc></url><url><lo"), SITEMAP),
    _sitemap("evil", "writes on the terminal by its entries",
             Page(f"http://sitemap-evil.test/{EVIL}\n{EVIL}\n", content_type="text/plain"), SITEMAP, quick=True),
    _sitemap("utf16", "is in UTF-16 and says UTF-8",
             _xml((_HEAD.replace("?>", " encoding='utf-8'?>") + "<urlset/>").encode("utf-16")), SITEMAP),
    _sitemap(
        "encoding", "names an encoding that there is none",
        _xml("<?xml version='1.0' encoding='evil'?><urlset/>"), SITEMAP,
    ),
    _sitemap("dates", "has dates of the year 99999",
             _set_of(_listed("dates"), more="<lastmod>99999-99-99T99:99:99</lastmod>"), SITEMAP),
    _sitemap("drips", "drips entries without end", drips(_XML_HEAD, b"<url><loc>x</loc></url>"), failed("timeout")),
    _sitemap("redirect-circle", "redirects in a circle", redirect("/map2.xml"), failed("redirect_circle"),
             {"/map2.xml": redirect("/map.xml")}),
    _sitemap("none", "is missing", Page(status=404), excluded("no_sitemap")),
    _sitemap("page", "is a page", Page("<title>Map</title>"), FETCHED),
)  # fmt: skip
