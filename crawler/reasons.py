"""Outcomes as codes: why a URL is in its state, why a request failed, why a run ended, why a group waits.

Each outcome is a code and a detail. Programs compare, count and filter by the code: ``urls.reason_code``,
``requests.error_kind``, ``runs.ended_code``, ``sites.wait_code``, ``rup_mails.verdict_code``,
``rup_servers.state_code``, the labels of ``/metrics``. The detail holds the particulars: a line of robots.txt, a host
name, a number. The sentence for people is rendered from both, here and nowhere else: the store keeps it beside the code
(``urls.reason``, ``requests.error``, ``runs.ended_by``, ``sites.waits_for``, ``rup_mails.verdict``), and the terminal,
the Python API and the reports show it.

To add an outcome, add a member with its sentence and its meaning. ``{}`` in the sentence stands for the detail. A key
in braces, such as ``{limits.max_pages}``, stands for that setting: the store keeps the key, and each front end prints
its own name for the setting (:meth:`Code.message`). A member whose details name settings lists their keys after its
meaning. The meaning names all outcomes with that code, for example as the heading of a group in a report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Generic, Self, TypeVar

import msgspec

from crawler.errors import Reference, Setting

_DETAIL = "{}"
_VERDICT_CHARS = 200  # a stranger writes mails
_SETTING = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")


class Code(StrEnum):
    """A code with its ``sentence`` (``{}`` stands for the detail) and its ``meaning`` (of all outcomes with it).

    ``settings`` has the keys of the settings that the sentence or its details name.
    """

    sentence: str
    meaning: str
    settings: tuple[str, ...]
    _template: str  # the sentence with the bare keys of settings

    def __new__(cls, value: str, sentence: str = _DETAIL, meaning: str = "", in_details: tuple[str, ...] = ()) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        member.meaning = meaning or value.replace("_", " ")
        member.settings = (*_SETTING.findall(sentence), *in_details)
        member._template = _SETTING.sub(r"\1", sentence)
        return member

    @property
    def label(self) -> str:
        """The code in words, for places without room for the meaning."""
        return self.value.replace("_", " ")

    def render(self, detail: str) -> str:
        """The sentence for people, with the key of each setting in it."""
        return self._template.replace(_DETAIL, detail)

    def parts(self, rendered: str) -> list[str | Reference]:
        """The sentence ``rendered``, which :meth:`render` made, as the parts of a :class:`CrawlerError`."""
        if not self.settings:
            return [rendered]
        pieces = re.split(f"({'|'.join(map(re.escape, self.settings))})", rendered)
        return [Setting(piece) if place % 2 else piece for place, piece in enumerate(pieces)]

    def message(self, rendered: str, name: Callable[[Reference], str]) -> str:
        """The sentence ``rendered``, which :meth:`render` made, with ``name(setting)`` for each setting in it."""
        return "".join(part if isinstance(part, str) else name(part) for part in self.parts(rendered))


C = TypeVar("C", bound=Code)


class Coded(msgspec.Struct, Generic[C], frozen=True):
    """An outcome: a code with its detail. Subclasses without further fields inherit its methods."""

    code: C
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The sentence for people, as the views show it."""
        return self.code.render(self.detail)

    def __str__(self) -> str:
        return self.sentence


class ReasonCode(Code):
    """Why a URL is in its state. Each code belongs to the states that its section names."""

    # queued
    NEW = "new", "", "not requested yet"
    REQUEUED = "requeued", "", "queued again"
    RETRY = "retry", "{}", "waiting for another attempt"
    REVISIT_DUE = "revisit_due", "revisit: due", "due for a revisit"
    REVISIT_HINTED = "revisit_hinted", "revisit: reported as changed by {}", "reported as changed, to be revisited"
    REVISIT_WHOLE = (
        "revisit_whole",
        "revisit: its directives have changed, so the whole page is needed",
        "to be fetched in full, because its headers have changed",
    )
    NOT_A_SITEMAP = "not_a_sitemap", "named as a sitemap, but it is a page", "named as a sitemap, but it is a page"

    # fetched
    FETCHED = "fetched", "{}", "fetched"
    NOINDEX = "noindex", "{}, noindex: body and texts not kept", "fetched, but not kept, because the page says noindex"
    WITHHELD = (
        "withheld",
        "{}: body and texts not kept",
        "fetched, but not kept, because the page refuses a declared purpose",
    )
    NOT_KEPT = "not_kept", "{}; body and texts not kept", "fetched, but not kept: the caller's function keep said no"
    REFRESH = "refresh", "{}", "fetched; an instant refresh leads to another page, which stands for it"
    UNREAD = "unread", "{}; body and texts not kept", "fetched; it could not be read, and is not kept"
    SITEMAP = "sitemap", "{}", "a sitemap that was read"
    RUPINFO = "rupinfo", "{}", "an offer of updates (RUP) that was read"
    CHANGED = "changed", "{}, changed", "changed since the previous visit"
    MARKUP_CHANGED = "markup_changed", "{}, only the mark-up changed", "only the mark-up changed"
    UNCHANGED = "unchanged", "{}", "unchanged since the previous visit"
    UNREACHED = "unreached", "{}", "fetched, but not reachable at the last visit"

    # redirected
    REDIRECT = "redirect", "{}", "redirected"

    # excluded
    SCOPE = (
        "scope",
        "scope: {}",
        "outside the scope of the crawl",
        ("scope.mode",),
    )
    PATTERN = (
        "pattern",
        "pattern: {}",
        "left out by the patterns of the user",
        ("scope.include", "scope.exclude"),
    )
    PORT = "port", "port: {} is that of another service than the web", "at a port of another service than the web"
    CONTACT = (
        "contact",
        "contact: {} is not on loopback, and the crawl names no contact for the owner of the site ({identity.contact})",
        "not on loopback, and no contact was given",
    )
    DEPTH = "depth", "depth: {}", "too many links away from the seeds", ("limits.max_depth",)
    NOFOLLOW = "nofollow", 'nofollow: linked only with rel="nofollow"', "linked to only with rel=nofollow"
    NOT_FOLLOWED = "not_followed", "not followed: {} said no", "left out by the caller's function follow"
    TRAP = "trap", "trap: {}", "looks like part of an endless series of URLs"
    BLOCKED = "blocked", "blocked by the operator", "blocked by the operator"
    FORGOTTEN = "forgotten", "forgotten by the operator{}", "forgotten by the operator: its content was taken out"
    ROBOTS = "robots", "robots: {}", "disallowed by the site's robots.txt"
    PREFERENCE = (
        "preference",
        "preference: {}",
        "refused by the site's robots.txt for a declared purpose",
        ("identity.purpose",),
    )
    MIRROR = "mirror", "mirror of {}", "on a mirror; requested from its main site instead"
    MIRROR_CYCLE = "mirror_cycle", "mirror cycle: {}", "on sites that name each other as main sites"
    OTHER_ADDRESS = (
        "other_address",
        "no answer: {}",
        "at an address without an answer; another address of the listed domain is tried instead",
    )
    TYPE = "type", "type: content type {} is not wanted", "of a content type that is not wanted"
    ADDRESS = (
        "address",
        "address: {}",
        "at an address that the crawler may not connect to",
        ("identity.contact", "fetch.allow_private"),
    )
    REDIRECTS = "redirects", "redirects: {}", "behind too many redirects"
    OTHER_BUCKET = (
        "other_bucket",
        "other bucket: requested by the task of another bucket",
        "requested by the task of another bucket of the dataset",
    )
    SAMPLE = "sample", "sample: not drawn", "not drawn for the random sample"
    FRAME = (
        "frame",
        "frame: not reached before the sampling frame was closed (sample.frame_patience)",
        "not reached before the sampling frame was closed",
    )
    REFUSED_AT_THE_EDGE = (
        "refused_at_the_edge",
        "refused at the edge: {}",
        "on a site that answered by walls or refusals until it was closed (status names such sites)",
    )
    NO_SITEMAP = "no_sitemap", "sitemap: there is none ({})", "named as a sitemap, but there is none"
    NO_RUPINFO = "no_rupinfo", "rup: {}", "no offer of updates (RUP)"

    # failed
    ROBOTS_GIVEN_UP = (
        "robots_given_up",
        "robots: given up, no usable answer for /robots.txt ({})",
        "given up: the site's robots.txt could not be fetched",
    )
    NOT_FOUND = "not_found", "{}", "not found (404)"
    GONE = "gone", "{}", "gone (410)"
    WALL = "wall", "a wall in place of the document: {}", "a challenge or refusal of a bot defence in place of a page"
    PAYMENT_REQUIRED = "payment_required", "payment required: {}", "offered for money only (402), which is never paid"
    CLIENT_ERROR = "client_error", "{}", "refused by the server (another 4xx status)"
    SERVER_ERROR = "server_error", "{}", "an error of the server (5xx status)"
    NO_DOCUMENT = "no_document", "{}", "an answer without a document"
    NO_ADDRESS = "no_address", "{}", "a host name without an address"
    NO_NAME = "no_name", "no such host: {}", "a host name that does not exist"
    LOOK_UP_FAILED = "look_up_failed", "{}", "a host name whose look-up failed"
    LOOK_UP_TIMEOUT = "look_up_timeout", "{}", "a host name for which no name server answered in time"
    NO_CONNECTION = "no_connection", "{}", "no connection"
    TLS = "tls", "{}", "a TLS error"
    CERTIFICATE = (
        "certificate",
        "{}",
        "a certificate that is not valid",
        ("fetch.ca_file", "fetch.verify"),
    )
    TIMEOUT = "timeout", "{}", "no answer in time"
    TRUNCATED = "truncated", "{}", "an incomplete answer"
    PROTOCOL = "protocol", "{}", "an answer that is not HTTP"
    ENCODING = "encoding", "{}", "a content encoding that cannot be decoded"
    TOO_LARGE = "too_large", "{}, which {fetch.max_body_bytes} sets", "larger than the limit"
    BAD_REDIRECT = "bad_redirect", "{}", "a redirect without a usable target"
    REDIRECT_CIRCLE = "redirect_circle", "redirects in a circle ({})", "redirects in a circle"
    FAULT = "fault", "a bug in the crawler: {}; please report it", "failed because of a bug in the crawler"


#: The reasons of URLs that the sampling frame does not take, or that are not drawn.
FRAME_CODES = (ReasonCode.SAMPLE, ReasonCode.FRAME)


class Reason(Coded[ReasonCode], frozen=True):
    """Why a URL is in its state. The view ``urls`` shows it."""


class StoredReason(Reason, frozen=True):
    """A reason that the store has kept: ``detail`` is the whole sentence, as it was rendered then."""

    @property
    def sentence(self) -> str:
        return self.detail


class WaitCode(Code):
    """Why a politeness group gets no request for a time."""

    NONE = "none", "", "nothing: no request has been sent to it"
    DELAY = "delay", "delay", "the least pause between requests"
    SLOW = "slow", "{} times its last response time", "a slow answer"
    SLOWER = "slower", "answers that take {} times as long as usual", "answers slower than usual for the site"
    CRAWL_DELAY = "crawl_delay", "Crawl-delay", "the Crawl-delay of its robots.txt"
    BACKOFF = "backoff", "back-off after {}", "the back-off after trouble"
    RETRY_AFTER = "retry_after", "Retry-After of a {}", "the Retry-After of an answer"
    CRASH = "crash", "pause after a crash", "a worker died, and may have sent a request"
    ROBOTS = "robots", "robots.txt: {}", "its robots.txt could not be fetched"
    WALL = "wall", "rest after walls or refusals", "the rest of a site that answered by walls or refusals"
    RETRY = "retry", "retry", "the next attempt for a URL"
    HOURS = "hours", "{}, its hours", "the hours in which the operator lets the crawler ask it"
    ADDRESS = "address", "other hosts at {}", "requests to other hosts at the same address"
    LOOK_UP = "look_up", "the look-up of {}", "the look-up of its name"
    DOMAIN = "domain", "other hosts of {}", "requests to other hosts of the same registered domain"
    LOOP = (
        "loop",
        "the time that answers of {} took",
        "answers of its registered domain that took the crawler much time",
    )
    READING = "reading", "the reading of its robots.txt", "its large robots.txt, behind those of other sites"


class WaitReason(Coded[WaitCode], frozen=True):
    """Why a politeness group gets no request for a time. The view ``sites`` shows it."""

    code: WaitCode = WaitCode.NONE


NO_WAIT = WaitReason()


class StoredWaitReason(WaitReason, frozen=True):
    """A wait that the store has kept: ``detail`` is the whole sentence, as it was rendered then."""

    @property
    def sentence(self) -> str:
        return self.detail


def group_waits_for(robots_problem: str | None, stored: str) -> str:
    """Why a politeness group waits, as a sentence.

    ``robots_problem`` says why a robots.txt could not be fetched; it is ``None`` if no site of the group waits for its
    robots.txt. ``stored`` is the sentence of the group's pause, empty if it has none.
    """
    return (stored or WaitCode.RETRY.sentence) if robots_problem is None else WaitCode.ROBOTS.render(robots_problem)


class ServerState(Code):
    """The state of a RUP server with which the robot of a store is registered. The codes are those of the view."""

    REPORTS = "reports", "reports", "its reports arrive"
    QUIET = "quiet", "quiet", "no report came when one was due"
    TO_BE_ASKED = "to_be_asked", "to be asked: {}", "it will be asked for its changes"
    UNREACHED = "unreached", "not reached: {}", "its last answer did not arrive"
    UNCLEAR = "unclear", "unclear: no answer to Register", "it has not answered the registration"
    GIVEN_UP = "given_up", "given up: {}", "no reports are expected any more"


class MailCode(Code):
    """The effect of a mail that the RUP robot read."""

    TAKEN = "taken", "taken", "taken: its changes became hints"
    UNREADABLE = "unreadable", "not a report: {}", "not a report"
    UNREGISTERED = "unregistered", "no registration with {}", "a report of a site without a registration"
    UNNUMBERED = "unnumbered", "a report without a sequence number", "a report without a sequence number"


class MailVerdict(Coded[MailCode], frozen=True):
    """The effect of a mail that the RUP robot read."""

    @property
    def sentence(self) -> str:
        """The sentence for people, as ``rup_mails.verdict`` shows it, in at most 200 characters."""
        return self.code.render(self.detail)[:_VERDICT_CHARS]


class ErrorKind(Code):
    """The failure of a request, by the level at which it occurred."""

    HTTP = "http", "{}", "an error status"
    DNS = "dns", "{}", "no address for the name"
    DNS_NO_NAME = "dns_no_name", "{}", "a name that does not exist (NXDOMAIN)"
    DNS_FAILED = "dns_failed", "{}", "a name whose look-up failed (SERVFAIL, REFUSED, no usable answer)"
    DNS_TIMEOUT = "dns_timeout", "{}", "a name for which no name server answered in time"
    CONNECT = "connect", "{}", "no connection"
    CLOSING = "closing", "{}", "sent on an idle connection that the server was closing, and sent again"
    SIGNATURE = "signature", "{}; asks for another signature", "refused for its signature, and sent again as asked"
    TLS = "tls", "{}", "a TLS error"
    CERTIFICATE = "certificate", "{}", "a certificate that is not valid", ("fetch.ca_file", "fetch.verify")
    TIMEOUT = "timeout", "{}", "no answer in time"
    TRUNCATED = "truncated", "{}", "an incomplete answer"
    PROTOCOL = "protocol", "{}", "not HTTP, or headers or framing beyond the limits"
    ENCODING = "encoding", "{}", "a content encoding that is broken or was not offered"
    TOO_LARGE = "too_large", "too large: {}", "too large"
    UNWANTED_TYPE = "unwanted_type", "content type {} is not wanted", "a content type that is not wanted"
    WALL = "wall", "a wall in place of the document: {}", "a challenge or refusal of a bot defence"
    PAYMENT = "payment", "402 Payment Required: {}", "a document that is offered for money only"
    ADDRESS = (
        "address",
        "{}",
        "an address that the crawler may not connect to",
        ("identity.contact", "fetch.allow_private"),
    )
    STOPPED = "stopped", "stopped before the answer was complete", "stopped before the answer was complete"
    FAULT = "fault", "a bug in the crawler: {}; please report it", "a bug in the crawler"


#: The failures of a look-up: nothing was sent to the site.
DNS_KINDS = frozenset({ErrorKind.DNS, ErrorKind.DNS_NO_NAME, ErrorKind.DNS_FAILED, ErrorKind.DNS_TIMEOUT})

#: The failures before any connection: no request was sent. A refused connection is no such failure: a packet was sent.
UNSENT_KINDS = DNS_KINDS | {ErrorKind.ADDRESS}


class RequestError(msgspec.Struct, frozen=True):
    """Why the answer to a request has no document."""

    kind: ErrorKind
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The sentence for people, as ``requests.error`` shows it."""
        return self.kind.render(self.detail)

    @property
    def parts(self) -> list[str | Reference]:
        """The sentence as the parts of a :class:`crawler.errors.CrawlerError`."""
        return self.kind.parts(self.sentence)

    def __str__(self) -> str:
        return self.sentence


class EndCode(Code):
    """Why a run, or a worker of it, ended."""

    DONE = "done", "nothing is left in the frontier"
    NO_REVISIT_DUE = "no_revisit_due", "nothing is left in the frontier, and no revisit is due"
    NOTHING_QUEUED = (
        "nothing_queued",
        "nothing is left in the frontier: no URL was queued under the options of this run",
    )
    SEEDS_LEFT_OUT = (
        "seeds_left_out",
        "nothing is left in the frontier: every seed was left out: {}",
        "nothing is left in the frontier: every seed was left out",
        tuple(sorted({key for code in ReasonCode for key in code.settings})),
    )
    MAX_PAGES = "max_pages", "{limits.max_pages} reached ({})", "the limit of pages is reached"
    MAX_PAGES_NO_REVISIT_DUE = (
        "max_pages_no_revisit_due",
        "no revisit is due, and {limits.max_pages} is reached ({})",
        "no revisit is due, and the limit of pages is reached",
    )
    MAX_PAGES_PER_SITE = (
        "max_pages_per_site",
        "every site with queued URLs has reached {limits.max_pages_per_site} {}",
        "every site with queued URLs has reached the limit of pages of a site",
    )
    MAX_TIME = "max_time", "{limits.max_time} is over", "the time of the run is over"
    ALL_WAIT = (
        "all_wait",
        "everything left waits until after {limits.max_time}: {}",
        "everything left waits for longer than the run may last",
    )
    FORCED = (
        "forced",
        "could not end in order in time, and was ended at once; the same command continues the crawl",
        "could not end in order in time, and was ended at once",
    )
    ROUND_OVER = "round_over", "the round is over"
    MAX_DISK = "max_disk", "{limits.max_disk} is reached: {}", "the limit of disk space is reached"
    SIGNAL = "signal", "stopped by {}; the same command continues the crawl"
    DEMO = "demo", "stopped by {}; the next demo begins anew, and replaces this store", "a demo stopped by a signal"
    OPERATOR = "operator", "stopped by the operator; the same command continues the crawl"
    CALLER = "caller", "stopped by the caller; run() continues the crawl"
    CUT_SHORT = "cut_short", "cut short by the caller; run() continues the crawl"
    AUXILIARY = "auxiliary", "{}", "done: an auxiliary run of another command"
    STOPPED = "stopped", "stopped; the same command continues the crawl"
    NOT_BEGUN = "not_begun", "ended before it began"
    REPLACED = "replaced", "joined anew", "a worker that joined its run anew"
    KILLED = "killed", "killed", "a worker that was killed"
    DIED = "died", "{}", "a worker whose process failed"
    LEASE_RAN_OUT = "lease_ran_out", "lease ran out", "a worker whose lease ran out"
    SUPERSEDED = (
        "superseded",
        "the store was unreachable for longer than the lease, and another crawl began meanwhile",
    )
    STORE_FAILED = "store_failed", "the store failed: {}"
    HOOK = "hook", "{}", "a function of the caller failed"
    FAILURE = "failure", "a failure"
    BUG = "bug", "a bug"


class RunEnd(Coded[EndCode], frozen=True):
    """Why a run, or a worker of it, ended. The view ``runs`` shows it."""

    def message(self, name: Callable[[Reference], str]) -> str:
        """The sentence, with ``name(setting)`` for each setting in it."""
        return self.code.message(self.sentence, name)

    def as_json(self) -> list[str]:
        """The end as a JSON value, for :meth:`from_json` in another process."""
        return [self.code.value, self.detail]

    @classmethod
    def from_json(cls, value: Sequence[str]) -> Self:
        """The end from which :meth:`as_json` made ``value``."""
        code, detail = value
        return cls(EndCode(code), detail)
