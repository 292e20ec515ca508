"""Attacks of one zone with many hosts, each to be crawled beside one healthy site (:mod:`tests.hostile.scenarios`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from crawler.demo.pages import Page, plain, redirect
from tests.hostile.behaviour import FORBIDDEN, HEALTHY, HTML, OK, PORT, Behaviour, Handler, Site, drips, floods, sends


def _zone(name: str, what: str, hosts: int, site: Site, at_accept: Handler | None = None) -> Behaviour:
    """A domain with so many hosts, at one address."""
    seeds = tuple(f"http://h{n}.{name}.test:{PORT}/" for n in range(hosts))
    return Behaviour(name, what, {}, site, seeds, at_accept=at_accept)


def _header(name: bytes, value: bytes) -> bytes:
    """8 MB of one header."""
    return OK + (name + b": " + value * (30_000 // len(value)) + b"\r\n") * 270


_START = {"/": Page("<title>Start</title>")}
_START_OF_MANY = {"/": Page("".join(f"<a href=/{n}>" for n in range(200))), "/robots.txt": plain("")}
_RULES = plain("User-agent: *\n" + "".join(f"Disallow: /{n:x}\n" for n in range(300_000)))
_STALLED = sends(OK + (b"X-A: " + b"y" * 30_000 + b"\r\n") * 256, hang=True)
_LINK = _header(b"Link", b'</a>; rel="x", ')
_TAG = _header(b"X-Robots-Tag", b"noindex, ")
_CHUNKED = HTML + b"Transfer-Encoding: chunked\r\n\r\n"
#: 600,000 links in 8 MB, to as many pages with the same links.
_MANY_LINKS = Page(b"".join(b"<a href=/%06d>" % n for n in range(600_000)))

SCENARIOS: Mapping[str, tuple[Behaviour, ...]] = MappingProxyType(
    {
        "year": (
            _zone("year", "2,500 hosts redirect robots.txt to a host with a Crawl-delay of a year", 2500,
                  {**_START, "/robots.txt": redirect(f"http://slow.test:{PORT}/robots.txt")}),
            Behaviour("slow", "the host with a Crawl-delay of a year", {},
                      {**_START, "/robots.txt": plain("User-agent: *\nCrawl-delay: 31536000\n")}),
        ),
        "tarpits": (_zone("tarpits", "300 hosts accept and never answer", 300, {}, sends(hang=True)),),
        "domains": tuple(
            Behaviour(f"silent{n}", "300 hosts of 300 domains accept and never answer", {}, at_accept=sends(hang=True))
            for n in range(300)
        ),
        "robots": tuple(
            Behaviour(f"rules{n}", "100 hosts of 100 domains have a robots.txt of 5 MiB of rules", {},
                      {**_START, "/robots.txt": _RULES})
            for n in range(100)
        ),
        "aim": (
            _zone("aim", "500 hosts redirect robots.txt to the healthy site", 500,
                  {**_START, "/robots.txt": redirect(f"{HEALTHY}/robots.txt")}),
        ),
        "forbidden": (
            _zone("forbidden", "50 hosts redirect robots.txt to the healthy site's forbidden page", 50,
                  {**_START, "/robots.txt": redirect(HEALTHY + FORBIDDEN)}),
        ),
        "stallers": (_zone("stallers", "200 hosts send 7.7 MB of headers and stall", 200, {"/robots.txt": _STALLED}),),
        "102": (
            _zone("interim", "a host sends 102 Processing without end", 1,
                  {"/robots.txt": floods(b"", b"HTTP/1.1 102 Processing\r\n\r\n")}),
        ),
        "link": (
            _zone("link", "8 hosts send 8 MB of Link", 8, {"/": _LINK + b"Content-Length: 0\r\n\r\n"}),
        ),
        "x-robots-tag": (
            _zone("tag", "8 hosts send 8 MB of X-Robots-Tag", 8, {"/": _TAG + b"Content-Length: 0\r\n\r\n"}),
        ),
        "pieces": (
            _zone("pieces", "16 hosts send chunks of one octet without end", 16,
                  {**_START_OF_MANY, "*": drips(_CHUNKED, b"1\r\na\r\n" * 10_000, 0)}),
        ),
        "octets": (
            _zone("octets", "16 hosts send each octet in a packet of its own", 16,
                  {**_START_OF_MANY, "*": drips(HTML + b"Content-Length: 9000000\r\n\r\n", b"a", 0)}),
        ),
        "links": tuple(
            Behaviour(f"links{n}", "100 hosts of 100 domains have pages of 8 MB with 600,000 links", {},
                      {"/robots.txt": plain(""), "*": _MANY_LINKS})
            for n in range(100)
        ),
        "wildcard": (
            _zone("wildcard", "10,000 names of one domain, at one address", 10_000, {"*": Page("<title>Any</title>")}),
        ),
        "chunks": (
            _zone("chunks", "a host sends chunk extensions without end", 1,
                  {"/": floods(HTML + b"Transfer-Encoding: chunked\r\n\r\n3;", b"a=b;")}),
        ),
    }
)  # fmt: skip
