"""The settings of a run in words, for the audit's document and the report."""

from __future__ import annotations

from collections.abc import Iterator

from crawler.audit.records import RunRecord
from crawler.formatting import duration, many, seconds, size
from crawler.frontier.scope import ScopeSettings
from crawler.model import Reading

READINGS = {
    Reading.STRICT: "strict: a page was fetched only if both the 1996 draft and RFC 9309 allow it",
    Reading.DRAFT1996: "draft1996: as the Internet-Draft of 1996 reads it",
    Reading.RFC9309: "rfc9309: as RFC 9309 reads it",
}


def described_settings(run: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield (setting, value) of a run in words."""
    settings = run.settings
    pauses, identity, reading = settings.politeness, settings.identity, settings.robots.reading
    yield "Robot", run.user_agent
    yield "Contact", identity.contact or "none, which is allowed on loopback only"
    yield "Reading of robots.txt", f"{READINGS[reading]}; the records for {identity.agent}"
    declared = ", ".join(identity.purpose)
    yield "Declared use of the pages", declared or "none: preferences about use were recorded, and not obeyed"
    cap = "" if pauses.crawl_delay_cap_s is None else f" ({seconds(pauses.crawl_delay_cap_s)} at most)"
    most = f"({seconds(pauses.slow_cap_s)} at most)"
    yield (
        f"Pause per {pauses.group}",
        f"the longest of {seconds(pauses.delay_s)}, {pauses.slow_factor:g} × the time of the last answer {most} and "
        f"the site's Crawl-delay{cap}; as many times as long while answers took at least twice as long as usual {most}",
    )
    yield "At one address", f"{many(pauses.per_address, 'request')} in flight at most"
    yield "After 429 or 503", f"{seconds(pauses.backoff_first_s)} at least, and as long as Retry-After said"
    if pauses.hours:
        yield "Hours", ", ".join(pauses.hours)
    for rule in pauses.sites:
        yield f"For {rule.name}", ", ".join(f"{word} {value}" for word, value in rule.stated.items())
    if settings.fetch.verify_off:
        yield "Warning", f"the certificates of {', '.join(settings.fetch.verify_off)} are not verified"
    yield "Scope", "; ".join(_scope(settings.scope))
    bounds = {
        "pages": settings.limits.max_pages,
        "pages per site": settings.limits.max_pages_per_site,
        "links from a seed": settings.limits.max_depth,
    }
    limits = [f"{limit:,} {what}" for what, limit in bounds.items() if limit is not None]
    if settings.limits.max_time_s is not None:
        limits.append(duration(settings.limits.max_time_s))
    limits.append(f"{size(settings.fetch.max_body_bytes)} per page")
    limits.append(f"{many(settings.limits.concurrency, 'request')} at once, one per {pauses.group}")
    yield "Limits", ", ".join(limits)


def _scope(scope: ScopeSettings) -> Iterator[str]:
    yield scope.mode.words
    yield from (f"only what matches {pattern}" for pattern in scope.include)
    yield from (f"not what matches {pattern}" for pattern in scope.exclude)
