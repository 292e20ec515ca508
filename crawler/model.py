"""The data that the rules, the engine and the store exchange: frozen classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import Enum, StrEnum
from typing import NamedTuple

import msgspec

from crawler.gunzip import gunzip
from crawler.reasons import Code, ErrorKind, RequestError

Headers = tuple[tuple[str, str], ...]
"""Response headers in the order received, names as sent. Read them with :func:`header`."""


class Missing(Enum):
    """What a variable of the user returns for a page whose value is not known.

    Such a page counts like a URL that has not answered. ``None`` says that the variable is not about the page.
    """

    MISSING = "missing"


MISSING = Missing.MISSING


class State(StrEnum):
    """The one state of a URL (view ``urls``)."""

    QUEUED = "queued"
    FETCHED = "fetched"
    REDIRECTED = "redirected"
    EXCLUDED = "excluded"
    FAILED = "failed"


class Purpose(StrEnum):
    """Why a request was sent."""

    ROBOTS = "robots"
    PAGE = "page"
    SITEMAP = "sitemap"
    TDMREP = "tdmrep"  # /.well-known/tdmrep.json
    SOFT_404 = "soft_404"  # a path that cannot exist
    LICENSE = "license"  # a licence of RSL
    INDEX_NOW = "indexnow"  # the key file of a site that submits URLs by IndexNow
    RUP = "rup"  # a /rupinfo.txt, or a request to a RUP server (Remote Update Protocol)


class Kind(StrEnum):
    """The kind of document that the crawl expects at a URL."""

    PAGE = "page"
    SITEMAP = "sitemap"
    RUP = "rup"  # a /rupinfo.txt


class Reading(StrEnum):
    """How one robots.txt is interpreted (``docs/protocols.md``, section 1)."""

    STRICT = "strict"
    DRAFT1996 = "draft1996"
    RFC9309 = "rfc9309"


def _no_op(_: str) -> None:
    pass


class Request(msgspec.Struct, frozen=True):
    """A GET to send, or a POST if there is a ``form``. ``max_bytes`` bounds the decoded body.

    ``shown_url`` replaces ``url`` in the log if ``url`` contains a secret. The request goes to ``address``, in text;
    an empty one has none, and ``None`` permits all. Its connection is kept for the next request of the ``group``. A
    ``fresh`` request is sent on a new connection. ``body_waits`` is called with the group if its body must wait for
    memory: tasks of several crawls share the memory.
    """

    url: str
    purpose: Purpose
    max_bytes: int
    truncate: bool = False  # beyond max_bytes: keep the first part (True) or fail (False)
    any_type: bool = False  # read the body whatever its Content-Type, as for robots.txt
    keep_gzip: bool = False  # leave a body in gzip as it was received: the caller has it decoded and checked
    only_gzip: bool = False  # offer no other coding, and refuse all others: this process decodes nothing of the body
    etag: str | None = None
    last_modified: str | None = None
    form: tuple[tuple[str, str], ...] | None = None
    shown_url: str | None = None
    address: str | None = None
    group: str = ""
    fresh: bool = False
    body_waits: Callable[[str], None] = _no_op


class Exchange(msgspec.Struct, frozen=True):
    """The octets that went over the connection for one request.

    ``response`` begins with the status line of the final answer; informational answers are left out. ``complete`` says
    whether the whole answer was received.
    """

    request: bytes
    response: bytes
    address: str  # the server's; empty if only a proxy knows it
    complete: bool


class TlsFacts(NamedTuple):
    """The TLS of a connection. ``certificate_until`` is the end of the certificate, if it was verified (epoch s)."""

    version: str
    cipher: str
    certificate_until: float | None


class _OfConnection(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a connection in an answer."""

    exchange: Exchange | None = None  # if the fetcher keeps exchanges
    tls: TlsFacts | None = None  # of the connection, if there was one with TLS
    address: str = ""  # the server's; "": no connection, or only a proxy knows it
    loop_s: float = 0.0  # of the event loop, for the octets of the answer


class Answer(_OfConnection, frozen=True):
    """The fields that all results of a request have. Times in seconds since the epoch."""

    url: str
    started_at: float
    finished_at: float
    headers: Headers = ()
    wire_bytes: int = 0


class Fetched(Answer, frozen=True):
    """A 2xx answer with a document. ``content_type`` is the bare lower-case type, or ``""``."""

    status: int = 200
    content_type: str = ""
    charset: str | None = None  # from the header only
    plain: bytes | None = b""  # the decoded body; None if ``gzipped`` holds it
    gzipped: bytes | None = None  # the body as received, if that is one gzip member
    truncated: bool = False
    unchecked: int | None = None  # the bound of the decoded body, if ``gzipped`` was not decoded yet

    @property
    def body(self) -> bytes:
        """The decoded body. A gzipped body is decoded at each call, which takes some 2 ms a megabyte."""
        return _decoded(self.plain, self.gzipped)


class Body(msgspec.Struct, frozen=True):
    """A document to be stored, which may be empty: its digest, and its bytes, either plain or as one gzip member."""

    sha256: bytes
    plain: bytes | None
    gzipped: bytes | None = None

    def decoded(self) -> bytes:
        """The bytes of the document."""
        return _decoded(self.plain, self.gzipped)

    @property
    def held_bytes(self) -> int:
        """The number of bytes in memory, which may be fewer than those of the document."""
        return len(self.plain or self.gzipped or b"")


def _decoded(plain: bytes | None, gzipped: bytes | None) -> bytes:
    if plain is not None:
        return plain
    assert gzipped is not None
    return gunzip(gzipped)


class NotModified(Answer, frozen=True):
    """A 304 to a conditional request."""

    status: int = 304


class Redirected(Answer, frozen=True):
    """A 301, 302, 303, 307 or 308 with a ``Location``.

    ``location`` is as received, but with octets above 0x7f as %xx, and with ``***`` for a user name and password.
    """

    status: int = 302
    location: str = ""


class Failed(Answer, frozen=True):
    """Any other result. ``kind`` and ``detail`` are those of :attr:`error`.

    ``unsent``: there was no connection to send the request on.
    """

    kind: ErrorKind = ErrorKind.HTTP
    status: int | None = None
    detail: str = ""
    unsent: bool = False

    @property
    def error(self) -> RequestError:
        """The error of the request."""
        return RequestError(self.kind, self.detail)


FetchResult = Fetched | NotModified | Redirected | Failed


class AnswerFacts(NamedTuple):
    """What the store keeps of the answer that brought a page: headers as a JSON object, address, version of TLS."""

    headers: str | None = None
    address: str | None = None
    tls_version: str | None = None


#: Nothing is kept.
NO_ANSWER = AnswerFacts()


class Preference(NamedTuple):
    """A statement of the owner about a use of a page (``docs/protocols.md``, section 7).

    ``value`` is ``y`` or ``n``, or the URL of a document that the statement names.
    """

    scheme: str  # crawler.preferences.schemes.Scheme
    category: str
    value: str
    source: str  # "robots.txt", "header", "META" or "tdmrep.json"
    line: int | None  # of robots.txt or tdmrep.json
    text: str  # the statement as written, printable and bounded


class SiteFile(NamedTuple):
    """The answer for a file of a site that is neither its robots.txt nor a page. ``fetched_at`` in epoch seconds.

    ``body`` is what is kept of it, empty if there is no file. ``note`` says why the file states nothing.
    ``valid_until`` is the time of the next request, if the file has one of its own. ``failing_since`` is the first of
    ``failures`` temporary failures in a row. ``moved_to`` is the target of a redirect.
    """

    path: str
    purpose: Purpose
    fetched_at: float
    status: str  # the HTTP status, or the error below HTTP
    body: bytes = b""
    note: str = ""
    valid_until: float | None = None
    failures: int = 0
    failing_since: float | None = None
    moved_to: str = ""


class Recorded(msgspec.Struct, frozen=True):
    """An answer for the archive. ``left_out`` says why the body must not be kept; it is empty if the body is kept."""

    answer: FetchResult
    purpose: Purpose
    left_out: str = ""
    depth: int = 0
    preferences: tuple[Preference, ...] = ()  # about the use of the document


def header(headers: Headers, name: str) -> str | None:
    """The first value of a header, or ``None``."""
    wanted, length = name.lower(), len(name)
    for key, value in headers:
        if len(key) == length and key.lower() == wanted:
            return value
    return None


def validators(headers: Headers) -> tuple[str | None, str | None]:
    """The first ``ETag`` and the first ``Last-Modified`` (RFC 9110, 8.8), or ``None``."""
    found: dict[str, str] = {}
    for key, value in headers:
        if key[:1] in "EeLl":
            found.setdefault(key.lower(), value)
    return found.get("etag"), found.get("last-modified")


def header_values(headers: Headers, name: str) -> Iterator[str]:
    """Every value of a header, in order."""
    wanted = name.lower()
    return (value for key, value in headers if key.lower() == wanted)


class RobotsAction(Code):
    """The meaning of the last answer for a site's /robots.txt (``docs/protocols.md``, section 1)."""

    PARSE = "parse", "", "a file: its rules hold"
    FREE = "free", "", "no file: everything is allowed"
    RESTRICTED = "restricted", "", "access denied: the whole site is closed"
    #: robots.txt is requested again at ``retry_at``.
    DEFER = "defer", "", "no usable answer: nothing is fetched until there is one"
    #: The site was deferred for longer than ``give_up_after``.
    GIVEN_UP = "given_up", "", "no usable answer for so long that the site was given up"
    #: The address guard refuses the site.
    UNREACHABLE = "unreachable", "", "an address that the crawler may not connect to"
    #: The certificate of the site is not valid.
    UNTRUSTED = "untrusted", "", "a certificate that is not valid: nothing is fetched"


class RobotsCopy(msgspec.Struct, frozen=True):
    """The robots.txt in force at a site, after the last answer."""

    action: RobotsAction
    status: str  # an HTTP status, or a code of what went wrong: "200", "404", "timeout", "redirect loop"
    fetched_at: float
    expires_at: float
    body: bytes | None = b""  # None: it is large, and only the store has it
    sha256: bytes = b""  # of body; empty if there is none
    etag: str | None = None
    last_modified: str | None = None
    failures: int = 0  # temporary failures in a row
    failing_since: float | None = None
    retry_at: float | None = None
    note: str = ""


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A link of a page: the canonical target, the anchor text, ``rel`` as written, and whether to follow it."""

    url: str
    anchor: str
    rel: str
    follow: bool


class Resource(NamedTuple):
    """How often a page names resources of one kind on one host."""

    kind: str  # "script", "image", "style" or "frame"
    host: str
    times: int


class PageFacts(msgspec.Struct, frozen=True, array_like=True):
    """The facts in an HTML page and its headers (``docs/protocols.md``, section 3)."""

    index: bool = True
    follow: bool = True
    archive: bool = True  # False: no copy of the page may be shown (NOARCHIVE)
    until: float = math.inf  # epoch seconds from which the page may not be shown (``unavailable_after``)
    snippet_chars: float = math.inf  # the longest excerpt that may be shown (NOSNIPPET, ``max-snippet``)
    title: str | None = None
    description: str | None = None
    keywords: str | None = None
    document_state: str | None = None
    canonical_url: str | None = None  # rel=canonical, otherwise META URL
    meta_url: str | None = None
    refresh_url: str | None = None  # the target of an instant refresh (HTML, 4.2.5.3), outside <noscript>
    base_url: str = ""
    charset: str | None = None
    links: tuple[Link, ...] = ()
    other_schemes: dict[str, int] = msgspec.field(default_factory=dict)  # mailto: 3, javascript: 12 …
    directives: tuple[str, ...] = ()  # each with its source, for ``crawler why``
    wall: str = ""  # the bot defence that answered in place of the page, with the evidence; empty if none did
    note: str = ""  # the parts of the page that were left out, or why the page could not be read
    is_read: bool = True  # False: the page could not be parsed; ``note`` says why
    body_sha256: bytes = b""  # of the decoded body
    body_bytes: int = 0  # length of the decoded body
    is_one_gzip: bool = True  # False: the body is in gzip, but not one member, so it must be kept in another form
    broken: RequestError | None = None  # why there is no document: the body cannot be decoded, or is too large
    text_sha256: bytes | None = None  # of the text without mark-up and blanks; None for what is no HTML
    language: str | None = None  # the tag that the page declares, else its headers
    resources: tuple[Resource, ...] = ()  # if requested
    feeds: tuple[str, ...] = ()  # the RSS and Atom feeds that the page names
    inline_licence: str = ""  # a licence of RSL that stands in the page
    shingles: bytes = b""  # of the visible text, if requested (:mod:`crawler.page.soft_404`)
    soft_404: bool | None = None  # whether it is like the answer to a path that cannot exist; None: not compared
    preferences: tuple[Preference, ...] = ()  # about use, in the page and its headers
    withheld: str = ""  # the preference because of which the page is not kept; empty if there is none
    unkept: str = ""  # why the caller does not want to keep the page; empty if the page is kept
