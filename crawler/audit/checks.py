"""The checks of an audit, and the violations that it finds. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from crawler.audit.records import LoggedRequest, RobotsVersion
from crawler.formatting import instant
from crawler.reasons import Code
from crawler.robots.rules import Verdict
from crawler.url import ROBOTS_PATH

#: At most this many violations are kept with their evidence; the others are only counted.
MAX_LISTED = 10_000


class Check(Code):
    """The promise that a check is about; its sentence says it to people."""

    LOG = "log", "The log is complete: no gap, as many requests as were counted, each in a recorded run"
    IDENTITY = "identity", "Every request named the crawler and, outside loopback, a contact"
    ROBOTS_FIRST = "robots first", "Every site had answered for its robots.txt before its first page was requested"
    FRESH = "robots fresh", "The robots.txt in force had not expired"
    PERMISSION = "permission", "The robots.txt in force allowed the request"
    PREFERENCE = (
        "preference",
        "No page was requested or kept against a preference about a purpose that the run declared",
    )
    USE = "use", "No more was kept of a page than its Content-Signal for use allows"
    OVERLAP = "overlap", "No two requests of a politeness group overlapped"
    PAUSE = "pause", "The pause between two requests of a politeness group was kept"
    RETRY_AFTER = (
        "retry-after",
        "After a Retry-After, 429 or 503, the politeness group was left alone as long as required",
    )
    RESTS = "rests", "A site that answered by walls or refusals was left alone for its rests, and at last for good"
    HOURS = "hours", "Hosts with set hours were asked only in those hours"
    PAGES = "pages", "No site gave more pages than its limit"
    OPERATOR = "operator", "Nothing was sent to a blocked site, or while the operator had paused the crawl"
    SAMPLE = "sample", "After a sample was drawn, no page was requested that it left out"


@dataclass(slots=True)
class CheckCount:
    """How often a check was made, and how often it failed."""

    judged: int = 0
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Violation:
    """A failed check with its evidence. Times are in seconds since the epoch.

    ``version`` is the SHA-256 of the robots.txt in force, ``line`` and ``rule`` are the line that forbids the request.
    ``before`` is the URL of the earlier request that the check refers to.
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
    def by_request(
        cls,
        check: Check,
        request: LoggedRequest,
        required: str,
        done: str,
        *,
        version: RobotsVersion | None = None,
        before: LoggedRequest | None = None,
        rule: Verdict | None = None,
    ) -> Self:
        """A request that failed ``check``."""
        names = {"request": request.id, "run": request.run, "url": request.url}
        times = {"started_at": request.started_at, "finished_at": request.finished_at}
        stated = {"line": rule.line, "rule": rule.text.strip()} if rule else {}
        facts: dict[str, Any] = {**names, **times, **stated, **_in_force(version), **_earlier(before)}
        return cls(check, required, done, **facts)

    @classmethod
    def of_page(cls, check: Check, page: Any, required: str, done: str, run: int | None = None) -> Self:
        """A page that is kept against ``check``; ``page`` is a row with its ``url`` and ``fetched_at``."""
        at = page.fetched_at
        return cls(check, required, done, run=run, url=page.url, started_at=at, finished_at=at)

    @classmethod
    def in_version(
        cls, version: RobotsVersion, site: str, required: str, done: str, response: LoggedRequest | None
    ) -> Self:
        """A recorded robots.txt version that contradicts the log; ``response`` is the last response for it."""
        url = site + ROBOTS_PATH
        return cls(Check.LOG, required, done, url=url, **_in_force(version), **_earlier(response))

    def evidence(self) -> Iterator[tuple[str, str]]:
        """The evidence in words, as (label, fact)."""
        yield "required", self.required
        yield "done", self.done
        if self.started_at is not None and self.finished_at is not None:
            span = f"{instant(self.started_at)} to {instant(self.finished_at)}"
            yield "request", f"number {self.request} of run {self.run}, {span}"
        if self.version_from is not None and self.version_until is not None:
            span = f"in force {instant(self.version_from)} to {instant(self.version_until)}"
            yield "robots.txt", f"version {self.version or 'without a text'}, {span}"
        if self.line is not None:
            yield "rule", f"line {self.line}: {self.rule}"
        if self.before_started_at is not None and self.before_finished_at is not None:
            span = f"{instant(self.before_started_at)} to {instant(self.before_finished_at)}"
            yield "before it", f"{self.before}, {span}"

    def as_json(self) -> dict[str, Any]:
        """One JSON object, without the fields that do not apply."""
        return {key: value for key, value in asdict(self).items() if value not in (None, "")}


def _in_force(version: RobotsVersion | None) -> dict[str, Any]:
    if version is None:
        return {}
    return {"version": version.sha256, "version_from": version.valid_from, "version_until": version.valid_until}


def _earlier(request: LoggedRequest | None) -> dict[str, Any]:
    if request is None:
        return {}
    times = {"before_started_at": request.started_at, "before_finished_at": request.finished_at}
    return {"before": request.url, **times}


@dataclass(frozen=True, slots=True)
class Findings:
    """What an audit has found so far: how often each check was made and failed, and the evidence."""

    counts: dict[Check, CheckCount] = field(default_factory=lambda: {check: CheckCount() for check in Check})
    listed: list[Violation] = field(default_factory=list)

    def add(self, violations: Iterable[Violation]) -> None:
        """Count violations, and keep as many as :data:`MAX_LISTED` allows."""
        for violation in violations:
            self.counts[violation.check].violations += 1
            if len(self.listed) < MAX_LISTED:
                self.listed.append(violation)

    def in_order(self) -> list[Violation]:
        """The violations that are kept, in the order of time."""
        return sorted(self.listed, key=lambda found: (found.started_at or 0.0, found.request or 0))
