"""One site's robots.txt as the log tells it, answer by answer: what each meant, and until when at most. Pure.

Rules: ``docs/protocols.md``, section 1. How they are judged: ``docs/audit.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crawler.audit.records import (
    ROBOTS_PATH,
    TOLERANCE_S,
    LoggedRequest,
    RobotsVersion,
    RunRecord,
    is_redirect,
    meaning,
)
from crawler.model import RobotsAction
from crawler.robots.http_dates import retry_after_s
from crawler.robots.response import freshness
from crawler.url import NotCrawlable, canonicalise

_MANY = 64  # failures: the pause between attempts is the longest long before
_LASTING = frozenset({RobotsAction.PARSE, RobotsAction.FREE, RobotsAction.RESTRICTED})


@dataclass(slots=True)
class RobotsHistory:
    """What is known at one moment. Times in seconds since the epoch; ``until`` is reckoned, not read."""

    site_id: int
    answer: LoggedRequest | None = None  # the last one; of a redirect followed, where it led
    terms: RunRecord | None = None  # of the run that it came in
    version: RobotsVersion | None = None
    until: float = 0.0
    taken: bool = True  # whether the last answer became a version
    leads_to: str | None = None
    seen: tuple[str, ...] = ()
    failures: int = 0  # in a row

    def hear(self, answer: LoggedRequest, terms: RunRecord) -> bool:
        """Take in an answer. False where it is neither the site's own nor where the answer before it led."""
        if (answer.site_id, answer.path, answer.for_site_id) == (self.site_id, ROBOTS_PATH, None):
            led, self.seen = True, ()
        else:
            before = self.answer
            led = before is not None and before.finished_at <= answer.started_at + TOLERANCE_S
            led = led and self.leads_to == answer.url
        self.seen = (*self.seen, answer.url) if led else (answer.url,)
        self.answer, self.terms, self.taken = answer, terms, False
        self.leads_to = self._target(answer, terms)
        return led

    def _target(self, answer: LoggedRequest, terms: RunRecord) -> str | None:
        """Where a redirect may be followed to: any host, but not in circles nor for ever (1996 draft, 3.1)."""
        if answer.location is None or not is_redirect(answer.status, answer.error):
            return None
        try:
            target = canonicalise(answer.location, answer.url)
        except NotCrawlable:
            return None
        return None if target in self.seen or len(self.seen) > terms.robots.max_redirects else target

    def take(self, version: RobotsVersion, held_until: float) -> Iterator[tuple[str, str]]:
        """The last answer became a version. What is recorded of it and cannot be so, as (required, done).

        ``held_until`` is the latest end of the pause that the site was in.
        """
        before, answer, terms, had = self.version, self.answer, self.terms, self.taken
        self.version, self.until, self.taken = version, version.valid_until, True
        if version.headers is None:
            self.failures = _MANY  # unknown; of an early store
            return
        if answer is None or terms is None or had:
            yield "an answer that it came of", "the log has none"
            return
        if (answer.run, answer.url) != (version.run, version.answered_by):
            yield (
                f"the answer of {version.answered_by} in run {version.run}, which it names",
                f"the last one is that of {answer.url} in run {answer.run}",
            )
        if _repeats(answer, version, terms) and (before is None or before.text != version.text):
            yield f"the text before it, for the answer is {answer.status or answer.error}", "another text is recorded"
        meant = meaning(answer, terms.reading, version.headers)
        self.failures = self.failures + 1 if meant is RobotsAction.DEFER else 0
        if version.action in _LASTING:
            longest_until = self._longest_until(version, terms, held_until)
            if version.valid_until > longest_until + TOLERANCE_S:
                over_s = version.valid_until - longest_until
                yield "an end as the headers received have it", f"one that is {over_s:.3f} s later is recorded"
            self.until = min(version.valid_until, longest_until)

    def _longest_until(self, version: RobotsVersion, terms: RunRecord, held_until: float) -> float:
        """RFC 9111, 4.2; RFC 9309, 2.4. What would run out before the pause is over lasts a little longer than that."""
        settings, at = terms.robots, version.valid_from
        headers = version.headers or ()
        if self.failures:  # past its time, by ``stale_if_error``
            pause_s = min(settings.retry_first_s * 2.0 ** min(self.failures - 1, _MANY), settings.retry_max_s)
            until = at + max(pause_s, retry_after_s(headers, at) or 0.0)
        else:
            until = freshness(headers, settings.reading, settings, at)
        return until if until > held_until + TOLERANCE_S else held_until + settings.min_fresh_s

    def contradiction(self, terms: RunRecord) -> str | None:
        """Why the version in force cannot be what the last answer meant."""
        answer, version = self.answer, self.version
        if answer is None or version is None:
            return None
        said = f"/robots.txt had answered {answer.status or answer.error or 'nothing'}"
        if not self.taken and version.headers is not None:
            return f"{said} since, and what that meant is not recorded"
        meant = meaning(answer, terms.reading, version.headers)
        if meant is None:
            return f"{said}, and where that led is not recorded"
        if meant in (version.action, RobotsAction.FREE):
            return None
        if meant is RobotsAction.DEFER and terms.robots.stale_if_error:
            return None
        return f"{said} ({meant}), and {version.action} is recorded"


def _repeats(answer: LoggedRequest, version: RobotsVersion, terms: RunRecord) -> bool:
    """Whether a version has the text before it: a 304 renews that, and ``stale_if_error`` keeps it while a site fails.

    A 304 to a request that named no copy is logged with an error. It renews nothing: the site is deferred.
    """
    if meaning(answer, terms.reading, version.headers) is not RobotsAction.DEFER:
        return answer.status == 304
    return version.action in _LASTING and (answer.status == 304 or terms.robots.stale_if_error)
