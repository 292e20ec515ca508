"""Servers that break or stretch the framing of HTTP: interim answers, chunks, lengths, headers and statuses."""

from __future__ import annotations

from tests.hostile.behaviour import (
    FETCHED,
    HTML,
    NOINDEX,
    OK,
    Behaviour,
    answer,
    excluded,
    failed,
    floods,
    page_behaviour,
    queued,
    sends,
)

_BODY = b"<title>Whole</title>"
_CHUNKED = HTML + b"Transfer-Encoding: chunked\r\n\r\n"
_CHUNK = b"14\r\n" + _BODY + b"\r\n"
_BOUND = failed("protocol", "too_large")
_EARLY = b"HTTP/1.1 103 Early Hints\r\n" + b"Link: </a.css>; rel=preload\r\n" * 50 + b"\r\n"


def _big(name: bytes, value: bytes, count: int) -> bytes:
    """Many long headers of one name, 30 kB each."""
    return OK + (name + b": " + value * (30_000 // len(value)) + b"\r\n") * count + b"Content-Length: 0\r\n\r\n"


def _status(line: bytes) -> bytes:
    return b"HTTP/1.1 " + line + b"\r\nContent-Type: text/html\r\nContent-Length: 3\r\nConnection: close\r\n\r\n<p>"


_ABOVE = (
    ("102-endless", "sends 102 Processing without end", floods(b"", b"HTTP/1.1 102 Processing\r\n\r\n"), _BOUND),
    ("103-many", "sends a thousand 103 Early Hints, then a page", _EARLY * 1000 + answer(_BODY), _BOUND),
    ("100-few", "sends 100 Continue twice, then a page", b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + answer(_BODY), FETCHED),
    ("101", "switches protocols unasked", b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
     failed("protocol", "no_document", "no_connection", "truncated")),
    ("chunk-extensions", "sends a chunk extension without end", floods(_CHUNKED + b"3;", b"a=b;"), _BOUND),
    ("chunks-of-one", "sends chunks of one octet with long extensions, without end",
     floods(_CHUNKED, b"1;" + b"x" * 4000 + b"\r\na\r\n"), _BOUND),
    ("chunks-tiny", "sends chunks of one octet, without end", floods(_CHUNKED, b"1\r\na\r\n"), _BOUND),
    ("trailers", "sends trailers without end", floods(_CHUNKED + _CHUNK + b"0\r\n", b"X-T: y\r\n"), _BOUND),
    ("trailers-few", "sends a page with two trailers", _CHUNKED + _CHUNK + b"0\r\nX-A: b\r\nX-C: d\r\n\r\n", FETCHED),
    ("chunk-cut", "closes between two chunks", _CHUNKED + _CHUNK, failed("truncated")),
    ("chunk-garbled", "sends a chunk size that is none", _CHUNKED + _CHUNK + b"zz\r\n", failed("protocol")),
    ("chunk-negative", "sends a negative chunk size", _CHUNKED + b"-5\r\nabcde\r\n", failed("protocol")),
    ("chunk-overflow", "sends a chunk size of 2^68", _CHUNKED + b"FFFFFFFFFFFFFFFFF\r\nabc\r\n", _BOUND),
    ("chunk-terabyte", "announces a chunk of a terabyte", sends(_CHUNKED + b"FFFFFFFFFF\r\nabc", hang=True),
     failed("timeout", "too_large")),
    ("chunk-zeros", "sends a chunk size of zeros without end", floods(_CHUNKED, b"0"), _BOUND),
    ("te-unknown", "sends an unknown transfer coding", HTML + b"Transfer-Encoding: evil\r\n\r\n" + _BODY,
     failed("protocol", "encoding")),
    ("te-and-length", "sends a length beside chunks", HTML + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
     + _CHUNK + b"0\r\n\r\n", failed("protocol")),
    ("two-lengths", "sends two lengths",
     HTML + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", failed("protocol")),
    ("negative-length", "sends a negative length", HTML + b"Content-Length: -3\r\n\r\nabc", failed("protocol")),
    ("length-words", "sends a length in words", HTML + b"Content-Length: three\r\n\r\nabc", failed("protocol")),
    ("length-overflow", "sends a length of 30 digits", HTML + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nabc", _BOUND),
    ("length-terabyte", "announces a terabyte",
     HTML + b"Content-Length: 1099511627776\r\n\r\nabc", failed("too_large")),
    ("junk-behind-200", "sends junk behind a whole page",
     answer(_BODY).replace(b"Connection: close\r\n", b"") + b"\0\0junk\r\n\r\n", FETCHED),
    ("junk-behind-204", "sends a body with a 204",
     b"HTTP/1.1 204 No Content\r\n\r\n<p>junk\r\n\r\n", failed("no_document")),
    ("304-unasked", "answers 304 to a request without a condition", b"HTTP/1.1 304 Not Modified\r\n\r\n",
     failed("no_document")),
    ("205", "answers 205", _status(b"205 Reset Content"), failed("no_document")),
    ("206", "answers 206 unasked", _status(b"206 Partial Content"), failed("no_document")),
    ("999", "answers 999", _status(b"999 Request denied"), failed("no_document")),
    ("000", "answers 000", _status(b"000 Nothing"), failed("protocol", "no_document")),
    ("four-digits", "answers 2000", _status(b"2000 OK"), failed("protocol")),
    ("version", "claims HTTP/9.9", answer(_BODY).replace(b"HTTP/1.1", b"HTTP/9.9"), failed("protocol")),
    ("418-body", "answers 418 with a body without end", floods(b"HTTP/1.1 418 Teapot\r\n\r\n", b"tea"),
     failed("client_error")),
    ("phrase", "writes on the terminal by the reason phrase", _status(b"404 \x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J"),
     failed("not_found", "protocol")),
    ("type-escape", "writes on the terminal by the content type", answer(_BODY, kind=b"image/\x9b2J\xe2\x80\xae"),
     excluded("type")),
    ("type-long", "sends a content type of 30 kB", answer(_BODY, kind=b"image/" + b"x" * 30_000), excluded("type")),
    ("many-headers", "sends 300 headers", OK + b"".join(b"X-%d: y\r\n" % n for n in range(300)) + b"\r\n", _BOUND),
    ("long-header", "sends a header of 40 kB", OK + b"X: " + b"y" * 40_000 + b"\r\n\r\n", _BOUND),
    ("endless-header", "sends a header without end", floods(OK + b"X: ", b"y"), _BOUND),
    ("endless-headers", "sends headers without end", floods(OK, b"X-A: " + b"y" * 1000 + b"\r\n"), _BOUND),
    ("x-robots-tag", "sends 6 MB of X-Robots-Tag", _big(b"X-Robots-Tag", b"noindex, ", 200), _BOUND),
    ("link-headers", "sends 6 MB of Link", _big(b"Link", b'</a>; rel="canonical", ', 200), _BOUND),
    ("x-robots-none", "says NONE in X-Robots-Tag", answer(_BODY, b"X-Robots-Tag: none"), NOINDEX),
    ("cookies", "sets a hundred cookies of 1 kB", answer(_BODY, *(b"Set-Cookie: a=" + b"x" * 1000,) * 100), FETCHED),
    ("header-nul", "sends NUL in a header", answer(_BODY, b"X-A: a\0b"), failed("protocol")),
    ("header-cr", "sends a bare CR in a header", answer(_BODY, b"X-A: a\rX-B: c"), failed("protocol")),
    ("header-no-colon", "sends a header without a colon", answer(_BODY, b"no colon here"), failed("protocol")),
    ("header-no-name", "sends a header without a name", answer(_BODY, b": value"), failed("protocol")),
    ("etag", "sends an ETag of 20 kB", answer(_BODY, b"ETag: \"" + b"\x80" * 20_000 + b'"'), FETCHED),
    ("dates", "sends dates of the year 999999", answer(_BODY, b"Date: Fri, 31 Dec 999999 23:59:59 GMT",
     b"Last-Modified: Thu, 00 Foo 0000 99:99:99 GMT", b"Expires: -1", b"Age: " + b"9" * 40), FETCHED),
    ("500", "answers 500", _status(b"500 Broken"), failed("server_error")),
    ("503-garbage", "sends a Retry-After that is no time",
     b"HTTP/1.1 503 Later\r\nRetry-After: -1e999\r\nContent-Length: 0\r\n\r\n", failed("server_error")),
    ("503-year", "asks to come back in a year",
     b"HTTP/1.1 503 Later\r\nRetry-After: 31536000\r\nContent-Length: 0\r\n\r\n", queued("retry")),
    ("503-aeon", "asks to come back in 10^30 seconds",
     b"HTTP/1.1 503 Later\r\nRetry-After: 1" + b"0" * 30 + b"\r\nContent-Length: 0\r\n\r\n", queued("retry")),
)  # fmt: skip

_QUICK = {"102-endless", "chunk-extensions", "trailers", "two-lengths", "junk-behind-200", "type-escape",
          "304-unasked", "endless-header"}  # fmt: skip

BEHAVIOURS: tuple[Behaviour, ...] = tuple(
    page_behaviour(f"http-{name}", what, reply, end, quick=name in _QUICK) for name, what, reply, end in _ABOVE
)
