"""Reads rows about sites: the copy of robots.txt in force, and what answers have told about main sites and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from crawler.frontier.refusals import NO_REFUSALS, Refusals
from crawler.model import RobotsAction, RobotsCopy
from crawler.robots.mirrors import Contradiction
from crawler.store.rows import ClaimedSite, Heard, Refuted

#: The columns of a robots copy that have the names of its fields.
OF_COPY = ("action", "status", "fetched_at", "etag", "last_modified", "failures", "failing_since", "retry_at", "note")


def heard_from(rows: Iterable[Sequence[Any]]) -> Heard:
    """What answers have told, from rows of ``heard_since``."""
    heard = Heard([], [], [])
    for site, main_site, evidence, contradiction in rows:
        match evidence:
            case "host":
                heard.mirrors.append((site, main_site))
            case "refuted":
                heard.refuted.append(Refuted(site, main_site, Contradiction(contradiction)))
            case _:
                heard.adopted_hosts.append(site)
    return heard


def claimed_site(row: Any) -> ClaimedSite:
    """The site in a row of ``claimed_sites`` or ``site_named``."""
    return ClaimedSite(
        row.id,
        row.name,
        robots_copy(row),
        row.robots_id,
        row.crawl_delay_s,
        bool(row.is_waiting),
        fetched=row.fetched,
        refusals=refusals(row),
        rests_until=row.rests_until,
    )


def refusals(row: Any) -> Refusals:
    """The refusals of the site in a row."""
    if not (row.walls or row.refused or row.rest_count):
        return NO_REFUSALS
    is_closed = row.closed_at is not None
    return Refusals(row.walls, row.refused, bool(row.front_refused), row.rest_count, row.probe, is_closed)


def robots_copy(row: Any) -> RobotsCopy | None:
    """The robots copy in a row; ``None`` if it has none."""
    if row.action is None:
        return None
    kept: dict[str, Any] = {name: getattr(row, name) for name in OF_COPY}
    kept |= {"action": RobotsAction(row.action), "expires_at": row.valid_until}
    return RobotsCopy(**kept, body=row.body if row.sha256 else b"", sha256=row.sha256 or b"")
