"""The records that an audit judges: requests, robots.txt versions and runs, as the store holds them (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import msgspec

from crawler.errors import Setting, UsageError
from crawler.frontier.hours import window
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.site_settings import pages_allowed
from crawler.model import Headers, Reading, RobotsAction
from crawler.reasons import UNSENT_KINDS, EndCode, ErrorKind
from crawler.robots.response import is_part
from crawler.robots.rsl import Licence
from crawler.settings.settings import Settings
from crawler.settings.stored import recorded
from crawler.url import address_for, host_of, is_loopback

#: The tolerance for comparing times, in seconds. Times are stored as binary fractions; their rounding is smaller.
TOLERANCE_S = 0.001

#: The sections of the settings that the audit judges by.
_JUDGED_BY = ("identity", "politeness", "robots", "fetch")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class LoggedRequest(NamedTuple):
    """One request of the log. Times are in seconds since the epoch, ``bytes`` counts octets.

    ``for_site_id`` is the site whose robots.txt was requested, if a redirect led to another site. ``location`` is the
    target of a redirect, as received. ``lag_s`` is the lag of the crawler's own event loop during the request.
    """

    id: int
    run: int
    site_id: int
    site: str
    path: str
    purpose: str
    started_at: float
    finished_at: float
    status: int | None
    error: str | None
    bytes: int
    retry_after_s: float | None
    for_site_id: int | None = None
    location: str | None = None
    error_kind: str | None = None
    lag_s: float = 0.0

    @property
    def url(self) -> str:
        return self.site + self.path


class RobotsResponse(NamedTuple):
    """The moment at which the response to a request for robots.txt was complete."""

    request: LoggedRequest


class SourceVersion(NamedTuple):
    """The version that is in force for the target of a redirect, on another site. The replay judges it by itself."""

    action: str
    text_id: int | None
    valid_from: float
    valid_until: float


class RobotsVersion(NamedTuple):
    """The recorded meaning of a response for robots.txt, from ``valid_from`` on. Times in seconds since the epoch.

    ``headers`` are the response headers that say how long the file holds and whether it is whole. ``source`` is set if
    the version comes from another site, and may have been requested before: the last version of the other site's
    /robots.txt, or an equal version from the same URL.
    """

    valid_from: float
    valid_until: float
    action: str  # a RobotsAction, unless the record was forged
    status: str
    text_id: int | None
    sha256: str
    run: int | None
    answered_by: str | None
    headers: Headers
    source: SourceVersion | None = None


class LicenceAnswer(NamedTuple):
    """An answer for a licence in the log: whether it brought none, and where it has moved to."""

    finished_at: float
    status: int | None
    is_failure: bool
    moved_to: str


class FiledLicence(NamedTuple):
    """A licence of RSL: all its answers, and of the last one the ``licence``, or ``why`` it cannot be had."""

    fetched_at: float
    licence: Licence
    why: str
    answers: Sequence[LicenceAnswer] = ()  # in the order of the log

    def answer_before(self, at: float) -> LicenceAnswer | None:
        """The last answer that had come at a time."""
        return next((one for one in reversed(self.answers) if one.finished_at <= at + TOLERANCE_S), None)


class Event(NamedTuple):
    """Something that happened at a site. No politeness group reaches beyond ``unit``."""

    unit: str
    site_id: int
    site: str
    fact: LoggedRequest | RobotsResponse | RobotsVersion


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run and the settings in force during it. Times in seconds since the epoch."""

    run: int
    started_at: float
    finished_at: float | None
    ended_by: str | None  # in words without names of settings
    crawler_version: str
    settings: Settings
    is_auxiliary: bool = False  # a single task of the operator, no crawl

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The run of a row of the query ``runs``.

        Its columns: ``run``, ``started_at``, ``finished_at``, ``ended_code``, ``ended_by``, ``crawler_version``,
        ``settings``.
        A setting that the crawler did not have at the time of the run has its default. Raises :class:`UsageError` if
        a whole section is missing or a value is malformed, or if this machine does not know a time zone of
        ``politeness.hours``: assuming defaults would prove nothing.
        """
        try:
            kept = json.loads(row["settings"])
            if missing := [section for section in _JUDGED_BY if not isinstance(kept.get(section), Mapping)]:
                raise ValueError(f"{', '.join(missing)} not recorded")
            settings = recorded(kept)
            _require_time_zones(row["run"], settings.politeness)
            return cls(
                run=row["run"],
                started_at=row["started_at"],
                finished_at=row["finished_at"],
                ended_by=_end(row["ended_code"], row["ended_by"]),
                crawler_version=row["crawler_version"],
                settings=settings,
                is_auxiliary="auxiliary_run" in kept,
            )
        except (AttributeError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise UsageError(
                f"run {row['run']}: its settings cannot be read ({error}), so nothing can be proven"
            ) from None

    @property
    def limits_pages(self) -> bool:
        """Whether the run had a limit on the pages of any site."""
        limit = self.settings.limits.max_pages_per_site
        return limit is not None or any(rule.max_pages for rule in self.settings.politeness.sites)

    def pages_allowed(self, host: str) -> int | None:
        """The limit on the pages of each site of ``host``; ``None`` is no limit."""
        return pages_allowed(host, self.settings.politeness.sites, self.settings.limits.max_pages_per_site)

    @property
    def user_agent(self) -> str:
        """The ``User-Agent`` header of every request of the run."""
        return self.settings.identity.user_agent(self.crawler_version)

    def knows_host(self, host: str) -> bool:
        """Whether the settings resolve ``host``; a ``Host`` line may then name it without a dot."""
        return address_for(host, self.settings.fetch.resolve) is not None

    def includes(self, at: float) -> bool:
        """Whether the run was under way at the time ``at``. A run without a recorded end includes all later times."""
        end = self.finished_at
        return self.started_at - TOLERANCE_S <= at and (end is None or at <= end + TOLERANCE_S)


def _end(code: str | None, sentence: str | None) -> str | None:
    """Why a run ended. A sentence that names settings is for the operator; the meaning of its code is for all."""
    known = next((each for each in EndCode if each == code), None)
    return known.meaning if known is not None and known.settings else sentence


def _require_time_zones(run: int, settings: PolitenessSettings) -> None:
    """Raise :class:`UsageError` unless this machine knows the time zones of the hours in which a run asked hosts."""
    for text in (*settings.hours, *(rule.hours for rule in settings.sites if rule.hours)):
        try:
            window(text)
        except ValueError as error:
            raise UsageError(f"run {run}: ", Setting("politeness.hours"), f" cannot be judged: {error}") from None


def is_redirect(status: int | None, error: str | None) -> bool:
    """Whether a response is a redirect with a target. A redirect without one is logged with an error."""
    return status in _REDIRECTS and error is None


def meaning(response: LoggedRequest, run: RunRecord, headers: Headers) -> RobotsAction:
    """The meaning of a response for robots.txt, by its status and ``headers``, in the reading of ``run``.

    A redirect that was not followed defers.

    Source: ``docs/protocols.md``, section 1, "What the response to /robots.txt means".
    """
    status = response.status
    if is_redirect(status, response.error) or response.error_kind == ErrorKind.WALL:
        return RobotsAction.DEFER
    if status == 304 or (status is not None and 200 <= status <= 299):
        return RobotsAction.DEFER if response.error or is_part(status, headers) else RobotsAction.PARSE
    if status is None or not 400 <= status <= 499 or status in (408, 425, 429):
        return RobotsAction.DEFER
    if status in (401, 403) and run.settings.robots.reading is not Reading.RFC9309:
        return RobotsAction.RESTRICTED
    return RobotsAction.FREE


def may_be_anonymous(request: LoggedRequest, run: RunRecord) -> bool:
    """Whether a request needs no contact: it went to loopback, or nothing was sent for want of an address."""
    host = host_of(request.site)
    if is_loopback(address_for(host, run.settings.fetch.resolve) or host):
        return True
    return request.status is None and not request.bytes and request.error_kind in UNSENT_KINDS
