"""Pages that are made to tie up a parser, to mislead a reader, or to write on a terminal."""

from __future__ import annotations

import random

from crawler.demo.pages import Page
from tests.hostile.behaviour import (
    FETCHED,
    FETCHED_OR_UNREAD,
    FORBIDDEN,
    HEALTHY,
    NOINDEX,
    PORT,
    Behaviour,
    End,
    Reply,
    excluded,
    page_behaviour,
)
from tests.hostile.pages import HOSTILE

#: Everything that acts on a terminal, or reorders its text.
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J\x9d0;evil\x9c\x7f\u202e\u2066\u2028\u2029\x08\r"
_OWN = "<title>Own</title>"
_MEGABYTE = 1_000_000


def _page(body: str | bytes, kind: str = "text/html; charset=utf-8", *headers: tuple[str, str]) -> Page:
    return Page(body, content_type=kind, headers=headers)


_noise = random.Random(1).randbytes(200_000)

#: Without one that is larger than this crawl's limit.
_PARSERS = {name: body for name, body in HOSTILE.items() if name != "many-elements"}
#: Closes the pages to which they link.
_CLOSING = Page("User-agent: *\nDisallow: /other/\nDisallow: /bb\n", content_type="text/plain")
_PAGES: tuple[tuple[str, str, Reply, End], ...] = (
    ("many-elements", "has 900,000 elements", _page("<p>x" * 900_000), FETCHED_OR_UNREAD),
    ("noise", "sends random octets as HTML", _page(_noise), FETCHED_OR_UNREAD),
    ("nul", "sends 1 MB of NUL as HTML", _page(bytes(_MEGABYTE)), FETCHED_OR_UNREAD),
    ("pdf", "sends a PDF as HTML", _page(b"%PDF-1.7\n" + _noise), FETCHED_OR_UNREAD),
    ("select", "nests 50,000 options and selects", _page("<select><option>" * 50_000), FETCHED_OR_UNREAD),
    ("template", "nests 50,000 templates", _page("<template>" * 50_000), FETCHED_OR_UNREAD),
    ("svg", "nests 50,000 elements of SVG and MathML", _page("<svg><math><mi>" * 50_000), FETCHED_OR_UNREAD),
    ("tables-fostered", "nests tables with text to foster", _page("<table>x" * 50_000), FETCHED_OR_UNREAD),
    ("frames", "frames 10,000 pages of another domain",
     _page("".join(f"<iframe src=http://off.invalid/{n}></iframe>" for n in range(10_000))), FETCHED),
    ("attribute", "has an attribute of 3 MB", _page(f"<p title='{'x' * 3 * _MEGABYTE}'>"), FETCHED_OR_UNREAD),
    ("entities", "has a million character references", _page("&CounterClockwiseContourIntegral;" * 100_000),
     FETCHED_OR_UNREAD),
    ("comment", "opens a comment that never ends", _page(_OWN + "<!--" + "-" * _MEGABYTE), FETCHED),
    ("script", "opens a script that never ends",
     _page(_OWN + "<script>" + "<!--<script>" * 100_000), FETCHED_OR_UNREAD),
    ("plaintext", "turns to plain text", _page(_OWN + "<plaintext>" + "<a href=/x>" * 1000), FETCHED),
    ("xhtml-entities", "defines a billion laughs in XHTML",
     _page('<!DOCTYPE html [<!ENTITY a "aaaaa"><!ENTITY b "&a;&a;&a;&a;">]><html><body>&b;</body></html>',
           "application/xhtml+xml"), FETCHED),
    ("title-long", "has a title of 3 MB", _page(f"<title>{'title ' * 500_000}</title>"), FETCHED_OR_UNREAD),
    ("evil-title", "writes on the terminal by its title", _page(f"<title>a{EVIL}b</title>"), FETCHED),
    ("evil-metas", "writes on the terminal by its description and keywords",
     _page(f"<meta name=description content='a{EVIL}b'><meta name=keywords content='a{EVIL}b'>"
           f"<meta name=document-state content='a{EVIL}b'>"), FETCHED),
    ("evil-anchors", "writes on the terminal by anchors and rel",
     _page(f"<a href=/x rel='nofollow a{EVIL}b'>a{EVIL}b</a>"), FETCHED),
    ("evil-robots", "writes on the terminal by its robots tag",
     _page(f"<meta name=robots content='noindex, a{EVIL}b'>"),
     NOINDEX),
    ("evil-charset", "writes on the terminal by its charset",
     _page(_OWN, f"text/html; charset={EVIL[:3]}\x9b"), FETCHED),
    ("evil-latin", "writes C1 controls as octets",
     _page(b"<title>a\x9b2J\x85\x9d</title>", "text/html; charset=latin-1"),
     FETCHED),
    ("charset-none", "declares a charset that there is none", _page(_OWN, "text/html; charset=x-evil"), FETCHED),
    ("charset-utf7", "declares UTF-7", _page(b"<title>+ADw-</title>", "text/html; charset=utf-7"), FETCHED),
    ("charset-codec", "declares a codec of Python that is no charset",
     _page(_OWN, "text/html; charset=rot13"), FETCHED),
    ("charset-bomb", "declares a codec that decompresses", _page(_OWN, "text/html; charset=zlib_codec"), FETCHED),
    ("surrogates", "has lone surrogates", _page(b"<title>a\xed\xa0\x80b&#xD800;</title>"), FETCHED),
    ("meta-charsets", "declares 10,000 charsets", _page("<meta charset=utf-16>" * 10_000 + _OWN), FETCHED_OR_UNREAD),
    ("noindex-spaces", "says NONE in odd ways", _page("<MeTa NaMe=' RoBoTs ' CoNtEnT=',,NONE;,'>"), End(
        "fetched", frozenset({"noindex", "fetched"}))),
    ("type-javascript", "sends JavaScript", _page("alert(1)", "text/javascript"), excluded("type")),
    ("type-none", "sends no content type", _page(_OWN, ""), FETCHED),
    ("type-many", "sends a content type with 1,000 parameters", _page(_OWN, "text/html" + ";a=b" * 1000), FETCHED),
    ("link-evil", "writes on the terminal by a Link header",
     _page(_OWN, "text/html", ("Link", f"</a>; rel=canonical; title={EVIL[1:4]}\x9b2J")), FETCHED),
)  # fmt: skip

_QUICK = {"nested-tags", "reopened-utf-16", "noise", "evil-title", "evil-metas", "evil-anchors", "charset-bomb"}

BEHAVIOURS: tuple[Behaviour, ...] = (
    *(
        Behaviour(
            f"html-{name}", f"makes the parser work: {name}", {"/": FETCHED_OR_UNREAD},
            {"/": body if isinstance(body, Page) else _page(body), "/robots.txt": _CLOSING}, quick=name in _QUICK,
        )
        for name, body in _PARSERS.items()
    ),
    *(page_behaviour(f"html-{name}", what, reply, end, quick=name in _QUICK) for name, what, reply, end in _PAGES),
    Behaviour(
        "html-titles", "puts titles where there are none", {"/": FETCHED},
        {"/": _page("<svg><title>svg</title></svg><!--<title>c</title>--><script><title>s</title></script>" + _OWN)},
        titles={"/": "Own"},
    ),
    Behaviour(
        "html-base", "sets its base to a healthy site's forbidden folder", {"/": FETCHED},
        {"/": _page(f"<base href='{HEALTHY}/private/'><a href=delete?id=1>x</a>")},
    ),
    Behaviour(
        "html-base-data", "sets its base to a data URL", {"/": FETCHED, "/next": FETCHED},
        {"/": _page("<base href='data:text/html,x'><a href=/next>x</a>"), "/next": _page(_OWN)},
    ),
    Behaviour(
        "html-canonical", "names a healthy site's forbidden page as canonical",
        {"/": FETCHED, f"{HEALTHY}{FORBIDDEN}": excluded("robots")},
        {"/": _page(f"<link rel=canonical href='{HEALTHY}{FORBIDDEN}'>")}, quick=True,
    ),
    Behaviour(
        "html-canonicals", "names 10,000 canonical addresses", {"/": FETCHED_OR_UNREAD},
        {"/": _page("".join(f"<link rel=canonical href=//html-canonicals.test:{PORT}/{n}>" for n in range(10_000)))},
    ),
    Behaviour(
        "html-refresh", "refreshes to itself at once", {"/": FETCHED},
        {"/": _page("<meta http-equiv=refresh content='0; url=/'>")},
    ),
)  # fmt: skip
