"""The robots.txt of one site over time, replayed from the log: what each response meant, and until when (pure).

Rules: ``docs/protocols.md``, section 1. How they are judged: ``docs/audit.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crawler.audit.records import (
    TOLERANCE_S,
    LoggedRequest,
    RobotsVersion,
    RunRecord,
    SourceVersion,
    is_redirect,
    meaning,
)
from crawler.model import RobotsAction
from crawler.robots.http_seconds import retry_after_s
from crawler.robots.response import freshness
from crawler.url import ROBOTS_PATH, NotCrawlable, canonicalise

_MAX_DOUBLINGS = 64  # the pause between attempts reaches its maximum long before
_USABLE = frozenset({RobotsAction.PARSE, RobotsAction.FREE, RobotsAction.RESTRICTED})


@dataclass(slots=True)
class RobotsHistory:
    """The robots.txt of a site at one moment of the replay. Times in seconds since the epoch."""

    site_id: int
    #: The last response; that of the redirect's target, if a redirect was followed. ``run`` is the run it came in.
    response: LoggedRequest | None = None
    run: RunRecord | None = None
    #: The version in force, and its end as computed from the response headers, not as recorded.
    version: RobotsVersion | None = None
    until: float = 0.0
    #: Whether a version was recorded for the last response.
    is_recorded: bool = True
    #: The redirects followed since the last request for the site's own /robots.txt, and the target of the last one.
    redirect_target: str | None = None
    visited: tuple[str, ...] = ()
    consecutive_failures: int = 0

    def add_response(self, response: LoggedRequest, run: RunRecord) -> bool:
        """Record a response. False if it is neither from the site's /robots.txt nor from the target of a redirect."""
        if (response.site_id, response.path, response.for_site_id) == (self.site_id, ROBOTS_PATH, None):
            is_expected, self.visited = True, ()
        else:
            before = self.response
            is_expected = (
                before is not None
                and before.finished_at <= response.started_at + TOLERANCE_S
                and self.redirect_target == response.url
            )
        self.visited = (*self.visited, response.url) if is_expected else (response.url,)
        self.response, self.run, self.is_recorded = response, run, False
        self.redirect_target = self._target(response, run)
        return is_expected

    def _target(self, response: LoggedRequest, run: RunRecord) -> str | None:
        """The URL that a redirect may be followed to, on any host; no circles, and at most ``max_redirects`` hops.

        Source: 1996 draft, 3.1.
        """
        if response.location is None or not is_redirect(response.status, response.error):
            return None
        try:
            target = canonicalise(response.location, response.url)
        except NotCrawlable:
            return None
        return None if target in self.visited or len(self.visited) > run.settings.robots.max_redirects else target

    def add_version(self, version: RobotsVersion, paused_until: float) -> Iterator[tuple[str, str]]:
        """Record the version that the last response led to. Yields each contradiction as (required, done).

        ``paused_until`` is the latest possible end of the pause that the site was in.
        """
        before, response, run, had_version = self.version, self.response, self.run, self.is_recorded
        self.version, self.until, self.is_recorded = version, version.valid_until, True
        if response is None or run is None or had_version:
            yield "a response that the version comes from", "the log has none"
            return
        source = self._source()
        if source is not None:
            yield from self._check_source(version, source)
        elif (response.run, response.url) != (version.run, version.answered_by):
            yield (
                f"the response of {version.answered_by} in run {version.run}, which the version names",
                f"the last response is that of {response.url} in run {response.run}",
            )
        has_new_text = before is None or before.text_id != version.text_id
        if source is None and has_new_text and _keeps_text(response, version, run):
            yield (
                f"the text before it, because the response is {response.status or response.error}",
                "another text is recorded",
            )
        is_failure = source is None and meaning(response, run, version.headers) is RobotsAction.DEFER
        self.consecutive_failures = self.consecutive_failures + 1 if is_failure else 0
        if version.action in _USABLE:
            latest_end = self._latest_end(version, run, paused_until)
            if version.valid_until > latest_end + TOLERANCE_S:
                over_s = version.valid_until - latest_end
                yield "an end that follows from the response headers", f"the recorded end is {over_s:.3f} s later"
            self.until = min(version.valid_until, latest_end)

    def _source(self) -> SourceVersion | None:
        """The version in force for the URL to which the last response redirected, if the version comes from there.

        No request was made for it then: one version serves all sites that redirect to the same URL.
        """
        version, response = self.version, self.response
        if version is None or response is None or version.answered_by in (None, response.url):
            return None
        return version.source if version.answered_by == self.redirect_target else None

    def _check_source(self, version: RobotsVersion, source: SourceVersion) -> Iterator[tuple[str, str]]:
        """A version that comes from another site must be the version in force there."""
        if (version.action, version.text_id) != (source.action, source.text_id):
            yield f"the version of {version.answered_by}: {source.action}", f"another one is recorded: {version.action}"
        if source.action not in _USABLE or source.valid_until < version.valid_from - TOLERANCE_S:
            yield f"a version of {version.answered_by} in force", "the last one had expired, or was no usable answer"

    def _latest_end(self, version: RobotsVersion, run: RunRecord, paused_until: float) -> float:
        """The latest time until which a version may be used (RFC 9111, 4.2; RFC 9309, 2.4).

        A version that comes from another site lasts as long as there. A version that would expire before the pause is
        over is kept for ``min_fresh_s`` after the pause, unless the other site had it before it was needed. A version
        that ``stale_if_error`` keeps while the site fails lasts until the next attempt.
        """
        settings, at = run.settings.robots, version.valid_from
        if (source := self._source()) is not None:
            until = source.valid_until
            if self.response is not None and source.valid_from < self.response.finished_at - TOLERANCE_S:
                return until
        elif self.consecutive_failures:
            doublings = min(self.consecutive_failures - 1, _MAX_DOUBLINGS)
            pause_s = min(settings.retry_first_s * 2.0**doublings, settings.retry_max_s)
            until = at + max(pause_s, retry_after_s(version.headers, at) or 0.0)
        else:
            until = freshness(version.headers, settings.reading, settings, at)
        return until if until > paused_until + TOLERANCE_S else paused_until + settings.min_fresh_s

    def contradiction(self, run: RunRecord) -> str | None:
        """Why the version in force cannot be what the last response meant; ``None`` if it can."""
        response, version = self.response, self.version
        if response is None or version is None:
            return None
        answered = f"/robots.txt had answered {response.status or response.error or 'nothing'}"
        if not self.is_recorded:
            return f"{answered} since, and no version is recorded for that"
        if self._source() is not None:
            return None
        meant = meaning(response, run, version.headers)
        if meant in (version.action, RobotsAction.FREE):
            return None
        if meant is RobotsAction.DEFER and run.settings.robots.stale_if_error:
            return None
        return f"{answered} ({meant}), and {version.action} is recorded"


def _keeps_text(response: LoggedRequest, version: RobotsVersion, run: RunRecord) -> bool:
    """Whether a version has the text of the version before it.

    A 304 renews that text, and ``stale_if_error`` keeps it while a site fails. A 304 to a request that named no copy is
    logged with an error; it renews nothing, and the site is deferred.
    """
    if meaning(response, run, version.headers) is not RobotsAction.DEFER:
        return response.status == 304
    return version.action in _USABLE and (response.status == 304 or run.settings.robots.stale_if_error)
