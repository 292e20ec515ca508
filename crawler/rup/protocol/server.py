"""Decisions of a server: answers, registrations, and when a report is due (Internet-Draft of 1998, 3.1 to 3.3).

The caller looks up the registration that a request names, calls :func:`decide`, carries out the effect, and sends the
answer after that. ``docs/rup-server.md`` says how this server closes gaps in the draft.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from crawler.rup.protocol import answers
from crawler.rup.protocol.forms import (
    Agreement,
    BadForm,
    GetIndex,
    GetSequenceNumber,
    Leave,
    ModifyPreferences,
    Preferences,
    Register,
    RupRequest,
    Unregister,
)
from crawler.rup.protocol.info import ANY_PATTERN, RupInfo
from crawler.rup.protocol.patterns import wrong_with
from crawler.rup.protocol.report import Change, Report, write_report
from crawler.rup.protocol.units import Span, grace_s

#: The longest time between two reports, in seconds.
MAX_LATENCY_S = 365 * 86_400

#: If nothing changes, a robot receives a report at most once in this many seconds, whatever its latency.
SIGN_OF_LIFE_S = 86_400

#: When a robot that the server refused for lack of room may ask again, in seconds.
FULL_S = 3600

#: The default of how long the server keeps changes.
MAX_QUERY_SPAN = Span(30, "day")


#: Bounds on the cost of robots: patterns of one registration and their characters; registrations in total, and from one
#: network address.
MAX_PATTERNS, MAX_PATTERN_CHARS = 20, 200
MAX_REGISTRATIONS, MAX_REGISTRATIONS_OF_CLIENT = 10_000, 100

#: How long a robot may take to confirm after its second report is late, and how long the server remembers a
#: registration that has ended, in seconds.
UNCONFIRMED_S = 30 * 86_400.0

#: The longest answer to GetIndex, in characters, and the answer if it would be longer.
MAX_INDEX_CHARS = 4 * 2**20
TOO_MUCH = "too many changes in {} for one answer; ask for a shorter span, or crawl the site again"


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """The offer of this server: its URLs, and the choices of a robot. There is at least one latency."""

    cgi: str  # canonical URL
    url_base: str  # the site, with its slash
    latencies: tuple[str, ...] = ("minute", "hour", "day", "week", "month")
    max_query_span: Span = MAX_QUERY_SPAN

    @property
    def info(self) -> RupInfo:
        """The content of ``/rupinfo.txt``. A robot may use any pattern, which ``.*`` stands for."""
        free = (ANY_PATTERN,)
        return RupInfo(self.cgi, "none", self.latencies, free, free, self.max_query_span)

    @property
    def default_latency(self) -> Span:
        """The latency of a robot that names none: a day, or the coarsest unit of the offer."""
        return Span(1, "day" if "day" in self.latencies else self.latencies[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(Agreement):
    """One robot. All times in seconds since the epoch.

    The server remembers a registration that has ended, which has no key: its address gets no new first report.
    """

    client: str  # the network address that sent Register
    agent: str = ""  # the product token that sent Register, for robots.txt
    token: str = ""  # a secret that only mails to the address contain
    confirmed: bool = False  # it has sent a request since its first report left
    reported_to: int = 0  # the last entry of the modification log that its reports cover
    reported_at: float | None = None  # when its last report was made
    accepted_at: float | None = None  # when the mail server first accepted a report to this address

    @property
    def has_ended(self) -> bool:
        return not self.key


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """Status and HTML document."""

    status: int
    html: str
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The knowledge of the store about a request."""

    registration: Registration | None = None  # of the address in the request
    other: Registration | None = None  # of the new address in the request
    registrations: int = 0
    registrations_of_client: int = 0  # with those that have ended
    log_end: int = 0  # the newest entry of the modification log
    unsent: int = 0  # reports for the robot that the mail server has not accepted yet


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request: network address, and the product token of its User-Agent."""

    address: str
    agent: str = ""


def refuse(status: int, why: str, wait_s: float | None = None) -> FormAnswer:
    """An answer that says what is wrong, and after how many seconds the robot may ask again."""
    titles = {400: "Bad Request", 429: "Too Many Requests", 501: "Not Implemented", 503: "Service Unavailable"}
    html = answers.page(f"{status} {titles.get(status, 'Error')}", f"Error: {why}")
    return FormAnswer(status, html, None if wait_s is None else int(wait_s) + 1)


def ended(registration: Registration, *, left_at: float | None = None) -> Registration:
    """The registration after its end.

    ``left_at``: when the owner of the mailbox asked for no more mail, whoever registers the address. No signed request
    confirms it then, because no report counts as accepted.
    """
    over = replace(registration, key="", token="", confirmed=False)
    if left_at is not None:
        return replace(over, reported_at=left_at, accepted_at=None)
    return over if over.accepted_at is not None else replace(over, reported_at=None)


def decide(
    asked: RupRequest | BadForm,
    known: Known,
    client: Client,
    offer: ServerOffer,
    *,
    now: float,
    new_key: str,
    new_token: str,
) -> tuple[FormAnswer, tuple[Registration, ...]]:
    """Answer every action but GetIndex, for which see :func:`answer_index`; return the registrations to store, too.

    ``new_key`` and ``new_token`` are fresh secrets. A request with the right key confirms an address if a report to it
    has left: a robot cannot prove that it receives mail before that.
    """
    found = known.registration
    match asked:
        case BadForm(status, why):
            return refuse(status, why), ()
        case Register():
            return _register(asked, known, client, offer, now, (new_key, new_token))
        case GetIndex():
            raise ValueError("GetIndex is answered by answer_index")
        case Leave():
            if found is None:  # a mail program may send the request twice
                return _page("Unregistered", "This address receives no more reports."), ()
            if not asked.is_sure:
                return FormAnswer(200, answers.leave_page()), ()
            return _page("Unregistered", "Unregistered"), (ended(found, left_at=now),)
    # In constant time and with one answer for both errors: nobody may learn whether an address is registered.
    key = asked.key.encode("utf-8", "surrogatepass")
    if found is None or found.has_ended or not hmac.compare_digest(found.key.encode(), key):
        return refuse(400, "no robot is registered with this RegisteredRobotEmail and RegistrationKey"), ()
    confirmed = replace(found, confirmed=found.confirmed or found.accepted_at is not None)
    match asked:
        case Unregister():
            return _page("Unregistered", "Unregistered"), (ended(found),)
        case GetSequenceNumber():
            line = f"SequenceNumber={max(0, found.sequence_number - known.unsent)}"
            return _page("Sequence number", line), () if confirmed == found else (confirmed,)
        case ModifyPreferences():
            return _modify(asked, confirmed, known.other, offer, now, new_token)


def _register(
    asked: Register, known: Known, client: Client, offer: ServerOffer, now: float, secrets: tuple[str, str]
) -> tuple[FormAnswer, tuple[Registration, ...]]:
    past, (key, token) = known.registration, secrets
    wrong = _wrong(asked, offer)
    if wrong:
        return refuse(400, wrong), ()
    if past is not None and past.confirmed:
        return refuse(400, "this RobotEmail is already registered; Unregister needs its key"), ()
    is_registered = past is not None and not past.has_ended
    if not is_registered and known.registrations >= MAX_REGISTRATIONS:
        return refuse(503, "too many robots are registered", FULL_S), ()
    again = past is not None and is_registered and past.client == client.address
    if not again and known.registrations_of_client >= MAX_REGISTRATIONS_OF_CLIENT:
        return refuse(503, "too many robots are registered from your network address", FULL_S), ()
    registration = Registration(
        email=asked.email,
        key=key,
        latency=asked.latency or offer.default_latency,
        registered_at=now,
        client=client.address,
        agent=client.agent,
        exclude=asked.exclude or (),
        include_only=asked.include_only or (),
        reported_to=known.log_end,
        token=token if past is None else past.token or token,  # the token in the one report that it has received
        reported_at=None if past is None else past.reported_at,
        accepted_at=None if past is None else past.accepted_at,
    )
    is_known = registration.accepted_at is not None
    when = "now: this address has received a report before" if is_known else "when the first report has arrived"
    needs = f"Send GetSequenceNumber with this key and your address {when}. Otherwise no more reports follow."
    return _page("Registered", f"RegistrationKey: {key}\n\n{needs}"), (registration,)


def _modify(
    asked: ModifyPreferences,
    found: Registration,
    other: Registration | None,
    offer: ServerOffer,
    now: float,
    new_token: str,
) -> tuple[FormAnswer, tuple[Registration, ...]]:
    wrong = _wrong(asked, offer)
    if wrong:
        return refuse(400, wrong), ()
    answer, changed = _page("Preferences modified", "Modified"), found.with_preferences(asked)
    if asked.new_email is None or asked.new_email == found.email:
        return answer, (changed,)
    if other is not None and not other.has_ended:
        return refuse(400, "the new RobotEmail is already registered"), ()
    # The new address is not confirmed. It counts as registered now, so a change of address causes no extra mail.
    moved = replace(
        changed,
        email=asked.new_email,
        token=new_token,
        registered_at=now,
        confirmed=False,
        reported_at=None if other is None else other.reported_at,
        accepted_at=None if other is None else other.accepted_at,
    )
    return answer, (ended(found), moved)


def _wrong(preferences: Preferences, offer: ServerOffer) -> str | None:
    """Why the server cannot accept these preferences."""
    latency = preferences.latency
    if latency is not None and latency.unit not in offer.latencies:
        return f"Latency must be a number, a hyphen and one of {', '.join(offer.latencies)}"
    if latency is not None and latency.seconds > MAX_LATENCY_S:
        return "Latency must be at most a year"
    patterns = (*(preferences.exclude or ()), *(preferences.include_only or ()))
    if len(patterns) > MAX_PATTERNS:
        return f"more than {MAX_PATTERNS} patterns"
    for pattern in patterns:
        if len(pattern) > MAX_PATTERN_CHARS:
            return f"a pattern is longer than {MAX_PATTERN_CHARS} characters"
        if why := wrong_with(pattern):
            return f"invalid pattern: {why}"
    return None


def answer_index(asked: GetIndex, offer: ServerOffer, changes: Iterable[Change]) -> FormAnswer:
    """Answer GetIndex from the ``changes`` of the span."""
    text = write_report(Report(0, offer.url_base, tuple(condense(changes))))
    if len(text) > MAX_INDEX_CHARS:
        return refuse(400, TOO_MUCH.format(asked.span))
    return _page("Index", text)


def _page(title: str, content: str) -> FormAnswer:
    return FormAnswer(200, answers.page(title, content))


def condense(changes: Iterable[Change]) -> Iterator[Change]:
    """The same changes without repetition: of consecutive changes of one kind to a file, only the last stays."""
    kept: dict[tuple[str, int], Change] = {}
    runs: dict[str, tuple[object, int]] = {}  # path -> the kind of its last run, and the number of that run
    for change in changes:
        kind, run = runs.get(change.path, (None, 0))
        if kind is not change.kind:
            run += 1
        runs[change.path] = (change.kind, run)
        kept.pop((change.path, run), None)
        kept[change.path, run] = change
    return iter(kept.values())


def may_report(registration: Registration) -> bool:
    """Whether the server may make another report. An address that is not confirmed gets one report in all."""
    return registration.confirmed or registration.reported_at is None


def due_at(registration: Registration, *, changed: bool) -> float:
    """When the next report is due, in seconds since the epoch.

    If anything has ``changed``, it is due one latency after the last report. If nothing has changed, a robot receives a
    report without changes as a sign of life, because a robot asks when no report arrives (3.3.3). Such a report is due
    one latency after the last one, and not before a day. It may also be the first report: an address without a report
    can never be confirmed.
    """
    last = registration.registered_at if registration.reported_at is None else registration.reported_at
    return last + (registration.latency.seconds if changed else max(registration.latency.seconds, SIGN_OF_LIFE_S))


def stale_at(registration: Registration) -> float:
    """When the server deletes a registration that nobody has confirmed; infinite for a confirmed one.

    A robot that follows the draft asks when the second report is late (3.3.3). It has 30 more days for that.
    """
    if registration.confirmed:
        return float("inf")
    latency = registration.latency
    first_at = registration.registered_at + max(latency.seconds, SIGN_OF_LIFE_S)  # the latest, all being well
    first_at = max(first_at, registration.reported_at or 0.0)
    return first_at + 2 * latency.seconds + grace_s(latency) + UNCONFIRMED_S
