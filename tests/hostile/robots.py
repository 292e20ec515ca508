"""Hosts whose robots.txt is hostile: endless, huge, contradictory, elsewhere, or a weapon against another host."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

from crawler.demo.pages import Page, plain, redirect
from tests.hostile.behaviour import (
    FETCHED,
    FORBIDDEN,
    GIVEN_UP,
    HEALTHY,
    HTML,
    NOTHING,
    OK,
    PORT,
    Behaviour,
    End,
    Exchange,
    Reply,
    answer,
    crawl_of,
    drips,
    excluded,
    floods,
    queued,
    sends,
)
from tests.hostile.html import EVIL

_CLOSED = excluded("robots")
_CLOSING = b"User-agent: *\nDisallow: /\n"
_TEXT = OK + b"Content-Type: text/plain\r\n"


async def _changes(exchange: Exchange) -> None:
    """A different file each time, which expires at once."""
    exchange.status = 200
    body = b"User-agent: *\nDisallow: /%d\n" % exchange.before
    await exchange.send(answer(body, b"Cache-Control: no-cache, max-age=0", kind=b"text/plain"))


async def _further(exchange: Exchange) -> None:
    number = int(exchange.path.partition("?")[2] or 0)
    exchange.status = 302
    location = b"Location: /robots.txt?%d" % (number + 1)
    await exchange.send(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n" + location + b"\r\n\r\n")


def _robots(
    name: str, what: str, reply: Reply, end: End, more: Mapping[str, Reply] = NOTHING, *, quick: bool = False
) -> Behaviour:
    site: Mapping[str, Reply] = {"/robots.txt": reply, "/": Page("<title>Start</title>"), **more}
    return Behaviour(f"robots-{name}", what, {"/": end}, site, quick=quick, most_requests=60, crawl=crawl_of(end))


def _status(status: int, *headers: tuple[str, str]) -> Page:
    return Page("User-agent: *\nDisallow: /\n", status=status, headers=headers, content_type="text/plain")


_rules = "".join(f"Disallow: /{n}*a*b*c$\n" for n in range(20_000))
_agents = "".join(f"User-agent: robot{n}\n" for n in range(30_000))

BEHAVIOURS: tuple[Behaviour, ...] = (
    _robots("silent", "never answers", sends(hang=True), GIVEN_UP),
    _robots("drips", "drips its file", drips(_TEXT + b"\r\n", b"#"), GIVEN_UP),
    _robots(
        "cut", "cuts its file short", _TEXT + b"Content-Length: 999\r\n\r\nUser-agent: *\nAl", GIVEN_UP, quick=True,
    ),
    _robots("flood", "sends a file without end", floods(_TEXT + b"\r\n", b"# comment\n"), FETCHED),
    _robots("flood-closing", "closes the site, then sends comments without end",
            floods(_TEXT + b"\r\n" + _CLOSING, b"# comment\n"), _CLOSED, quick=True),
    _robots("late-rule", "closes the site after 4 MB of comments", plain("#" * 79 + "\n" + "# \n" * 1_300_000
            + "User-agent: *\nDisallow: /\n"), _CLOSED),
    _robots(
        "line", "has a line of 3 MB", plain("Disallow: /" + "x" * 3_000_000 + "\n" + _CLOSING.decode()), _CLOSED,
    ),
    _robots("rules", "has 20,000 rules", plain("User-agent: *\n" + _rules), FETCHED),
    _robots("agents", "names 30,000 robots, then all", plain(_agents + "User-agent: *\nDisallow: /\n"), _CLOSED),
    _robots("stars", "has a rule that makes matchers run away",
            plain("User-agent: *\nDisallow: /" + "*a" * 5000 + "b\n"), FETCHED, quick=True),
    _robots("html", "sends a page", Page("<title>Home</title>"), FETCHED),
    _robots("bom", "begins with a byte order mark", plain("\ufeffUser-agent: *\nDisallow: /\n"), _CLOSED),
    _robots("cr", "ends its lines in CR", plain("User-agent: *\rDisallow: /\r"), _CLOSED),
    _robots("nul", "has NUL between its lines", plain("User-agent: *\n\0\0\0\nDisallow: /\n"), _CLOSED),
    _robots("evil", "writes on the terminal by its rules",
            plain(f"User-agent: *\nDisallow: /\nDisallow: /{EVIL[:20]}\n# {EVIL}\n"), _CLOSED, quick=True),
    _robots("evil-rule", "closes the site by a rule that writes on the terminal",
            Page(b"User-agent: *\nDisallow: / \x1b[2J\x9b2J\nDisallow: /\n", content_type=""), _CLOSED),
    _robots("gzip-bomb", "sends a bomb of gzip", answer(gzip.compress(b"# x\n" * 4_000_000, mtime=0),
            b"Content-Encoding: gzip", kind=b"text/plain"), FETCHED),
    _robots("gzip-undeclared", "sends gzip without saying so", answer(gzip.compress(_CLOSING, mtime=0)), _CLOSED),
    _robots("coding-broken", "sends a broken coding", answer(_CLOSING, b"Content-Encoding: gzip"), GIVEN_UP),
    _robots("401", "wants a password", _status(401), _CLOSED),
    _robots("403", "refuses", _status(403), _CLOSED, quick=True),
    _robots("404", "has none, and says so with a closing file", _status(404), FETCHED),
    _robots("500", "always fails", _status(500), GIVEN_UP, quick=True),
    _robots("304", "is not modified, though nobody asked", b"HTTP/1.1 304 Not Modified\r\n\r\n", GIVEN_UP),
    _robots("206", "sends a part", _status(206, ("Content-Range", "bytes 0-9/9999")), GIVEN_UP),
    _robots("999", "answers 999", _status(999), GIVEN_UP),
    _robots("429-year", "asks to come back in a year", _status(429, ("Retry-After", "31536000")), queued("new")),
    _robots(
        "delay-year", "has a Crawl-delay of a year", plain("User-agent: *\nCrawl-delay: 31536000\n"), queued("new"),
    ),
    _robots("delay-odd", "has Crawl-delays that are no times",
            plain("User-agent: *\nCrawl-delay: -1\nCrawl-delay: nan\nCrawl-delay: 0x10\n"), FETCHED, quick=True),
    _robots("delay-infinite", "has an infinite Crawl-delay", plain("User-agent: *\nCrawl-delay: inf\n"), FETCHED),
    _robots("changes", "changes with every request", _changes, FETCHED),
    _robots("age", "states an age of 10^40", _status(200, ("Age", "9" * 40), ("Cache-Control", "max-age=" + "9" * 40)),
            _CLOSED),
    _robots("circle", "redirects in a circle", redirect("/robots.txt?a"), GIVEN_UP,
            {"/robots.txt?a": redirect("/robots.txt")}, quick=True),
    _robots("chain", "redirects without end", _further, GIVEN_UP),
    _robots("to-file", "redirects to a file", redirect("file:///etc/passwd"), GIVEN_UP),
    _robots(
        "to-nowhere", "redirects to a name without an address", redirect("http://off.invalid/robots.txt"), GIVEN_UP,
    ),
    _robots("to-password", "redirects to a URL with a password", redirect("http://u:secret@healthy00.test/"), GIVEN_UP),
    _robots("to-forbidden", "redirects to a healthy site's forbidden page", redirect(HEALTHY + FORBIDDEN), GIVEN_UP,
            quick=True),
    _robots("to-healthy", "redirects to a healthy site's robots.txt", redirect(f"{HEALTHY}/robots.txt"), FETCHED),
    _robots("to-year", "redirects to a host with a Crawl-delay of a year",
            redirect(f"http://robots-delay-year.test:{PORT}/robots.txt"), queued("new")),
    _robots("hosts", "names 10,000 main sites", plain("User-agent: *\n" + "Host: off.invalid\n" * 10_000), FETCHED),
    _robots(
        "host-away", "names a healthy site as its main site",
        plain(f"User-agent: *\nHost: healthy01.test:{PORT}\n"), FETCHED,
    ),
    _robots("agent-server", "has 10,000 servers of agents",
            plain("".join(f"Mobile-agent-server: /{n}/ atp://off.invalid:{n}\n" for n in range(10_000))), FETCHED),
    _robots("head-drips", "drips headers", drips(HTML, b"X: y\r\n"), GIVEN_UP),
)  # fmt: skip
