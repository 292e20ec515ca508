"""What an audit is about: the facts it reads, what it checks, what it finds. Plain data, and pure functions of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Self

from crawler.errors import UsageError
from crawler.fetch.resolver import address_for
from crawler.frontier.politeness import GroupBy
from crawler.model import Headers, Reading, RobotsAction
from crawler.robots.response import RobotsSettings, is_part
from crawler.robots.rules import Verdict
from crawler.url import host_of, is_loopback

#: Forgiven in comparing times, in seconds: they are kept as binary fractions, a float's rounding is below it.
TOLERANCE_S = 0.001

ROBOTS_PATH = "/robots.txt"

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GUARD = "a crawl without --contact stays on loopback"


class Check(StrEnum):
    """What is checked."""

    LOG = "log"
    IDENTITY = "identity"
    ROBOTS_FIRST = "robots first"
    FRESH = "robots fresh"
    PERMISSION = "permission"
    OVERLAP = "overlap"
    PAUSE = "pause"
    RETRY_AFTER = "retry-after"
    OPERATOR = "operator"


#: Each check in one sentence, for people.
TITLES: Mapping[Check, str] = {
    Check.LOG: "The log is whole: no gap, as many as were counted, each in a recorded run",
    Check.IDENTITY: "Every request named the crawler and, outside loopback, a contact",
    Check.ROBOTS_FIRST: "Every page's site had answered for its robots.txt before",
    Check.FRESH: "The robots.txt in force had not run out",
    Check.PERMISSION: "The robots.txt in force allowed the request",
    Check.OVERLAP: "One request at a time in a politeness group",
    Check.PAUSE: "The pause between two requests of a group was kept",
    Check.RETRY_AFTER: "After a Retry-After, 429 or 503, the group was left alone as long as asked",
    Check.OPERATOR: "Nothing was sent where the operator had blocked it, or while all was paused",
}


@dataclass(slots=True)
class CheckCount:
    """How often a rule was judged, broken, and how often the records do not suffice to judge."""

    judged: int = 0
    violations: int = 0
    unproven: int = 0


class LoggedRequest(NamedTuple):
    """One request of the log. Times in seconds since the epoch.

    ``for_site_id`` is the site that a robots.txt found elsewhere was asked for; ``location`` where a redirect leads.
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

    @property
    def url(self) -> str:
        return self.site + self.path


class RobotsResponse(NamedTuple):
    """The answer to a request for robots.txt was complete."""

    sent: LoggedRequest


class RobotsVersion(NamedTuple):
    """What an answer for robots.txt meant from ``valid_from`` on, and what the store says of how it came.

    ``headers`` are those that say how long it holds and whether it is whole; ``None``: an early store without them.
    """

    valid_from: float
    valid_until: float
    action: str  # a RobotsAction, if nobody forged it
    status: str
    text: int | None
    sha256: str
    run: int | None
    answered_by: str | None
    headers: Headers | None


class Event(NamedTuple):
    """What happened at a site; ``unit`` is what no politeness group reaches beyond."""

    unit: str
    site_id: int
    site: str
    fact: LoggedRequest | RobotsResponse | RobotsVersion


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run, and the settings in force during it."""

    run: int
    started_at: float
    finished_at: float | None
    ended_by: str | None
    crawler_version: str
    agent: str
    contact: str
    group: GroupBy
    delay_s: float
    slow_factor: float
    slow_cap_s: float
    crawl_delay_cap_s: float | None
    backoff_first_s: float
    backoff_max_s: float
    robots: RobotsSettings
    resolve: tuple[tuple[str, str], ...]
    is_auxiliary: bool = False  # not a crawl, but a single thing that the operator asked for

    @classmethod
    def read(cls, run: Mapping[str, Any]) -> Self:
        """From a row of ``run``. Raises :class:`UsageError` where a setting is missing: a default would be a guess."""
        try:
            settings = json.loads(run["settings"])
            politeness, robots, identity = settings["politeness"], settings["robots"], settings["identity"]
            return cls(
                run=run["id"],
                started_at=run["started_at"],
                finished_at=run["finished_at"],
                ended_by=run["ended_by"],
                crawler_version=run["crawler_version"],
                agent=identity["agent"],
                contact=identity["contact"],
                group=GroupBy(politeness["group"]),
                delay_s=politeness["delay_s"],
                slow_factor=politeness["slow_factor"],
                slow_cap_s=politeness["slow_cap_s"],
                crawl_delay_cap_s=politeness["crawl_delay_cap_s"],
                backoff_first_s=politeness["backoff_first_s"],
                backoff_max_s=politeness["backoff_max_s"],
                robots=RobotsSettings(
                    reading=Reading(robots["reading"]),
                    stale_if_error=robots["stale_if_error"],
                    give_up_after_s=robots["give_up_after_s"],
                    min_fresh_s=robots["min_fresh_s"],
                    max_bytes=robots["max_bytes"],
                    max_redirects=robots["max_redirects"],
                    retry_first_s=robots["retry_first_s"],
                    retry_max_s=robots["retry_max_s"],
                ),
                resolve=tuple((pattern, address) for pattern, address in settings["fetch"]["resolve"]),
                is_auxiliary="auxiliary_run" in settings,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"run {run['id']}: its settings cannot be read ({error!r}): nothing can be proven"
            ) from None

    @property
    def reading(self) -> Reading:
        return self.robots.reading

    @property
    def user_agent(self) -> str:
        """What the run said of itself in every request."""
        mail = "mailto:" if "@" in self.contact and "://" not in self.contact else ""
        whom = f" (+{mail}{self.contact})" if self.contact else ""
        return f"{self.agent}/{self.crawler_version}{whom}"

    def knows_host(self, host: str) -> bool:
        """Whether the settings resolve a name (a ``Host`` line may then name it without a dot)."""
        return address_for(host, self.resolve) is not None

    def crawl_delay_kept_s(self, asked_s: float | None) -> float:
        """How much of a ``Crawl-delay`` the settings keep: all of it, unless they cap it."""
        if asked_s is None:
            return 0.0
        return asked_s if self.crawl_delay_cap_s is None else min(asked_s, self.crawl_delay_cap_s)

    def lasted(self, at: float) -> bool:
        """Whether the run was under way; one that never ended, to this day."""
        end = self.finished_at
        return self.started_at - TOLERANCE_S <= at and (end is None or at <= end + TOLERANCE_S)


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, with its evidence. Times in seconds since the epoch.

    ``version`` is the SHA-256 of the robots.txt, ``line`` and ``rule`` its line; ``before`` the request before it.
    """

    check: Check
    required: str
    done: str
    request: int | None = None
    run: int | None = None
    url: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    version: str = ""
    version_from: float | None = None
    version_until: float | None = None
    line: int | None = None
    rule: str = ""
    before: str = ""
    before_started_at: float | None = None
    before_finished_at: float | None = None

    @classmethod
    def of(
        cls,
        check: Check,
        sent: LoggedRequest,
        required: str,
        done: str,
        *,
        version: RobotsVersion | None = None,
        before: LoggedRequest | None = None,
        rule: Verdict | None = None,
    ) -> Self:
        return cls(
            check=check,
            required=required,
            done=done,
            request=sent.id,
            run=sent.run,
            url=sent.url,
            started_at=sent.started_at,
            finished_at=sent.finished_at,
            version=version.sha256 if version else "",
            version_from=version.valid_from if version else None,
            version_until=version.valid_until if version else None,
            line=rule.line if rule else None,
            rule=rule.text.strip() if rule else "",
            before=before.url if before else "",
            before_started_at=before.started_at if before else None,
            before_finished_at=before.finished_at if before else None,
        )

    @classmethod
    def at_version(
        cls, version: RobotsVersion, site: str, required: str, done: str, answer: LoggedRequest | None
    ) -> Self:
        """What the store says of a robots.txt version cannot be; ``answer`` is the last one for it."""
        return cls(
            check=Check.LOG,
            required=required,
            done=done,
            url=site + ROBOTS_PATH,
            version=version.sha256,
            version_from=version.valid_from,
            version_until=version.valid_until,
            before=answer.url if answer else "",
            before_started_at=answer.started_at if answer else None,
            before_finished_at=answer.finished_at if answer else None,
        )

    def as_json(self) -> dict[str, Any]:
        """Without what does not apply."""
        return {key: value for key, value in asdict(self).items() if value not in (None, "")}


def is_redirect(status: int | None, error: str | None) -> bool:
    """Whether an answer led elsewhere; one that led nowhere is logged with an error."""
    return status in _REDIRECTS and error is None


def meaning(answer: LoggedRequest, reading: Reading, headers: Headers | None) -> RobotsAction | None:
    """What an answer for robots.txt means by its status: of a redirect that it is none yet, ``None`` where that is all
    that is on record. ``headers`` are those kept of it, ``None`` in an early store.
    ``docs/protocols.md``, section 1, "What the response to /robots.txt means".
    """
    status = answer.status
    if is_redirect(status, answer.error):
        return None if answer.location is None else RobotsAction.DEFER
    if status == 304 or (status is not None and 200 <= status <= 299):
        is_cut = headers is not None and is_part(status, headers)
        return RobotsAction.DEFER if answer.error or is_cut else RobotsAction.PARSE
    if status is None or not 400 <= status <= 499 or status in (408, 425, 429):
        return RobotsAction.DEFER
    if status in (401, 403) and reading is not Reading.RFC9309:
        return RobotsAction.RESTRICTED
    return RobotsAction.FREE


def may_be_anonymous(sent: LoggedRequest, terms: RunRecord) -> bool:
    """Whether a request needs no contact: it went to loopback, or the address guard kept it from being sent."""
    host = host_of(sent.site)
    if is_loopback(address_for(host, terms.resolve) or host):
        return True
    return sent.status is None and not sent.bytes and _GUARD in (sent.error or "")
