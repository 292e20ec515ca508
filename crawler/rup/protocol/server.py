"""What a server answers, keeps and reports (Internet-Draft of 1998, 3.1 to 3.3): decisions as data.

A caller looks up the registration that a request is about, asks :func:`decide`, carries out the effect, and only then
sends the answer. ``docs/rup-server.md`` says how gaps in the draft are closed.
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
from crawler.rup.protocol.robot import grace_s
from crawler.rup.protocol.units import Span

#: The longest time between two reports, in seconds.
MAX_LATENCY_S = 365 * 86_400

#: A robot that wants reports more often hears of quiet times once in so many seconds.
SIGN_OF_LIFE_S = 86_400

#: When a robot for which there is no room may ask again.
FULL_S = 3600

#: How long changes are kept where nobody says otherwise.
MAX_QUERY_SPAN = Span(30, "day")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What strangers may cost."""

    patterns: int = 20  # of one registration
    pattern_chars: int = 200
    registrations: int = 10_000  # in all
    registrations_per_client: int = 100  # by the network address that a registration came from
    unconfirmed_s: float = 30 * 86_400  # how long a robot has to answer, once it must have missed its second report
    index_bytes: int = 4 * 2**20  # of an answer to GetIndex


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """What this server does: its place, and what it lets robots choose. Never without a latency."""

    cgi: str  # canonical URL
    url_base: str  # the site, with its slash
    latencies: tuple[str, ...] = ("minute", "hour", "day", "week", "month")
    max_query_span: Span = MAX_QUERY_SPAN
    limits: ServerLimits = ServerLimits()

    @property
    def info(self) -> RupInfo:
        """What its ``/rupinfo.txt`` says. A robot may choose patterns freely: ``.*`` stands for any."""
        free = (ANY_PATTERN,)
        return RupInfo(self.cgi, "none", self.latencies, free, free, self.max_query_span)

    @property
    def default_latency(self) -> Span:
        """For a robot that names none: a day, or else the coarsest unit offered."""
        return Span(1, "day" if "day" in self.latencies else self.latencies[-1])


@dataclass(frozen=True, slots=True)
class Registration:
    """One robot. All times in seconds since the epoch."""

    email: str
    key: str
    latency: Span
    registered_at: float
    client: str  # the network address it registered from
    agent: str = ""  # the product token it registered with, for robots.txt
    exclude: tuple[str, ...] = ()
    include_only: tuple[str, ...] = ()
    token: str = ""  # a secret that only mails to the address tell
    confirmed: bool = False  # it has answered since its first report left
    sequence_number: int = 0  # of the last report made for it
    reported_to: int = 0  # the last entry of the modification log that a report had to consider
    reported_at: float | None = None  # when the last report was made
    taken_at: float | None = None  # when the mail server first took a report to this address


@dataclass(frozen=True, slots=True)
class MailHistory:
    """What an address was sent under a registration that is no more, so that a new one does not begin again."""

    reported_at: float
    taken_at: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and HTML document."""

    status: int
    html: str
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """Keep ``registration``, in the place of the one that has the address ``instead_of``, if there is one."""

    registration: Registration
    instead_of: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Forget a registration. ``for_good``: whoever has the mailbox wants no mail, whoever else asks for it."""

    email: str
    for_good: bool = False


Effect = Put | Remove | None


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows that bears on a request."""

    registration: Registration | None = None  # of the address that the request names as the robot's
    other: Registration | None = None  # of the address that a robot wants to move to
    mailed: MailHistory | None = None  # the past of the address that is to get reports
    registrations: int = 0
    registrations_of_client: int = 0
    log_end: int = 0  # the newest entry of the modification log
    unsent: int = 0  # reports made for the robot that the mail server has not taken yet


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: network address, and the product token of its User-Agent."""

    address: str
    agent: str = ""


def refuse(status: int, why: str) -> Answer:
    """An answer that says what is wrong."""
    titles = {400: "Bad Request", 429: "Too Many Requests", 501: "Not Implemented", 503: "Service Unavailable"}
    return Answer(status, answers.page(f"{status} {titles.get(status, 'Error')}", f"Error: {why}"))


def refuse_for_now(status: int, why: str, wait_s: float) -> Answer:
    """The same, of what may be asked again."""
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
) -> tuple[Answer, Effect]:
    """Answer every Action but GetIndex, for which see :func:`answer_index`.

    ``check_pattern`` says what is wrong with a pattern, if anything. ``new_key`` and ``new_token`` are fresh
    secrets. A request that is signed confirms an address once a report to it has left: before that nothing has come
    that could be answered.
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
    # In constant time, and with one answer for both faults: whether an address is registered is nobody's business.
    if found is None or not hmac.compare_digest(found.key.encode(), asked.key.encode("utf-8", "surrogatepass")):
        return refuse(400, "no robot is registered with this RegisteredRobotEmail and RegistrationKey"), None
    confirmed = replace(found, confirmed=found.confirmed or found.taken_at is not None)
    match asked:
        case Unregister():
            return _page("Unregistered", "Unregistered"), Remove(found.email)
        case GetSequenceNumber():
            line = answers.sequence_number_line(max(0, found.sequence_number - known.unsent))
            return _page("Sequence number", line), None if found == confirmed else Put(confirmed, found.email)
        case ModifyPreferences():
            return _modify(asked, confirmed, known, offer, now, new_token, check_pattern)


def _confirm(found: Registration | None) -> tuple[Answer, Effect]:
    if found is None:
        return refuse(400, "this link belongs to no registration, or to none any more"), None
    effect = None if found.confirmed else Put(replace(found, confirmed=True), found.email)
    return _page("Confirmed", "Confirmed: reports go on."), effect


def _leave(asked: Leave, found: Registration | None) -> tuple[Answer, Effect]:
    if found is None:  # a mail program may well send it twice
        return _page("Unregistered", "There are no more reports to this address."), None
    if not asked.sure:
        return Answer(200, answers.leave_page()), None
    return _page("Unregistered", "Unregistered"), Remove(found.email, for_good=True)


def _register(
    asked: Register,
    known: Known,
    client: Client,
    offer: ServerOffer,
    now: float,
    secrets: tuple[str, str],
    check_pattern: Callable[[str], str | None],
) -> tuple[Answer, Effect]:
    found, (key, token) = known.registration, secrets
    wrong = _wrong(asked.preferences, offer, check_pattern)
    if wrong:
        return refuse(400, wrong), None
    if found is not None and found.confirmed:
        return refuse(400, "this RobotEmail is registered already; with its key it can be unregistered"), None
    if found is None and known.registrations >= offer.limits.registrations:
        return refuse_for_now(503, "too many robots are registered", FULL_S), None
    again = found is not None and found.client == client.address
    if not again and known.registrations_of_client >= offer.limits.registrations_per_client:
        return refuse_for_now(503, "too many robots are registered from your network address", FULL_S), None
    past = known.mailed if found is None else found  # it had its one mail
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
        token=token if found is None else found.token,  # that of the mail
        reported_at=None if past is None else past.reported_at,
        taken_at=None if past is None else past.taken_at,
    )
    text = f"{answers.key_line(key)}\n\n{answers.expected_line(mailed=registration.taken_at is not None)}"
    return _page("Registered", text), Put(registration, asked.email)


def _modify(
    asked: ModifyPreferences,
    found: Registration,
    known: Known,
    offer: ServerOffer,
    now: float,
    new_token: str,
    check_pattern: Callable[[str], str | None],
) -> tuple[Answer, Effect]:
    """What is not named stays; of the two lists, naming one takes the place of the other."""
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
            return refuse(400, "the new RobotEmail is registered already"), None
        # Nobody has answered there: it is as if registered now, so that moving about makes no more mail than staying.
        past = known.mailed
        changed = replace(
            changed,
            email=asked.new_email,
            token=new_token,
            registered_at=now,
            confirmed=False,
            reported_at=None if past is None else past.reported_at,
            taken_at=None if past is None else past.taken_at,
        )
    return _page("Preferences modified", "Modified"), Put(changed, found.email)


def _wrong(preferences: Preferences, offer: ServerOffer, check_pattern: Callable[[str], str | None]) -> str | None:
    """Why preferences cannot be granted."""
    latency, limits = preferences.latency, offer.limits
    if latency is not None and latency.unit not in offer.latencies:
        return f"Latency is one of {', '.join(offer.latencies)}, with a number before it"
    if latency is not None and latency.seconds > MAX_LATENCY_S:
        return "Latency is a year at most"
    patterns = (*(preferences.exclude or ()), *(preferences.include_only or ()))
    if len(patterns) > limits.patterns:
        return f"more than {limits.patterns} patterns"
    for pattern in patterns:
        if len(pattern) > limits.pattern_chars:
            return f"a pattern is longer than {limits.pattern_chars} characters"
        if why := check_pattern(pattern):
            return f"a pattern cannot be read: {why}"
    return None


def answer_index(asked: GetIndex, offer: ServerOffer, changes: Iterable[Change]) -> Answer:
    """Answer GetIndex from the ``changes`` of that span, which are not looked at where it reaches too far back."""
    if asked.span.seconds > offer.max_query_span.seconds:
        return refuse(400, answers.too_far_back(asked.span, offer.max_query_span))
    text = write_report(Report(0, offer.url_base, tuple(condense(changes))))
    if len(text) > offer.limits.index_bytes:
        return refuse(400, answers.too_much(asked.span))
    return _page("Index", text)


def _page(title: str, content: str) -> Answer:
    return Answer(200, answers.page(title, content))


def condense(changes: Iterable[Change]) -> Iterator[Change]:
    """The same story, shorter: of several changes of one kind to a file, with no other between them, the last."""
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
    """Whether another report may be made: to an address that nobody has answered for, one in all."""
    return registration.confirmed or registration.reported_at is None


def due_at(registration: Registration, *, changed: bool) -> float:
    """When the next report is to be made: a latency after the last one, if anything has ``changed``.

    In quiet times a robot is sent a report without changes, as a sign of life (3.3.3 has it worry when none comes): one
    latency after the last report, but not before a day. Such a one may be the first, or it could never be answered for.
    """
    last = registration.registered_at if registration.reported_at is None else registration.reported_at
    return last + (registration.latency.seconds if changed else max(registration.latency.seconds, SIGN_OF_LIFE_S))


def stale_at(registration: Registration, offer: ServerOffer) -> float:
    """When a registration that nobody answered for is dropped; never one that was confirmed.

    A robot that follows the draft asks when the second report is late (3.3.3); from then on it has 30 days.
    """
    if registration.confirmed:
        return float("inf")
    latency = registration.latency
    first_at = registration.registered_at + max(latency.seconds, SIGN_OF_LIFE_S)  # the latest, all being well
    first_at = max(first_at, registration.reported_at or 0.0)
    return first_at + 2 * latency.seconds + grace_s(latency) + offer.limits.unconfirmed_s
