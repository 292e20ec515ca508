"""The settings of a run in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from crawler.audit.records import RunRecord
from crawler.errors import UsageError
from crawler.formatting import duration, many, seconds, size
from crawler.model import Reading

_READINGS = {
    Reading.STRICT: "strict: a request needs the permission of both the 1996 draft and RFC 9309",
    Reading.DRAFT1996: "draft1996: the Internet-Draft of 1996",
    Reading.RFC9309: "rfc9309: RFC 9309",
}

_SCOPES = {
    "host": "the seeds' hosts",
    "domain": "the seeds' registered domains",
    "prefix": "the seeds' own paths",
    "any": "any site",
}


def described_settings(run: Any) -> Iterator[tuple[str, str]]:
    """Yield (setting, value) of a run in words; one pair that says so if the settings cannot be read."""
    try:
        settings = json.loads(run.settings)
        terms = RunRecord.from_row(run._asdict() | {"run": run.number})
    except (ValueError, UsageError) as error:
        yield "Settings", f"cannot be read: {error}"
        return
    yield "Robot", terms.user_agent
    yield "Contact", terms.contact or "none, so the crawl stays on loopback"
    yield "Reading of robots.txt", f"{_READINGS[terms.reading]}; product token {terms.agent}"
    declared = ", ".join(terms.purposes)
    yield "Declared use of the pages", declared or "none: preferences about use are recorded, and not obeyed"
    pauses = terms.politeness
    cap = "" if pauses.crawl_delay_cap_s is None else f" ({seconds(pauses.crawl_delay_cap_s)} at most)"
    yield (
        f"Pause per {pauses.group}",
        f"the longest of {seconds(pauses.delay_s)}, {pauses.slow_factor:g} × the time of the last response "
        f"({seconds(pauses.slow_cap_s)} at most) and the site's Crawl-delay{cap}",
    )
    yield "After 429 or 503", f"{seconds(pauses.backoff_first_s)} at least, and as long as Retry-After asks"
    if terms.settings.fetch.verify_off:
        yield "Warning", f"the certificates of {', '.join(terms.settings.fetch.verify_off)} are not verified"
    yield "Scope", _scope(settings.get("scope", {}))
    yield "Limits", _limits(settings)


def _scope(scope: Mapping[str, Any]) -> str:
    words = [_SCOPES.get(scope.get("mode", ""), "not recorded")]
    words += [f"only what matches {pattern}" for pattern in scope.get("include", ())]
    words += [f"not what matches {pattern}" for pattern in scope.get("exclude", ())]
    return "; ".join(words)


def _limits(settings: Mapping[str, Any]) -> str:
    limits = settings.get("limits", {})
    most = {
        "pages": limits.get("max_pages"),
        "pages per site": limits.get("max_pages_per_site"),
        "links from a seed": limits.get("max_depth"),
    }
    words = [f"{limit:,} {what}" for what, limit in most.items() if limit is not None]
    if limits.get("max_time_s") is not None:
        words.append(duration(limits["max_time_s"]))
    if "max_body_bytes" in settings.get("fetch", {}):
        words.append(f"{size(settings['fetch']['max_body_bytes'])} per page")
    if "concurrency" in limits:
        words.append(f"{many(limits['concurrency'], 'request')} at once, one per {settings['politeness']['group']}")
    return ", ".join(words) or "none"
