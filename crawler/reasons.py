"""Outcomes as codes: why a URL is in its state, what went wrong with a request, why a run ended.

Each outcome is a code and a detail. The code is what programs compare, count and filter by: ``urls.reason_code``,
``requests.error_kind``, ``runs.ended_code``, the labels of ``/metrics``. The detail holds the particulars: a line of
robots.txt, a host name, a number. The sentence for people is rendered from both, here and nowhere else: the store keeps
it beside the code (``urls.reason``, ``requests.error``, ``runs.ended_by``), and the terminal, the Python API and the
reports show it.

To add an outcome, add a member with its sentence and its meaning. ``{}`` in the sentence stands for the detail. The
meaning names all outcomes with that code, for example as the heading of a group in a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_DETAIL = "{}"


class Code(StrEnum):
    """A code with its ``sentence`` (``{}`` stands for the detail) and its ``meaning`` (of all outcomes with it)."""

    sentence: str
    meaning: str

    def __new__(cls, value: str, sentence: str = _DETAIL, meaning: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        member.meaning = meaning or value.replace("_", " ")
        return member

    @property
    def label(self) -> str:
        """The code in words, where there is no room for the meaning."""
        return self.value.replace("_", " ")

    def render(self, detail: str) -> str:
        """The sentence for people."""
        return self.sentence.replace(_DETAIL, detail)


class ReasonCode(Code):
    """Why a URL is in its state. Each code belongs to the states that its section names."""

    # queued
    NEW = "new", "", "not asked for yet"
    REQUEUED = "requeued", "", "queued again"
    RETRY = "retry", "{}", "waiting for another attempt"
    REVISIT_DUE = "revisit_due", "revisit: due", "due for a revisit"
    REVISIT_HINTED = "revisit_hinted", "revisit: told of by {}", "reported as changed, to be revisited"
    REVISIT_WHOLE = (
        "revisit_whole",
        "revisit: its headers ask for other treatment than before",
        "to be fetched whole, since its headers have changed",
    )
    NOT_A_SITEMAP = "not_a_sitemap", "named as a sitemap, but a page", "named as a sitemap, but a page"

    # fetched
    FETCHED = "fetched", "{}", "fetched"
    NOINDEX = "noindex", "{}, noindex: body and texts not kept", "fetched; it asks not to be kept (noindex)"
    SITEMAP = "sitemap", "{}", "a sitemap that was read"
    RUPINFO = "rupinfo", "{}", "an offer of updates (RUP) that was read"
    CHANGED = "changed", "{}, changed", "changed since the visit before"
    MARKUP_CHANGED = "markup_changed", "{}, changed in its mark-up", "changed in its mark-up alone"
    UNCHANGED = "unchanged", "{}", "unchanged since the visit before"
    UNREACHED = "unreached", "{}", "not reached since it was fetched"

    # redirected
    REDIRECT = "redirect", "{}", "redirected"

    # excluded
    SCOPE = "scope", "scope: {}", "outside the scope of the crawl"
    CONTACT = "contact", "contact: {}", "off loopback, with no --contact given"
    DEPTH = "depth", "depth: {}", "too many links away from the seeds"
    NOFOLLOW = "nofollow", 'nofollow: linked only with rel="nofollow"', "linked to only with rel=nofollow"
    TRAP = "trap", "trap: {}", "looks like one of endless many"
    BLOCKED = "blocked", "blocked by the operator", "blocked by the operator"
    ROBOTS = "robots", "robots: {}", "closed by the site's robots.txt"
    MIRROR = "mirror", "mirror of {}", "on a mirror: asked of its main site instead"
    MIRROR_CYCLE = "mirror_cycle", "mirror cycle: {}", "on sites that name each other as main hosts"
    TYPE = "type", "type: content type {} is not wanted", "not of a wanted content type"
    ADDRESS = "address", "address: {}", "at an address that is not connected to"
    REDIRECTS = "redirects", "redirects: {}", "behind too many redirects"
    SAMPLE = "sample", "sample: not drawn", "left to chance, and not drawn for the sample"
    NO_SITEMAP = "no_sitemap", "sitemap: there is none ({})", "named as a sitemap, and none is there"
    NO_RUPINFO = "no_rupinfo", "rup: {}", "no offer of updates (RUP)"

    # failed
    ROBOTS_GIVEN_UP = (
        "robots_given_up",
        "robots: given up, no answer for /robots.txt could be had ({})",
        "given up: the site's robots.txt could not be had",
    )
    NOT_FOUND = "not_found", "{}", "not found (404)"
    GONE = "gone", "{}", "gone (410)"
    CLIENT_ERROR = "client_error", "{}", "refused by the server (another 4xx status)"
    SERVER_ERROR = "server_error", "{}", "an error of the server (5xx status)"
    NO_DOCUMENT = "no_document", "{}", "an answer without a document"
    NO_ADDRESS = "no_address", "{}", "a host name without an address"
    NO_CONNECTION = "no_connection", "{}", "no connection"
    TLS = "tls", "{}", "no TLS, or a certificate that is not valid"
    TIMEOUT = "timeout", "{}", "no answer in time"
    TRUNCATED = "truncated", "{}", "an answer that broke off"
    PROTOCOL = "protocol", "{}", "an answer that is not HTTP"
    ENCODING = "encoding", "{}", "a content encoding that cannot be decoded"
    TOO_LARGE = "too_large", "{}", "larger than is allowed"
    BAD_REDIRECT = "bad_redirect", "{}", "a redirect that leads nowhere"
    REDIRECT_CIRCLE = "redirect_circle", "redirects in a circle ({})", "redirects in a circle"
    FAULT = "fault", "a fault of the crawler: {}; please report it", "failed by a fault of the crawler"
    WORKER_DIED = (
        "worker_died",
        "the crawler died {} times while it worked on this URL; please report it",
        "given up: the crawler died while it worked on the URL",
    )


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a URL is in its state."""

    code: ReasonCode
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The sentence for people, as ``urls.reason`` shows it."""
        return self.code.render(self.detail)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True)
class StoredReason(Reason):
    """A reason that the store has kept: ``detail`` is the whole sentence, as it was rendered then."""

    @property
    def sentence(self) -> str:
        return self.detail


class ErrorKind(Code):
    """What went wrong with a request, at the level where it went wrong."""

    HTTP = "http", "{}", "an error status"
    DNS = "dns", "{}", "no address for the name"
    CONNECT = "connect", "{}", "no connection"
    TLS = "tls", "{}", "no TLS"
    TIMEOUT = "timeout", "{}", "no answer in time"
    TRUNCATED = "truncated", "{}", "an answer that broke off"
    PROTOCOL = "protocol", "{}", "not HTTP, or headers beyond the limits"
    ENCODING = "encoding", "{}", "a content encoding that is broken or was not offered"
    TOO_LARGE = "too_large", "too large: {}", "too large"
    UNWANTED_TYPE = "unwanted_type", "content type {} is not wanted", "not of a wanted content type"
    ADDRESS = "address", "{}", "an address that is not connected to"
    STOPPED = "stopped", "stopped before the answer was complete", "stopped before the answer was complete"
    FAULT = "fault", "a fault of the crawler: {}; please report it", "a fault of the crawler"


@dataclass(frozen=True, slots=True)
class RequestError:
    """Why a request has no document for an answer."""

    kind: ErrorKind
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The sentence for people, as ``requests.error`` shows it."""
        return self.kind.render(self.detail)

    def __str__(self) -> str:
        return self.sentence


class EndCode(Code):
    """Why a run ended."""

    DONE = "done", "nothing is left in the frontier"
    NO_REVISIT_DUE = "no_revisit_due", "nothing is left in the frontier, and no revisit is due"
    NOTHING_QUEUED = (
        "nothing_queued",
        "nothing is left in the frontier: nothing was queued when this run began",
    )
    SEEDS_LEFT_OUT = "seeds_left_out", "nothing is left in the frontier: every seed was left out: {}"
    MAX_PAGES = "max_pages", "--max-pages reached ({})"
    MAX_PAGES_PER_SITE = (
        "max_pages_per_site",
        "every site with URLs left has its --max-pages-per-site {} queued",
    )
    MAX_TIME = "max_time", "--max-time is over"
    SIGNAL = "signal", "stopped by {}; the same command goes on"
    OPERATOR = "operator", "stopped by the operator; the same command goes on"
    CALLER = "caller", "stopped by the caller; run() goes on"
    CUT_SHORT = "cut_short", "cut short by the caller; run() goes on"
    AUXILIARY = "auxiliary", "{}", "done: an auxiliary run of another command"
    STOPPED = "stopped", "stopped; the same command goes on"
    NOT_BEGUN = "not_begun", "ended before it had begun"
    SUPERSEDED = (
        "superseded",
        "out of touch for longer than its lease, and another crawl was begun meanwhile",
    )
    STORE_FAILED = "store_failed", "the store failed: {}"
    FAILURE = "failure", "a failure"
    BUG = "bug", "a bug"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why a run ended."""

    code: EndCode
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The sentence for people, as ``runs.ended_by`` shows it."""
        return self.code.render(self.detail)

    def __str__(self) -> str:
        return self.sentence

    def as_json(self) -> list[str]:
        """The end as a JSON value, for :meth:`from_json` in another process."""
        return [self.code.value, self.detail]

    @classmethod
    def from_json(cls, value: Sequence[str]) -> Self:
        """The end that :meth:`as_json` made ``value`` of."""
        code, detail = value
        return cls(EndCode(code), detail)
