"""The report's words: what states, answers, reasons and settings are called, for those who did not write them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from crawler.audit.evidence import many, seconds
from crawler.audit.records import RunRecord
from crawler.cli.layout import duration
from crawler.errors import UsageError
from crawler.model import Reading, State
from crawler.report.charts import Series
from crawler.report.facts import Run

STATES: Mapping[State, Series] = {
    State.FETCHED: Series("fetched", "c2"),
    State.REDIRECTED: Series("redirected", "c1"),
    State.QUEUED: Series("queued", "c5"),
    State.EXCLUDED: Series("excluded", "c6"),
    State.FAILED: Series("failed", "c4"),
}

#: In the order of :data:`crawler.report.facts.ANSWERS`.
ANSWER_SERIES = (
    Series("2xx success", "c2"),
    Series("3xx redirect", "c1"),
    Series("4xx error", "c3"),
    Series("5xx error", "c4"),
    Series("no answer", "c6"),
)

ROBOTS = {
    "parse": ("a file, read and obeyed", "good"),
    "free": ("no file: nothing is closed", "good"),
    "restricted": ("access denied: the whole site is closed", "bad"),
    "defer": ("not to be had: nothing is fetched until it is", "mild"),
    "given_up": ("not to be had for so long that the site was given up", "bad"),
    "unreachable": ("at an address that is not connected to", "mild"),
}

REASONS = {
    "scope": "outside the scope of the crawl",
    "contact": "off loopback, with no --contact given",
    "depth": "too many links away from the seeds",
    "robots": "closed by the site's robots.txt",
    "mirror": "on a mirror: asked of its main site instead",
    "mirror cycle": "on sites that name each other as main hosts",
    "trap": "looks like one of endless many",
    "sitemap": "named as a sitemap, and none is there",
    "type": "not of a wanted content type",
    "address": "at an address that is not connected to",
    "nofollow": "linked to only with rel=nofollow",
    "redirects": "behind too many redirects",
    "sample": "left to chance, and not drawn for the sample",
}

_READINGS = {
    Reading.STRICT: "strict: only what both the 1996 draft and RFC 9309 allow",
    Reading.DRAFT1996: "draft1996: as the Internet-Draft of 1996 reads it",
    Reading.RFC9309: "rfc9309: as RFC 9309 reads it",
}

_SCOPES = {
    "host": "the seeds' hosts",
    "domain": "the seeds' registrable domains",
    "prefix": "below the seeds' own addresses",
    "any": "any site",
}


def volume(octets: float) -> str:
    """``500 B``, ``2 kB``, ``14.8 kB``, ``5.7 MB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if octets >= unit:
            return f"{octets / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{octets:.0f} B"


def span(span_s: float) -> str:
    """``4 ms``, ``2 s``, ``7.5 s``, ``1 min 4 s``."""
    return duration(span_s).replace(".0 s", " s")


def moment(epoch_s: float) -> str:
    """``21 Nov 2026, 13:37:47``."""
    then = datetime.fromtimestamp(epoch_s, UTC)
    return f"{then.day} {then:%b %Y, %H:%M:%S}"


def time_label(epoch_s: float, width_s: float) -> str:
    """As little of a time as slots of this width need."""
    then = datetime.fromtimestamp(epoch_s, UTC)
    if width_s >= 3600:
        return f"{then.day} {then:%b %Hh}" if width_s < 86400 else f"{then.day} {then:%b %Y}"
    clock = f"{then:%H:%M}" if width_s >= 60 else f"{then:%H:%M:%S}"
    return clock if width_s >= 1 else f"{clock}.{then.microsecond // 100_000}"


def rules(run: Run) -> Iterator[tuple[str, str]]:
    """The rules that a run kept, as (what, how); a single line where its settings cannot be read."""
    try:
        settings = json.loads(run.settings)
        terms = RunRecord.read({name: getattr(run, name) for name in run.__slots__} | {"id": run.number})
    except (ValueError, UsageError) as error:
        yield "Settings", f"cannot be read: {error}"
        return
    yield "Robot", terms.user_agent
    yield "Contact", terms.contact or "none named, which keeps a crawl on loopback"
    yield "Reading of robots.txt", f"{_READINGS[terms.reading]}; searched for {terms.agent}"
    cap = "" if terms.crawl_delay_cap_s is None else f" ({seconds(terms.crawl_delay_cap_s)} at most)"
    yield (
        f"Pause per {terms.group}",
        f"the longest of {seconds(terms.delay_s)}, {terms.slow_factor:g} × what the last answer took "
        f"({seconds(terms.slow_cap_s)} at most) and the site's Crawl-delay{cap}",
    )
    yield "After 429 or 503", f"{seconds(terms.backoff_first_s)} at least, and as long as Retry-After asks"
    yield "Scope", _scope(settings.get("scope", {}))
    yield "Limits", _limits(settings)


def _scope(scope: Mapping[str, Any]) -> str:
    words = [_SCOPES.get(scope.get("mode", ""), "not recorded")]
    words += [f"only what matches {pattern}" for pattern in scope.get("include", ())]
    words += [f"not what matches {pattern}" for pattern in scope.get("exclude", ())]
    return "; ".join(words)


def _limits(settings: Mapping[str, Any]) -> str:
    crawl = settings.get("crawl", {})
    most = {
        "pages": crawl.get("max_pages"),
        "pages per site": crawl.get("max_pages_per_site"),
        "links from a seed": settings.get("scope", {}).get("max_depth"),
    }
    words = [f"{limit:,} {what}" for what, limit in most.items() if limit is not None]
    if crawl.get("max_time_s") is not None:
        words.append(span(crawl["max_time_s"]))
    if "max_body_bytes" in crawl:
        words.append(f"{volume(crawl['max_body_bytes'])} per page")
    if "concurrency" in crawl:
        words.append(f"{many(crawl['concurrency'], 'request')} at once, one to a {settings['politeness']['group']}")
    return ", ".join(words) or "none"
