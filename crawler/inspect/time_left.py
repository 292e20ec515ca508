"""Reads from a store how long its crawl will take (:mod:`crawler.frontier.time_left`)."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from crawler.clock import brief_time
from crawler.formatting import duration, many
from crawler.frontier.scope import ScopeMode
from crawler.frontier.time_left import DepthCount, End, GroupBacklog, Limits, TimeLeft, time_left
from crawler.settings.settings import Settings
from crawler.settings.stored import recorded
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_GROUPS = 5000  # those that need longest, taken by their backlogs; the others end earlier
_NO_LIMIT = 2**53

_SQL = load_statements("crawler.inspect")


async def read_time_left(store: Store, now: float) -> TimeLeft | None:
    """The time that the crawl on ``store`` needs from ``now`` on, in seconds; ``None`` if nothing is queued.

    The settings are those of the last run. It reads the whole frontier, and counts all URLs by depth.
    """
    run = await store.last_run()
    return None if run is None else await time_left_under(store, recorded(json.loads(run["settings"])), run, now)


async def time_left_under(store: Store, settings: Settings, run: dict[str, Any], now: float) -> TimeLeft | None:
    """The time that the crawl on ``store`` needs under ``settings``; ``run`` is the row of its run."""
    most = settings.limits
    per_site = _NO_LIMIT if most.max_pages_per_site is None else most.max_pages_per_site
    asked = {"now": now, "per_site": per_site, "limit": _GROUPS}
    # Where links lead to any site, new sites may come without end, each with the limit of its own.
    is_bounded = most.max_pages_per_site is not None and settings.scope.mode is not ScopeMode.ANY
    backlogs = [_backlog(row, settings, is_bounded) for row in await store.query(_SQL["backlogs"], asked)]
    if not backlogs:
        return None
    counted = await store.query(_SQL["urls_by_depth"])
    depths = {row["depth"]: DepthCount(row["queued"], row["answered"], row["refused"]) for row in counted}
    pages = math.inf if most.max_pages is None else most.max_pages - await store.fetched_count()
    max_depth = math.inf if most.max_depth is None else most.max_depth
    limits = Limits(pages, _run_time_s(store, settings, run, now), max_depth, most.concurrency * settings.workers.count)
    return time_left(backlogs, depths, settings.politeness, limits, now)


def _run_time_s(store: Store, settings: Settings, run: dict[str, Any], now: float) -> float:
    """The time until the time limit of ``run`` ends it, in seconds; infinite without a limit.

    The limit is of one run, and the next run has its own: it says nothing once the run has ended, or was killed.
    """
    max_time_s = settings.limits.max_time_s
    if max_time_s is None or run["finished_at"] is not None or not store.is_held():
        return math.inf
    left_s: float = run["started_at"] + max_time_s - now
    return left_s if left_s > 0 else math.inf  # on PostgreSQL, a run that was killed is like one at work


def _backlog(row: dict[str, Any], settings: Settings, is_bounded: bool) -> GroupBacklog:
    give_up_at: float | None = None
    tried_until: float | None = None
    if row["failing_since"] is not None:  # at the first failure after that time, and the pauses double
        robots = settings.robots
        patience_s = robots.patience_s(row["robots_status"])
        tried_until = row["failing_since"] + patience_s
        give_up_at = tried_until + min(robots.retry_max_s, patience_s + robots.retry_first_s)
    return GroupBacklog(
        group=row["name"],
        queued=int(row["queued"]),  # a sum is a Decimal on PostgreSQL
        sites=row["sites"],
        room=float(row["room"]) if is_bounded else math.inf,
        ready_at=max(row["next_at"], row["waits_until"], row["first_due_at"]),
        last_due_at=row["last_due_at"],
        give_up_at=give_up_at,
        tried_until=tried_until,
        pause_s=row["pause_s"],
        usual_s=row["usual_s"],
        crawl_delay_s=row["crawl_delay_s"],
    )


def describe_time_left(left: TimeLeft, now: float) -> str:
    """The range at ``now`` in one sentence: ``about 12 min to 40 min to go``, and the group that needs longest.

    It is no bound: queued URLs may end without a request, and servers may answer slower.
    """
    if left.end is End.AWAITED and left.most_s is not None:
        others = f", nor from {many(left.groups - 1, 'other host')}" if left.groups > 1 else ""
        until = brief_time(now + (left.most_s if left.tried_s is None else left.tried_s), now)
        return f"no answer from {left.slowest} ({many(left.slowest_queued, 'URL')}){others}: tried until {until}"
    if left.most_s is not None:
        ends = dict.fromkeys(map(duration, (left.least_s, left.most_s)))
        span = f"about {' to '.join(ends)} to go"
    else:
        known = f"at least {duration(left.least_s)} to go: " if left.least_s >= 1 else ""
        span = f"{known}{left.reason}"
    return f"{span}; {left.slowest} takes longest ({many(left.slowest_queued, 'URL')})"


def as_json(left: TimeLeft | None) -> dict[str, Any] | None:
    """The range as a JSON object; times in seconds. ``most_s`` is null without an upper end, ``end`` says why."""
    if left is None:
        return None
    return {
        "least_s": left.least_s,
        "most_s": left.most_s,
        "end": left.end.value,
        "new_per_page": left.new_per_page,
        "slowest": left.slowest,
        "slowest_queued": left.slowest_queued,
        "slowest_s": left.slowest_s,
    }
