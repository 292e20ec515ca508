"""Servers that misbehave below HTTP: silence, resets, floods, and other protocols."""

from __future__ import annotations

from crawler.demo.pages import Page
from tests.hostile.behaviour import (
    FETCHED,
    GIVEN_UP,
    HTML,
    OK,
    Behaviour,
    Exchange,
    Handler,
    answer,
    drips,
    failed,
    floods,
    page_behaviour,
    sends,
)

_PAGE = answer(b"<title>Whole</title>")


def _accepting(name: str, what: str, handler: Handler, *, quick: bool = False) -> Behaviour:
    """A behaviour of each connection, so that not even robots.txt can be had."""
    return Behaviour(name, what, {"/": GIVEN_UP}, at_accept=handler, quick=quick)


async def _closes(exchange: Exchange) -> None:
    pass


async def _in_single_octets(exchange: Exchange) -> None:
    for value in _PAGE:
        await exchange.send(bytes((value,)))


BEHAVIOURS = (
    _accepting("wire-closes", "closes each connection at once", _closes, quick=True),
    _accepting("wire-resets", "resets each connection at once", sends(reset=True), quick=True),
    _accepting("wire-silent", "accepts connections and never answers", sends(hang=True)),
    _accepting("wire-ssh", "greets with the banner of SSH", sends(b"SSH-2.0-OpenSSH_9.2\r\n", hang=True), quick=True),
    _accepting("wire-smtp", "greets with the banner of SMTP", sends(b"220 mail ESMTP\r\n", hang=True)),
    _accepting("wire-flood", "sends octets without end to each connection", floods(b"", b"\x00")),
    Behaviour("wire-early", "answers before it was asked, then closes", {"/": FETCHED}, at_accept=sends(_PAGE)),
    page_behaviour("wire-no-answer", "closes after the request", sends(), failed("no_connection"), quick=True),
    page_behaviour("wire-reset-asked", "resets after the request", sends(reset=True), failed("no_connection")),
    page_behaviour("wire-no-word", "never answers the request", sends(hang=True), failed("timeout")),
    page_behaviour("wire-half-line", "stops within the status line", sends(OK[:9], hang=True), failed("timeout")),
    page_behaviour("wire-half-head", "stops within the headers", sends(HTML, hang=True), failed("timeout")),
    page_behaviour("wire-cut-head", "closes within the headers", sends(HTML), failed("no_connection"), quick=True),
    page_behaviour(
        "wire-drips-line", "drips a status line without end", drips(b"HTTP/1.1 200 ", b"O"), failed("timeout"),
    ),
    page_behaviour(
        "wire-drips-head", "drips headers without end", drips(OK, b"X: y\r\n"), failed("timeout", "protocol"),
    ),
    page_behaviour("wire-drips-body", "drips a body without end", drips(HTML + b"\r\n", b"<p>"), failed("timeout")),
    page_behaviour(
        "wire-stalls-body", "stops within the body",
        sends(HTML + b"Content-Length: 900\r\n\r\n<p>", hang=True), failed("timeout"),
    ),
    page_behaviour(
        "wire-cut-body", "closes within the body",
        sends(HTML + b"Content-Length: 900\r\n\r\n<p>"), failed("truncated"), quick=True,
    ),
    page_behaviour(
        "wire-reset-body", "resets within the body",
        sends(HTML + b"Content-Length: 900\r\n\r\n<p>", 0.02, reset=True), failed("truncated"),
    ),
    page_behaviour(
        "wire-reset-end", "resets where only the end of the connection ends the body",
        sends(HTML + b"\r\n<p>", 0.02, reset=True), failed("truncated"),
    ),
    page_behaviour("wire-reset-after", "resets after a whole answer", sends(_PAGE, 0.05, reset=True), FETCHED),
    page_behaviour("wire-single-octets", "sends a page in segments of one octet", _in_single_octets, FETCHED),
    page_behaviour("wire-flood-body", "sends a body without end", floods(HTML + b"\r\n", b"<p>x"), failed("too_large")),
    page_behaviour(
        "wire-flood-404", "sends a 404 with a body without end",
        floods(b"HTTP/1.1 404 Not Found\r\n\r\n", b"<p>x"), failed("not_found"),
    ),
    page_behaviour(
        "wire-flood-line", "sends a status line without end", floods(b"HTTP/1.1 200 ", b"O"), failed("protocol"),
    ),
    page_behaviour("wire-http09", "answers as HTTP/0.9", b"<title>bare</title>", failed("protocol"), quick=True),
    page_behaviour("wire-http2", "answers with frames of HTTP/2", b"\0\0\x12\x04\0\0\0\0\0" * 4, failed("protocol")),
    page_behaviour("wire-tls", "answers with an alert of TLS", b"\x15\x03\x01\0\x02\x02\x50", failed("protocol")),
    page_behaviour("wire-icy", "answers as Shoutcast", b"ICY 200 OK\r\n\r\nmusic", failed("protocol")),
    page_behaviour("wire-junk-first", "sends junk before the answer", b"\r\n\0junk\r\n" + _PAGE, failed("protocol")),
    Behaviour(
        "wire-answers-twice", "sends a second answer behind the first",
        {"/": FETCHED, "/next": FETCHED},
        {
            "/": answer(b"<title>First</title><a href=/next>n</a>").replace(b"Connection: close\r\n", b"")
            + answer(b"<title>Second</title>"),
            "/next": Page("<title>Own</title>"),
        },
        titles={"/next": "Own"}, quick=True,
    ),
)  # fmt: skip
