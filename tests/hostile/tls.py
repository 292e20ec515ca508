"""Hosts whose TLS is wrong: certificates, versions, handshakes."""

from __future__ import annotations

from crawler.demo.pages import Page
from tests.hostile.behaviour import FETCHED, Behaviour, End, Handler, answer, drips, failed, sends
from tests.hostile.certificates import NO_TLS

_GIVEN_UP = failed("robots_given_up", says="(tls)")
_UNTRUSTED = failed("certificate")
_NO_ANSWER = failed("robots_given_up")
_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
_RECORD = b"\x16\x03\x03\x40\x00"


def _host(
    name: str, what: str, certificate: str, end: End, at_accept: Handler | None = None, *, quick: bool = False
) -> Behaviour:
    return Behaviour(
        f"tls-{name}", what, {"/": end}, {"/": Page("<title>TLS</title>")}, certificate=certificate,
        at_accept=at_accept, quick=quick,
    )  # fmt: skip


BEHAVIOURS = (
    _host("trusted", "has a good certificate", "good", FETCHED, quick=True),
    _host("expired", "has an expired certificate", "expired", _UNTRUSTED, quick=True),
    _host("future", "has a certificate of the future", "future", _UNTRUSTED),
    _host("wrong-host", "has the certificate of another host", "wrong-host", _UNTRUSTED, quick=True),
    _host("unknown-issuer", "has the certificate of an unknown authority", "unknown-issuer", _UNTRUSTED),
    _host("self-signed", "has signed its certificate itself", "self-signed", _UNTRUSTED, quick=True),
    _host("client-only", "has a certificate for clients", "client-only", _UNTRUSTED),
    _host("many-names", "has a certificate of 2,000 names", "many-names", FETCHED),
    _host("old", "speaks TLS 1.0 alone", "good+old", _NO_ANSWER),
    _host("client", "wants a certificate of the client", "good+client", _NO_ANSWER),
    _host("sni", "refuses the name of the host", "good+sni", _NO_ANSWER),
    _host("alpn", "offers HTTP/2 alone", "good+alpn", FETCHED),
    _host("plain", "answers in plain text", NO_TLS, _NO_ANSWER, sends(answer(b"plain"))),
    _host("silent", "never answers the handshake", NO_TLS, _NO_ANSWER, sends(hang=True)),
    _host("closes", "closes within the handshake", NO_TLS, _NO_ANSWER, sends(_RECORD)),
    _host("alert", "answers with an alert", NO_TLS, _GIVEN_UP, sends(_ALERT)),
    _host("garbage", "answers with octets that are no TLS", NO_TLS, _GIVEN_UP, sends(b"\xff" * 4000)),
    _host("drip", "drips the handshake", NO_TLS, _NO_ANSWER, drips(_RECORD, b"\x02")),
    _host("flood", "sends a handshake without end", NO_TLS, _NO_ANSWER, drips(b"", (_RECORD + b"\0" * 16_384) * 4)),
)
