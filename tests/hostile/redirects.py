"""Redirects: in circles, without end, to other machines, and into the output."""

from __future__ import annotations

from crawler.demo.pages import Page, redirect
from tests.hostile.behaviour import (
    FETCHED,
    FORBIDDEN,
    HEALTHY,
    PORT,
    REDIRECTED,
    Behaviour,
    End,
    Exchange,
    Reply,
    excluded,
    failed,
    floods,
    page_behaviour,
)

_NOWHERE = failed("bad_redirect")
_SCOPE = excluded("scope")


def _to(location: str | bytes, status: bytes = b"302 Found") -> bytes:
    octets = location if isinstance(location, bytes) else location.encode()
    return b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nLocation: " + octets + b"\r\n\r\n"


async def _further(exchange: Exchange) -> None:
    """Redirect from /n to /n+1."""
    number = int(exchange.path[1:]) if exchange.path[1:].isdigit() else 0
    exchange.status = 302
    await exchange.send(_to(f"/{number + 1}"))


async def _session(exchange: Exchange) -> None:
    """Redirect to the same page with a new number of a visit."""
    exchange.status = 302
    number = int(exchange.path.partition("visit=")[2] or 0)
    await exchange.send(_to(f"/?visit={number * 31 + 7}"))


_ABOVE: tuple[tuple[str, str, Reply, End], ...] = (
    ("itself", "redirects to itself", redirect("/"), _NOWHERE),
    ("fragment", "redirects to a fragment of itself", redirect("/#x"), _NOWHERE),
    ("file", "redirects to a file", redirect("file:///etc/passwd"), _NOWHERE),
    ("script", "redirects to a script", redirect("javascript:alert(1)"), _NOWHERE),
    ("userinfo", "redirects to a URL with a password", redirect("http://user:secret@healthy00.test/"), _NOWHERE),
    ("none", "redirects without a Location", Page(status=302), failed("no_document")),
    ("empty", "redirects to an empty Location", _to(""), failed("no_document", "bad_redirect")),
    ("long", "redirects to a Location of 30 kB", _to("/" + "x" * 30_000), _NOWHERE),
    ("evil", "writes on the terminal by its Location", _to(b"http://\x1b]52;c;ZXZpbA==\x07\x9b2J/"), failed(
        "bad_redirect", "protocol")),
    ("bad-port", "redirects to port 99999", redirect("http://off.test:99999/"), _NOWHERE),
    ("300", "offers a choice without a Location", Page("<a href=/a>a</a>", status=300), failed("no_document")),
    ("body", "redirects with a body without end",
     floods(b"HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n", b"x"), REDIRECTED),
)  # fmt: skip


def _host(name: str, what: str, ends: dict[str, End], site: dict[str, Reply], *, quick: bool = False) -> Behaviour:
    return Behaviour(f"redirect-{name}", f"redirects {what}", ends, site, quick=quick, most_requests=16)


BEHAVIOURS: tuple[Behaviour, ...] = (
    *(
        page_behaviour(f"redirect-{name}", what, reply, end, quick=name in ("itself", "file", "evil"))
        for name, what, reply, end in _ABOVE
    ),
    _host("circle", "in a circle of three", {"/": failed("redirect_circle"), "/a": failed("redirect_circle")},
          {"/": redirect("/a"), "/a": redirect("/b"), "/b": redirect("/")}, quick=True),
    _host("chain", "ten times, to a page", {"/": REDIRECTED, "/9": REDIRECTED, "/10": FETCHED},
          {"/10": Page("<title>End</title>"), "*": _further}),
    _host("endless", "without end", {"/": REDIRECTED, "/11": excluded("redirects")}, {"*": _further}, quick=True),
    _host("session", "to itself with a new number each time", {"/": REDIRECTED}, {"/": _session}),
    _host("forbidden", "to a healthy site's forbidden page",
          {"/": REDIRECTED, HEALTHY + FORBIDDEN: excluded("robots")}, {"/": redirect(HEALTHY + FORBIDDEN)}, quick=True),
    _host("own-forbidden", "to its own forbidden page", {"/": REDIRECTED, "/private/": excluded("robots")},
          {"/": redirect("/private/"), "/robots.txt": Page("User-agent: *\nDisallow: /private/", content_type="")}),
    _host("away", "to another domain", {"/": REDIRECTED, "http://off.invalid/": _SCOPE},
          {"/": redirect("http://off.invalid/")}),
    _host("metadata", "to the address of a cloud's metadata", {"/": REDIRECTED, "http://169.254.169.254/x": _SCOPE},
          {"/": redirect("http://169.254.169.254/x")}, quick=True),
    _host("loopback", "to loopback in octal", {"/": REDIRECTED, "http://127.0.0.1:1/": excluded("port")},
          {"/": redirect("http://0177.1:1/")}),
    _host("split", "with a line feed in its Location", {"/": REDIRECTED},
          {"/": _to("/x%0d%0aSet-Cookie:%20a=b"), "*": Page("<title>Not split</title>")}),
    _host("two", "to two Locations", {"/": REDIRECTED, "/a": FETCHED},
          {"/": _to(f"/a\r\nLocation: http://off.invalid:{PORT}/"), "/a": Page("")}),
    _host("latin", "to octets above 0x7f", {"/": REDIRECTED, "/%E9%9B": FETCHED},
          {"/": _to(b"/\xe9\x9b"), "*": Page("")}),
    _host("canonicals", "by canonical addresses without end", {"/": FETCHED},
          {"*": Page("<title>x</title>"), "/": Page("<link rel=canonical href=/a>"),
           "/a": Page("<link rel=canonical href=/>")}),
)  # fmt: skip
