"""Turns the errors of the HTTP library into the kind of a failure and one sentence for people."""

from __future__ import annotations

import os
import re
import ssl

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from crawler.fetch.connection import BoundExceeded, Transfer
from crawler.fetch.decoding import BadCoding
from crawler.fetch.name_servers import LookUpFailed
from crawler.reasons import ErrorKind, RequestError
from crawler.terminal_text import shown

#: The errors that the HTTP library raises before an answer if a server or the network fails.
FETCH_ERRORS = (aiohttp.ClientError, HttpProcessingError, TimeoutError)
#: The errors while a body is read. The library raises a bare RuntimeError if the connection has been lost.
BODY_ERRORS = (*FETCH_ERRORS, BadCoding, RuntimeError)
#: The message of OpenSSL in ``[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)``.
_TLS_WORDS = re.compile(r"\[(?:SSL|X509)[^\]]*\] (.*?)(?: \(_ssl|$)")
#: The message of OpenSSL for the alert of a server without a certificate for the name (RFC 6066, 3).
_UNKNOWN_NAME = "tlsv1 unrecognized name"


_UNVERIFIED = "fetch.verify can switch its check off for this host"
_NOT_KNOWN = f"; fetch.ca_file can name the certificate to trust, and {_UNVERIFIED}"
#: What is wrong with a certificate, by the code of OpenSSL (openssl-verification-options(1), X509_V_ERR_...).
_CERTIFICATE = {
    9: f"is not valid yet: its time begins later, or the clock of this machine is wrong; {_UNVERIFIED}",
    10: f"has expired: the owner of the site has to renew it; {_UNVERIFIED}",
    18: f"is signed by itself and by no authority{_NOT_KNOWN}",
    19: f"is from an unknown authority{_NOT_KNOWN}",
    20: f"is from an unknown authority, or the server leaves an intermediate certificate out{_NOT_KNOWN}",
    21: f"is from an unknown authority, or the server leaves an intermediate certificate out{_NOT_KNOWN}",
    26: f"is not for servers; {_UNVERIFIED}",
    62: f"is for other names than this one: perhaps the server has no site of this name; {_UNVERIFIED}",
    64: f"is for names and not for this address: use the name of the site; {_UNVERIFIED}",
}
_OLD = "the server offers only versions before TLS 1.2, which are refused because they are not secure"
#: What is wrong with a handshake, by the reason of OpenSSL.
_TLS_WRONG = {
    "UNSUPPORTED_PROTOCOL": _OLD,
    "TLSV1_ALERT_PROTOCOL_VERSION": _OLD,
    "WRONG_SSL_VERSION": _OLD,
    "WRONG_VERSION_NUMBER": "the answer is no TLS: perhaps the server speaks plain HTTP at this port",
}


class AddressRefused(OSError):
    """Raised into the HTTP library if the address guard forbids a connection."""


class AddressUnknown(OSError):
    """Raised into the HTTP library if a request without an address would be sent to one found meanwhile."""


def before_answer(error: Exception, host: str, timeouts: aiohttp.ClientTimeout, transfer: Transfer) -> RequestError:
    """The failure behind an error before the headers of the answer."""
    match error:
        case BoundExceeded():
            return error.problem
        case TimeoutError():
            return RequestError(ErrorKind.TIMEOUT, _timeout(error, host, timeouts))
        case aiohttp.ClientConnectorDNSError() if error.host != host:
            return RequestError(ErrorKind.CONNECT, f"no address of the proxy: {_reason(error.os_error)}")
        case aiohttp.ClientProxyConnectionError():
            return RequestError(ErrorKind.CONNECT, f"no connection to the proxy: {_reason(error.os_error)}")
        case aiohttp.ClientHttpProxyError():
            return RequestError(ErrorKind.CONNECT, f"the proxy made no connection to {host}: status {error.status}")
        case aiohttp.ClientConnectorDNSError(os_error=LookUpFailed() as failed):
            return RequestError(failed.kind, _printable(failed.sentence))
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as reason):
            return RequestError(ErrorKind.CERTIFICATE, _certificate(reason, host))
        case aiohttp.ClientSSLError():
            known = _TLS_WRONG.get(getattr(error.os_error, "reason", None) or "")
            return RequestError(ErrorKind.TLS, f"no TLS with {host}: {known or _reason(error.os_error)}")
        case aiohttp.ClientConnectorError():
            return _not_connected(error.os_error, host, transfer)
        case aiohttp.ServerDisconnectedError():
            return RequestError(ErrorKind.CONNECT, "the server closed the connection without an answer")
        case aiohttp.ClientOSError():
            # A server rejects a missing client certificate only after the handshake (RFC 8446, 4.4.2.4).
            kind = ErrorKind.TLS if isinstance(error.__cause__, ssl.SSLError) else ErrorKind.CONNECT
            return RequestError(kind, f"the connection broke before an answer: {_reason(error)}")
        case HttpProcessingError() | aiohttp.ClientResponseError():
            return RequestError(
                ErrorKind.PROTOCOL, f"the answer is not HTTP within limits: {_parser_words(error.message)}"
            )
        case aiohttp.InvalidURL():
            return RequestError(ErrorKind.DNS, f"{_printable(host)} is not a name that can be looked up")
    return RequestError(ErrorKind.CONNECT, f"no answer from {host}: {_printable(str(error))}")


def in_body(error: Exception, host: str, timeouts: aiohttp.ClientTimeout) -> RequestError:
    """The failure behind an error while the body was read."""
    match error:
        case BoundExceeded():
            return error.problem
        case BadCoding():
            return RequestError(ErrorKind.ENCODING, str(error))
        case HttpProcessingError():
            return RequestError(ErrorKind.PROTOCOL, f"the body is garbled: {_parser_words(error.message)}")
        case TimeoutError():
            return RequestError(ErrorKind.TIMEOUT, _timeout(error, host, timeouts))
    return BROKEN_OFF


def was_closing(error: Exception, transfer: Transfer) -> bool:
    """Whether a server was closing an idle connection while a request was sent on it.

    The connection had carried a request before, and no octet of an answer arrived: then a GET may be sent again on
    another connection (RFC 9112, 9.3.1; RFC 9110, 9.2.2).
    """
    is_end = isinstance(error, aiohttp.ServerDisconnectedError) or (
        isinstance(error, aiohttp.ClientOSError) and not isinstance(error, aiohttp.ClientConnectorError)
    )
    return is_end and transfer.reused and not transfer.received and not isinstance(error.__cause__, ssl.SSLError)


#: The server was closing the connection on which the request was sent.
CLOSING = RequestError(ErrorKind.CLOSING, "the server was closing the connection, which had been idle")

#: The connection closed before the end of the body.
BROKEN_OFF = RequestError(ErrorKind.TRUNCATED, "the connection broke before the end of the body")


def _timeout(error: TimeoutError, host: str, timeouts: aiohttp.ClientTimeout) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"no connection to {host} within {timeouts.sock_connect:g} s"
        case aiohttp.SocketTimeoutError():
            return f"the server sent nothing for {timeouts.sock_read:g} s"
    return f"the answer was not complete after {timeouts.total:g} s"


def _not_connected(error: OSError, host: str, transfer: Transfer) -> RequestError:
    """The failure if no address of a name could be connected to. It includes the reasons of the address guard."""
    refusals = tuple(dict.fromkeys(transfer.refusals))
    if refusals and not transfer.permitted:
        return RequestError(ErrorKind.ADDRESS, refusals[0])
    reason = "its other addresses do not answer" if isinstance(error, AddressRefused) else _reason(error)
    return RequestError(ErrorKind.CONNECT, "; ".join((f"no connection to {host}: {reason}", *refusals)))


def _certificate(reason: ssl.SSLCertVerificationError, host: str) -> str:
    """What is wrong with the certificate of ``host``, and what the operator can do about it."""
    words = _CERTIFICATE.get(reason.verify_code)
    if words is None:
        words = f"is not valid ({_printable(reason.verify_message).lower()}); {_UNVERIFIED}"
    return f"the certificate of {host} {words}"


def _reason(error: OSError) -> str:
    tls = _TLS_WORDS.match(error.strerror or "")
    if tls:
        return "the server does not serve this name (alert unrecognized_name)" if tls[1] == _UNKNOWN_NAME else tls[1]
    if isinstance(error, ConnectionResetError) and not error.args:  # asyncio raises it so in a handshake only
        return "the server closed it during the TLS handshake"
    return os.strerror(error.errno).lower() if error.errno else _printable(error.strerror or str(error)).lower()


def _parser_words(message: str) -> str:
    """The message of the parser without the bytes of the server."""
    return _printable(message.partition(": b")[0]).lower()


def _printable(text: str) -> str:
    """The first line of a text that may come from a server, printable and of bounded length."""
    return shown(next(iter(text.splitlines()), "")).rstrip(" :.")
