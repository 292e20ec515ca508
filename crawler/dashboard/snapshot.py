"""Reads one snapshot of a crawl for all viewers: figures, what each site waits for, the orders of the operator."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawler.dashboard.cached_figures import HISTORY_S, CachedFigure, RequestTotals
from crawler.dashboard.metrics import SUCCESSES
from crawler.errors import StoreError
from crawler.frontier.operator import Command, Order, Standing, standing
from crawler.inspect import time_left
from crawler.inspect.last_run import AT_LIMIT, SILENT_S, end_of, last_seen, low_disk, page_limit_reached
from crawler.inspect.status import are_several, reasons, workers
from crawler.inspect.unknown_hosts import describe_wait
from crawler.model import State
from crawler.reasons import group_waits_for
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.store.location import is_url, store_name
from crawler.store.rows import Beat, Waiting
from crawler.store.statements import load_statements, unlimited

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SITES = 60  # of those worked on and those that come next
_LAST_SITES = 20  # of those that wait longest, and of those at a limit
_MAX_QUEUED = 1000  # the queue of a site is counted up to this

_SQL = load_statements("crawler.dashboard")


class SnapshotReader:
    """Reads the store at ``db`` repeatedly. Expensive figures are cached (:class:`CachedFigure`)."""

    def __init__(self, store: Store, db: str) -> None:
        self._store = store
        self._name = store_name(db)
        self._path = None if is_url(db) else Path(db)
        self._file = None if self._path is None else self._path.stat().st_ino
        self.tally = RequestTotals(store)
        self._queued = CachedFigure(lambda now: store.queued_count())
        self._sites_and_pages = CachedFigure(lambda now: self._row("site_totals"))
        self._ended = CachedFigure(lambda now: self._ends())
        self._groups = CachedFigure(self._count_groups)
        self._excluded = CachedFigure(lambda now: reasons(store, State.EXCLUDED))
        self._failed = CachedFigure(lambda now: reasons(store, State.FAILED))
        self._sites = CachedFigure(self._site_rows)
        self._workers = CachedFigure(lambda now: workers(store))
        self._succeeded = CachedFigure(lambda now: self._last_success())
        self._time_left = CachedFigure(lambda now: time_left.read_time_left(store, now))

    async def snapshot(self, now: float, *, whole: bool = False) -> dict[str, Any]:
        """Everything that the dashboard shows, as one JSON object; times in seconds since the epoch.

        ``whole`` reads the whole request log, however long that takes. Raises :class:`StoreError` if the store fails,
        or if the file was replaced since it was opened.
        """
        self._require_file()
        await self.tally.read(now, whole=whole)
        orders, beats = await self._store.control.orders(), await self._store.control.beats()
        stand, totals = standing(orders), await self._sites_and_pages.at(now)
        return {
            "db": self._name,
            "at": now,
            "last_success_at": (await self._succeeded.at(now)),
            "run": await self._run(orders, stand, beats, now),
            "paused_since": stand.paused_since,
            "blocked": [{"name": name, "since": since} for name, since in stand.blocked.items()],
            "pages": totals["pages"],
            "known_sites": totals["sites"],
            "urls": {"queued": await self._queued.at(now), **await self._ended.at(now)},
            "groups": await self._groups.at(now),
            "requests": sum(self.tally.requests.values()),
            "received_bytes": self.tally.bytes,
            "log_read": self.tally.caught_up,
            "answers": self._answers(),
            "recent": [self.tally.recent[second] for second in range(int(now) - HISTORY_S, int(now))],
            "excluded_for": await self._excluded.at(now),
            "failed_for": await self._failed.at(now),
            "sites": await self._sites.at(now),
            "workers": await self._several_workers(now),
            "time_left": await self._time_left_text(now),
        }

    async def _time_left_text(self, now: float) -> dict[str, Any] | None:
        """How long the crawl will take, with the sentence that says so; ``None`` if nothing is left."""
        left = await self._time_left.at(now)
        seen = time_left.as_json(left)
        return None if left is None or seen is None else seen | {"text": time_left.describe_time_left(left, now)}

    async def _several_workers(self, now: float) -> list[dict[str, Any]]:
        seen = await self._workers.at(now)
        return [worker | {"ended_by": end_of(worker)} for worker in seen] if are_several(seen) else []

    def _require_file(self) -> None:
        try:
            inode = None if self._path is None else self._path.stat().st_ino
        except OSError:
            inode = None
        if inode != self._file:
            raise StoreError(f"{self._path}: the store was deleted or replaced; start the dashboard anew")

    async def _run(
        self, orders: list[Order], stand: Standing, beats: list[Beat], now: float
    ) -> Mapping[str, Any] | None:
        """The last run: its identity, its state, and its last sign of life."""
        run = await self._store.last_run()
        if run is None:
            return None
        settings = json.loads(run["settings"])
        seen_at, beats = last_seen(run, beats), [beat for beat in beats if beat.run_id == run["id"]]
        identity = settings.get("identity", {})
        return {
            "id": run["id"],
            "state": _state(run, orders, stand, now - seen_at if self._store.is_held() else math.inf),
            "started_at": run["started_at"],
            "finished_at": run["finished_at"],
            "ended_by": end_of(run),
            "ended_code": run["ended_code"],
            "seen_at": seen_at,
            "low_disk": low_disk(run, beats, now),
            "agent": identity.get("agent", ""),
            "contact": identity.get("contact", ""),
            "memory_bytes": sum(beat.memory_bytes or 0 for beat in beats) or None,
            "lag_s": max((beat.lag_s for beat in beats), default=0.0),
            "worst_lag_s": run["worst_lag_s"],
            "look_ups": _look_ups(beats),
            "vain_claims": sum(beat.vain_claims for beat in beats),
        }

    def _answers(self) -> list[tuple[str, int]]:
        answers: dict[str, int] = {}
        for (_, status), n in self.tally.requests.items():
            key = "no answer" if status is None else str(status)
            answers[key] = answers.get(key, 0) + n
        return sorted(answers.items(), key=lambda item: (-item[1], item[0]))

    async def _row(self, name: str, **parameters: object) -> dict[str, Any]:
        """The row of a statement that returns one."""
        (row,) = await self._store.query(_SQL[name], parameters)
        return row

    async def _last_success(self) -> float | None:
        ends = await self._store.query(_SQL["run_ends"])
        return max((row["at"] for row in ends if row["ended_code"] in SUCCESSES), default=None)

    async def _ends(self) -> dict[str, int]:
        ended = dict.fromkeys((State.REDIRECTED, State.EXCLUDED, State.FAILED), 0)
        return {state.value: n for state, n in ended.items()} | {
            row["state"]: row["urls"] for row in await self._store.query(_SQL["ended_urls"])
        }

    async def _count_groups(self, now: float) -> dict[str, int]:
        return await self._row("group_totals", now=now)

    async def _site_rows(self, now: float) -> list[dict[str, Any]]:
        """Sites with queued URLs: those worked on, the next ones, those that wait longest, and those at a limit."""
        found: dict[str, dict[str, Any]] = {}
        settings = await stored_settings(self._store) or Settings()
        has_all_pages = await page_limit_reached(self._store, settings)
        no_more = "a higher limit on pages"
        if settings.sample.size is not None:
            no_more += ", or the draw of the sample"
        bounds = {
            "now": now,
            "most_queued": _MAX_QUEUED,
            "pages_per_site": unlimited(settings.limits.max_pages_per_site),
        }
        selections = {"claimed": _SITES, "next": _SITES, "last": _LAST_SITES, "held": _LAST_SITES}
        for selection, limit in selections.items():
            groups = f"{selection}_groups"
            if selection in ("last", "held") or len(found) < _SITES:
                sql = _SQL["sites"].format(groups=_SQL[groups], at_limit=AT_LIMIT)
                for row in await self._store.query(sql, bounds | {"limit": limit}):
                    row["at_limit"] = has_all_pages or bool(row["at_limit"])
                    ends = (row.pop(name) for name in ("next_at", "robots_until", "rests_until", "ready_at"))
                    row["until"], failing_since = max(ends), row.pop("failing_since")
                    problem = row.pop("robots_problem")
                    wait = Waiting(
                        row["politeness_group"],
                        row["until"],
                        group_waits_for(problem, row["waits_for"]),
                        None if problem is None else row["robots"],
                        failing_since,
                    )
                    row["waits_for"] = no_more if row["at_limit"] else describe_wait(wait, settings.robots, now)
                    found.setdefault(row["site"], row)
        return sorted(found.values(), key=lambda row: (not row["worked_on"], row["at_limit"], row["until"]))


def _state(run: Mapping[str, Any], orders: list[Order], stand: Standing, silent_s: float) -> str:
    """``running``, ``pausing``, ``paused``, ``stopping``, ``silent`` (killed, or stuck) or ``ended``."""
    if run["finished_at"] is not None:
        return "ended"
    if silent_s > SILENT_S:
        return "silent"
    if any(order.command is Command.STOP and order.run_id == run["id"] for order in orders):
        return "stopping"
    if stand.paused_since is None:
        return "running"
    last = max(order.id for order in orders if order.command in (Command.PAUSE, Command.RESUME))
    heard = next(order for order in orders if order.id == last).done_at is not None
    return "paused" if heard or stand.paused_since < run["started_at"] else "pausing"


def _look_ups(beats: Sequence[Beat]) -> dict[str, list[float]]:
    """For each outcome, the number of look-ups of all processes, and the seconds that they took."""
    sums: dict[str, list[float]] = {}
    for beat in beats:
        for outcome, (n, took_s) in json.loads(beat.look_ups).items():
            before_n, before_s = sums.get(outcome, (0, 0.0))
            sums[outcome] = [before_n + n, before_s + took_s]
    return sums
