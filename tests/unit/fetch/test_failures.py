"""Errors that no loopback server can bring about at will."""

import errno
import ssl
from unittest.mock import Mock

import aiohttp
import pytest

from crawler.fetch.failures import AddressRefused, before_answer
from crawler.fetch.name_servers import LookUpFailed
from crawler.reasons import ErrorKind, RequestError

TIMEOUTS = aiohttp.ClientTimeout(total=120, sock_connect=10, sock_read=30)
KEY = Mock(host="a.example", port=443, ssl=True)


def problem(error: Exception, *refusals: str, permitted: bool = False) -> RequestError:
    return before_answer(error, "a.example", TIMEOUTS, Mock(refusals=refusals, permitted=permitted))


def broken_by(cause: OSError) -> aiohttp.ClientOSError:
    """The error that aiohttp raises when ``cause`` ends a connection."""
    error = aiohttp.ClientOSError(*cause.args)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (aiohttp.ConnectionTimeoutError(), "timeout", "no connection to a.example within 10 s"),
        (aiohttp.SocketTimeoutError(), "timeout", "the server sent nothing for 30 s"),
        (TimeoutError(), "timeout", "the answer was not complete after 120 s"),
        (
            aiohttp.ClientConnectorDNSError(
                KEY, LookUpFailed(ErrorKind.DNS_NO_NAME, "the name a.example does not exist")
            ),
            "dns_no_name",
            "the name a.example does not exist",
        ),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "x")),
            "connect",
            "no connection to a.example: no route to host",
        ),
        (
            aiohttp.ClientConnectorSSLError(
                KEY, ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")
            ),
            "tls",
            "no TLS with a.example: wrong version number",
        ),
        (
            aiohttp.ClientConnectorSSLError(
                KEY, ssl.SSLError(1, "[SSL: TLSV1_UNRECOGNIZED_NAME] tlsv1 unrecognized name (_ssl.c:1006)")
            ),
            "tls",
            "no TLS with a.example: the server does not serve this name (alert unrecognized_name)",
        ),
        (
            broken_by(ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")),
            "tls",
            "the connection broke before an answer: tlsv13 alert certificate required",
        ),
        (aiohttp.InvalidUrlClientError("http://a.example/"), "dns", "a.example is not a name that can be looked up"),
        (aiohttp.ClientConnectionError("Connection\nlost\x00"), "connect", "no answer from a.example: Connection"),
    ],
)
def test_one_sentence_for_each(error: Exception, kind: str, detail: str) -> None:
    assert problem(error) == RequestError(ErrorKind(kind), detail)


def test_the_guards_reason_survives_other_addresses() -> None:
    refused = aiohttp.ClientConnectorError(KEY, AddressRefused("10.0.0.1 is a private address"))
    closed = aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "x"))
    reasons = ("10.0.0.1 is private", "10.0.0.1 is private", "10.0.0.2 is private")
    assert problem(refused, *reasons) == RequestError(ErrorKind.ADDRESS, "10.0.0.1 is private")
    for error, why in ((refused, "its other addresses do not answer"), (closed, "connection refused")):
        found = problem(error, *reasons, permitted=True)
        kind, detail = found.kind, found.detail
        assert kind is ErrorKind.CONNECT
        assert detail == f"no connection to a.example: {why}; 10.0.0.1 is private; 10.0.0.2 is private"
