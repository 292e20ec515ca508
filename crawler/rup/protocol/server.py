"""Decisions of a server: answers, registrations, and when a report is due (Internet-Draft of 1998, 3.1 to 3.3).

The caller looks up the registration that a request names, calls :func:`decide`, carries out the effect, and sends the
answer after that. ``docs/rup-server.md`` says how this server closes gaps in the draft.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from crawler.rup.protocol import answers
from crawler.rup.protocol.forms import (
    BadForm,
    Confirm,
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


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Bounds on the cost of robots."""

    patterns: int = 20  # of one registration
    pattern_chars: int = 200
    registrations: int = 10_000  # in total
    registrations_per_client: int = 100  # from one network address
    unconfirmed_s: float = 30 * 86_400  # for a robot to confirm, after its second report is late
    index_bytes: int = 4 * 2**20  # of an answer to GetIndex


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """The offer of this server: its URLs, and the choices of a robot. There is at least one latency."""

    cgi: str  # canonical URL
    url_base: str  # the site, with its slash
    latencies: tuple[str, ...] = ("minute", "hour", "day", "week", "month")
    max_query_span: Span = MAX_QUERY_SPAN
    limits: ServerLimits = ServerLimits()

    @property
    def info(self) -> RupInfo:
        """The content of ``/rupinfo.txt``. A robot may use any pattern, which ``.*`` stands for."""
        free = (ANY_PATTERN,)
        return RupInfo(self.cgi, "none", self.latencies, free, free, self.max_query_span)

    @property
    def default_latency(self) -> Span:
        """The latency of a robot that names none: a day, or the coarsest unit of the offer."""
        return Span(1, "day" if "day" in self.latencies else self.latencies[-1])


@dataclass(frozen=True, slots=True)
class Registration:
    """One robot. All times in seconds since the epoch."""

    email: str
    key: str
    latency: Span
    registered_at: float
    client: str  # the network address that sent Register
    agent: str = ""  # the product token that sent Register, for robots.txt
    exclude: tuple[str, ...] = ()
    include_only: tuple[str, ...] = ()
    token: str = ""  # a secret that only mails to the address contain
    confirmed: bool = False  # it has sent a request since its first report left
    sequence_number: int = 0  # of its last report
    reported_to: int = 0  # the last entry of the modification log that its reports cover
    reported_at: float | None = None  # when its last report was made
    accepted_at: float | None = None  # when the mail server first accepted a report to this address


@dataclass(frozen=True, slots=True)
class MailHistory:
    """The mails to an address under a registration that has ended. A new registration continues from there."""

    reported_at: float
    accepted_at: float | None


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """Status and HTML document."""

    status: int
    html: str
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """Store ``registration``, instead of the registration of the address ``instead_of`` if there is one."""

    registration: Registration
    instead_of: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a registration. ``for_good``: the owner of the mailbox wants no mail, whoever registers the address."""

    email: str
    for_good: bool = False


Effect = Put | Remove | None


@dataclass(frozen=True, slots=True)
class Known:
    """The knowledge of the store about a request."""

    registration: Registration | None = None  # of the address in the request
    other: Registration | None = None  # of the new address in the request
    mailed: MailHistory | None = None  # mails to the address before this registration
    registrations: int = 0
    registrations_of_client: int = 0
    log_end: int = 0  # the newest entry of the modification log
    unsent: int = 0  # reports for the robot that the mail server has not accepted yet


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request: network address, and the product token of its User-Agent."""

    address: str
    agent: str = ""


def refuse(status: int, why: str) -> FormAnswer:
    """An answer that says what is wrong."""
    titles = {400: "Bad Request", 429: "Too Many Requests", 501: "Not Implemented", 503: "Service Unavailable"}
    return FormAnswer(status, answers.page(f"{status} {titles.get(status, 'Error')}", f"Error: {why}"))


def refuse_for_now(status: int, why: str, wait_s: float) -> FormAnswer:
    """An answer that says what is wrong, and after how many seconds the robot may ask again."""
    return replace(refuse(status, why), retry_after_s=int(wait_s) + 1)


def decide(
    asked: RupRequest | BadForm,
    known: Known,
    client: Client,
    offer: ServerOffer,
    *,
    now: float,
    new_key: str,
    new_token: str,
    check_pattern: Callable[[str], str | None],
) -> tuple[FormAnswer, Effect]:
    """Answer every action but GetIndex, for which see :func:`answer_index`.

    ``check_pattern`` says what is wrong with a pattern, or returns ``None``. ``new_key`` and ``new_token`` are fresh
    secrets. A request with the right key confirms an address if a report to it has left: a robot cannot prove that it
    receives mail before that.
    """
    match asked:
        case BadForm(status, why):
            return refuse(status, why), None
        case Register():
            return _register(asked, known, client, offer, now, (new_key, new_token), check_pattern)
        case GetIndex():
            raise ValueError("GetIndex is answered by answer_index")
        case Confirm():
            return _confirm(known.registration)
        case Leave():
            return _leave(asked, known.registration)
    found = known.registration
    # In constant time and with one answer for both errors: nobody may learn whether an address is registered.
    if found is None or not hmac.compare_digest(found.key.encode(), asked.key.encode("utf-8", "surrogatepass")):
        return refuse(400, "no robot is registered with this RegisteredRobotEmail and RegistrationKey"), None
    confirmed = replace(found, confirmed=found.confirmed or found.accepted_at is not None)
    match asked:
        case Unregister():
            return _page("Unregistered", "Unregistered"), Remove(found.email)
        case GetSequenceNumber():
            line = answers.sequence_number_line(max(0, found.sequence_number - known.unsent))
            return _page("Sequence number", line), None if found == confirmed else Put(confirmed, found.email)
        case ModifyPreferences():
            return _modify(asked, confirmed, known, offer, now, new_token, check_pattern)


def _confirm(found: Registration | None) -> tuple[FormAnswer, Effect]:
    if found is None:
        return refuse(400, "this link belongs to no registration"), None
    effect = None if found.confirmed else Put(replace(found, confirmed=True), found.email)
    return _page("Confirmed", "Confirmed: the reports continue."), effect


def _leave(asked: Leave, found: Registration | None) -> tuple[FormAnswer, Effect]:
    if found is None:  # a mail program may send the request twice
        return _page("Unregistered", "This address receives no more reports."), None
    if not asked.sure:
        return FormAnswer(200, answers.leave_page()), None
    return _page("Unregistered", "Unregistered"), Remove(found.email, for_good=True)


def _register(
    asked: Register,
    known: Known,
    client: Client,
    offer: ServerOffer,
    now: float,
    secrets: tuple[str, str],
    check_pattern: Callable[[str], str | None],
) -> tuple[FormAnswer, Effect]:
    found, (key, token) = known.registration, secrets
    wrong = _wrong(asked.preferences, offer, check_pattern)
    if wrong:
        return refuse(400, wrong), None
    if found is not None and found.confirmed:
        return refuse(400, "this RobotEmail is already registered; Unregister needs its key"), None
    if found is None and known.registrations >= offer.limits.registrations:
        return refuse_for_now(503, "too many robots are registered", FULL_S), None
    again = found is not None and found.client == client.address
    if not again and known.registrations_of_client >= offer.limits.registrations_per_client:
        return refuse_for_now(503, "too many robots are registered from your network address", FULL_S), None
    past = known.mailed if found is None else found  # it has received its one report
    registration = Registration(
        email=asked.email,
        key=key,
        latency=asked.preferences.latency or offer.default_latency,
        registered_at=now,
        client=client.address,
        agent=client.agent,
        exclude=asked.preferences.exclude or (),
        include_only=asked.preferences.include_only or (),
        reported_to=known.log_end,
        token=token if found is None else found.token,  # the token in that report
        reported_at=None if past is None else past.reported_at,
        accepted_at=None if past is None else past.accepted_at,
    )
    text = f"{answers.key_line(key)}\n\n{answers.expected_line(mailed=registration.accepted_at is not None)}"
    return _page("Registered", text), Put(registration, asked.email)


def _modify(
    asked: ModifyPreferences,
    found: Registration,
    known: Known,
    offer: ServerOffer,
    now: float,
    new_token: str,
    check_pattern: Callable[[str], str | None],
) -> tuple[FormAnswer, Effect]:
    """Preferences that are not named stay. A new list replaces the other list."""
    preferences = asked.preferences
    wrong = _wrong(preferences, offer, check_pattern)
    if wrong:
        return refuse(400, wrong), None
    changed = replace(found, latency=preferences.latency or found.latency)
    if preferences.exclude is not None:
        changed = replace(changed, exclude=preferences.exclude)
    if preferences.include_only is not None:
        changed = replace(changed, include_only=preferences.include_only)
    if preferences.exclude:
        changed = replace(changed, include_only=())
    if preferences.include_only:
        changed = replace(changed, exclude=())
    if asked.new_email is not None and asked.new_email != found.email:
        if known.other is not None:
            return refuse(400, "the new RobotEmail is already registered"), None
        # The new address is not confirmed. It counts as registered now, so a change of address causes no extra mail.
        past = known.mailed
        changed = replace(
            changed,
            email=asked.new_email,
            token=new_token,
            registered_at=now,
            confirmed=False,
            reported_at=None if past is None else past.reported_at,
            accepted_at=None if past is None else past.accepted_at,
        )
    return _page("Preferences modified", "Modified"), Put(changed, found.email)


def _wrong(preferences: Preferences, offer: ServerOffer, check_pattern: Callable[[str], str | None]) -> str | None:
    """Why the server cannot accept these preferences."""
    latency, limits = preferences.latency, offer.limits
    if latency is not None and latency.unit not in offer.latencies:
        return f"Latency must be a number, a hyphen and one of {', '.join(offer.latencies)}"
    if latency is not None and latency.seconds > MAX_LATENCY_S:
        return "Latency must be at most a year"
    patterns = (*(preferences.exclude or ()), *(preferences.include_only or ()))
    if len(patterns) > limits.patterns:
        return f"more than {limits.patterns} patterns"
    for pattern in patterns:
        if len(pattern) > limits.pattern_chars:
            return f"a pattern is longer than {limits.pattern_chars} characters"
        if why := check_pattern(pattern):
            return f"invalid pattern: {why}"
    return None


def answer_index(asked: GetIndex, offer: ServerOffer, changes: Iterable[Change]) -> FormAnswer:
    """Answer GetIndex from the ``changes`` of the span. If the span is too long, the changes are not read."""
    if asked.span.seconds > offer.max_query_span.seconds:
        return refuse(400, answers.too_far_back(asked.span, offer.max_query_span))
    text = write_report(Report(0, offer.url_base, tuple(condense(changes))))
    if len(text) > offer.limits.index_bytes:
        return refuse(400, answers.too_much(asked.span))
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


def stale_at(registration: Registration, offer: ServerOffer) -> float:
    """When the server deletes a registration that nobody has confirmed; infinite for a confirmed one.

    A robot that follows the draft asks when the second report is late (3.3.3). It has 30 more days for that.
    """
    if registration.confirmed:
        return float("inf")
    latency = registration.latency
    first_at = registration.registered_at + max(latency.seconds, SIGN_OF_LIFE_S)  # the latest, all being well
    first_at = max(first_at, registration.reported_at or 0.0)
    return first_at + 2 * latency.seconds + grace_s(latency) + offer.limits.unconfirmed_s
