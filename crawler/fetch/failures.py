"""What went wrong with a request, from the HTTP library's errors to a kind and one sentence for people."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from crawler.fetch.decoding import BadCoding
from crawler.reasons import ErrorKind, RequestError
from crawler.terminal_text import shown

#: What the HTTP library raises, before there is an answer, when a server or the network misbehaves.
FETCH_ERRORS = (aiohttp.ClientError, TimeoutError)
#: The same while a body is read; a bare RuntimeError is its word for a connection that has gone meanwhile.
BODY_ERRORS = (*FETCH_ERRORS, BadCoding, RuntimeError)
#: OpenSSL's words in ``[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)``.
_TLS_WORDS = re.compile(r"\[(?:SSL|X509)[^\]]*\] (.*?)(?: \(_ssl|$)")


class AddressRefused(OSError):
    """Raised into the HTTP library where the address guard forbids a connection."""


@dataclass(slots=True)
class Attempts:
    """What one request's search for an address that answers has come to."""

    refusals: list[str] = field(default_factory=list)
    permitted: bool = False  # whether the guard let any address be tried


def before_answer(error: Exception, host: str, timeouts: aiohttp.ClientTimeout, attempts: Attempts) -> RequestError:
    """The problem behind an error that came before the headers did."""
    match error:
        case TimeoutError():
            return RequestError(ErrorKind.TIMEOUT, _timeout(error, host, timeouts))
        case aiohttp.ClientConnectorDNSError():
            return RequestError(ErrorKind.DNS, f"the name {host} has no address: {_reason(error.os_error)}")
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as reason):
            return RequestError(ErrorKind.TLS, f"the certificate is not valid: {_printable(reason.verify_message)}")
        case aiohttp.ClientSSLError():
            return RequestError(ErrorKind.TLS, f"no TLS with {host}: {_reason(error.os_error)}")
        case aiohttp.ClientConnectorError():
            return _not_connected(error.os_error, host, attempts)
        case aiohttp.ServerDisconnectedError():
            return RequestError(ErrorKind.CONNECT, "the server closed the connection without an answer")
        case aiohttp.ClientOSError():
            # A client certificate asked for in vain comes only after the handshake (RFC 8446, 4.4.2.4).
            kind = ErrorKind.TLS if "[SSL" in str(error) else ErrorKind.CONNECT
            return RequestError(kind, f"the connection broke before an answer: {_reason(error)}")
        case aiohttp.ClientResponseError():
            return RequestError(
                ErrorKind.PROTOCOL, f"the answer is not HTTP within limits: {_parser_words(error.message)}"
            )
        case aiohttp.InvalidURL():
            return RequestError(ErrorKind.DNS, f"{_printable(host)} is no name that can be looked up")
    return RequestError(ErrorKind.CONNECT, f"no answer from {host}: {_printable(str(error))}")


def in_body(
    error: Exception, host: str, timeouts: aiohttp.ClientTimeout, connection: BaseException | None
) -> RequestError:
    """The problem behind an error that came while the body was read; ``connection`` is the connection's own error."""
    match error, connection:
        case BadCoding(), _:
            return RequestError(ErrorKind.ENCODING, str(error))
        case _, HttpProcessingError():
            # aiohttp closes the connection then, but lets the reader of the body wait for its timeout.
            return RequestError(ErrorKind.PROTOCOL, f"the body is garbled: {_parser_words(connection.message)}")
        case TimeoutError(), _:
            return RequestError(ErrorKind.TIMEOUT, _timeout(error, host, timeouts))
    return BROKEN_OFF


#: A body that ended before its end.
BROKEN_OFF = RequestError(ErrorKind.TRUNCATED, "the connection broke before the end of the body")


def _timeout(error: TimeoutError, host: str, timeouts: aiohttp.ClientTimeout) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"no connection to {host} within {timeouts.sock_connect:g} s"
        case aiohttp.SocketTimeoutError():
            return f"the server sent nothing for {timeouts.sock_read:g} s"
    return f"the answer was not complete after {timeouts.total:g} s"


def _not_connected(error: OSError, host: str, attempts: Attempts) -> RequestError:
    """Every address of a name was tried in vain, or refused; the guard's reasons are told in either case."""
    refusals = tuple(dict.fromkeys(attempts.refusals))
    if refusals and not attempts.permitted:
        return RequestError(ErrorKind.ADDRESS, refusals[0])
    reason = "its other addresses do not answer" if isinstance(error, AddressRefused) else _reason(error)
    return RequestError(ErrorKind.CONNECT, "; ".join((f"no connection to {host}: {reason}", *refusals)))


def _reason(error: OSError) -> str:
    tls = _TLS_WORDS.match(error.strerror or "")
    if tls:
        return tls[1]
    return os.strerror(error.errno).lower() if error.errno else _printable(error.strerror or str(error)).lower()


def _parser_words(message: str) -> str:
    """The parser's complaint without the server's bytes."""
    return _printable(message.partition(": b")[0]).lower()


def _printable(text: str) -> str:
    """A bounded, printable first line of what may be a stranger's text."""
    return shown(next(iter(text.splitlines()), "")).rstrip(" :.")
