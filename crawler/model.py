"""The plain facts that pass between the rules and the shell. Frozen data, no behaviour to speak of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from crawler.gunzip import gunzip
from crawler.reasons import ErrorKind, RequestError

Headers = tuple[tuple[str, str], ...]
"""Response headers in the order received, names as sent. Read them with :func:`header`."""


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
    RUP = "rup"  # what a site offers by the Remote Update Protocol, and talking to it


class Kind(StrEnum):
    """What a URL is asked for."""

    PAGE = "page"
    SITEMAP = "sitemap"
    RUP = "rup"  # a /rupinfo.txt


class Reading(StrEnum):
    """How one robots.txt is interpreted (``docs/protocols.md``, section 1)."""

    STRICT = "strict"
    DRAFT1996 = "draft1996"
    RFC9309 = "rfc9309"


@dataclass(frozen=True, slots=True)
class Request:
    """One GET to send, or a POST of ``form``. ``max_bytes`` bounds the decoded body.

    ``shown_url`` stands in the log in place of a ``url`` that holds a secret.
    """

    url: str
    purpose: Purpose
    max_bytes: int
    truncate: bool = False  # past max_bytes: keep what came (True) or fail (False)
    any_type: bool = False  # robots.txt is read whatever its Content-Type says
    etag: str | None = None
    last_modified: str | None = None
    form: tuple[tuple[str, str], ...] | None = None
    shown_url: str | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """The octets that went over the connection for one request.

    ``response`` begins with the status line of the final answer; informational answers are left out. ``complete`` says
    whether the whole answer was received.
    """

    request: bytes
    response: bytes
    address: str  # the server's
    complete: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What every outcome of a request carries. Times in seconds since the epoch."""

    url: str
    started_at: float
    finished_at: float
    headers: Headers = ()
    wire_bytes: int = 0
    exchange: Exchange | None = field(default=None, kw_only=True)  # where a fetcher was told to keep it


@dataclass(frozen=True, slots=True)
class Fetched(Answer):
    """A 2xx answer with a document. ``content_type`` is the bare lower-case type, or ``""``."""

    status: int = 200
    content_type: str = ""
    charset: str | None = None  # from the header only
    plain: bytes | None = b""  # the decoded body; None if ``gzipped`` holds it
    gzipped: bytes | None = None  # the body as received, if that is one gzip member and shorter than the decoded body
    truncated: bool = False

    @property
    def body(self) -> bytes:
        """The decoded body. A gzipped body is decoded at each call, which takes some 2 ms a megabyte."""
        return _decoded(self.plain, self.gzipped)


@dataclass(frozen=True, slots=True)
class Body:
    """A document to be kept: its digest, and its bytes as they are, or else as one gzip member."""

    sha256: bytes
    plain: bytes | None
    gzipped: bytes | None = None

    def decoded(self) -> bytes:
        """The document itself."""
        return _decoded(self.plain, self.gzipped)

    def __len__(self) -> int:
        """Bytes held, which may be fewer than the document has."""
        return len(self.plain or self.gzipped or b"")


def _decoded(plain: bytes | None, gzipped: bytes | None) -> bytes:
    if plain is not None:
        return plain
    assert gzipped is not None
    return gunzip(gzipped)


@dataclass(frozen=True, slots=True)
class NotModified(Answer):
    """A 304 to a conditional request."""

    status: int = 304


@dataclass(frozen=True, slots=True)
class Redirected(Answer):
    """A 301, 302, 303, 307 or 308 with a ``Location``, which is kept as received (latin-1 bytes as %xx)."""

    status: int = 302
    location: str = ""


@dataclass(frozen=True, slots=True)
class Failed(Answer):
    """Anything else. ``kind`` and ``detail`` are those of :attr:`error`."""

    kind: ErrorKind = ErrorKind.HTTP
    status: int | None = None
    detail: str = ""

    @property
    def error(self) -> RequestError:
        """What went wrong."""
        return RequestError(self.kind, self.detail)


FetchResult = Fetched | NotModified | Redirected | Failed


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request with its answer for the archive. ``left_out`` says why the body must not be kept, else it is empty."""

    answer: FetchResult
    purpose: Purpose
    left_out: str = ""
    depth: int = 0


def header(headers: Headers, name: str) -> str | None:
    """The first value of a header, or ``None``."""
    wanted, length = name.lower(), len(name)
    for key, value in headers:
        if len(key) == length and key.lower() == wanted:
            return value
    return None


def header_values(headers: Headers, name: str) -> Iterator[str]:
    """Every value of a header, in order."""
    wanted = name.lower()
    return (value for key, value in headers if key.lower() == wanted)


class RobotsAction(StrEnum):
    """What the last answer to a site's /robots.txt means (``docs/protocols.md``, section 1)."""

    PARSE = "parse"  # a file, to be read and obeyed
    FREE = "free"  # no instructions: unrestricted
    RESTRICTED = "restricted"  # nothing of the site may be fetched
    DEFER = "defer"  # nothing is fetched now; robots.txt is tried again at ``retry_at``
    GIVEN_UP = "given_up"  # deferred for longer than ``give_up_after``
    UNREACHABLE = "unreachable"  # our own address guard refuses the site


@dataclass(frozen=True, slots=True)
class RobotsCopy:
    """The robots.txt in force at a site, as the last answer left it."""

    action: RobotsAction
    status: str  # for people: "200", "404", "timeout", "redirect loop"
    fetched_at: float
    expires_at: float
    body: bytes = b""
    sha256: bytes = b""  # of body; empty where there is none
    etag: str | None = None
    last_modified: str | None = None
    failures: int = 0  # temporary failures in a row
    failing_since: float | None = None
    retry_at: float | None = None
    note: str = ""


class Link(NamedTuple):
    """One outlink of a page: canonical target, anchor text, ``rel`` as written, whether to follow it."""

    url: str
    anchor: str
    rel: str
    follow: bool


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What an HTML page and its headers say of it (``docs/protocols.md``, section 3)."""

    index: bool = True
    follow: bool = True
    archive: bool = True  # False: no copy of it may be shown (NOARCHIVE)
    until: float = math.inf  # epoch seconds from which it may not be shown (``unavailable_after``)
    title: str | None = None
    description: str | None = None
    keywords: str | None = None
    document_state: str | None = None
    canonical_url: str | None = None  # rel=canonical, else META URL
    meta_url: str | None = None
    base_url: str = ""
    charset: str | None = None
    links: tuple[Link, ...] = ()
    other_schemes: dict[str, int] = field(default_factory=dict)  # mailto: 3, javascript: 12 …
    directives: tuple[str, ...] = ()  # each with its source, for ``crawler why``
    note: str = ""  # what of the page was left out, or why it could not be read
    is_read: bool = True  # False: the page could not be parsed; ``note`` says why
    body_sha256: bytes = b""  # of the decoded body
    body_bytes: int = 0  # length of the decoded body
    text_sha256: bytes | None = None  # of the text without mark-up and blanks, where that was asked for
    feeds: tuple[str, ...] = ()  # RSS and Atom that the page names
