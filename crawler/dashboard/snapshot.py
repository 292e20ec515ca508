"""One look at a running crawl, for all who watch: figures, what each site waits for, what the operator has asked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crawler.dashboard.cached_figures import HISTORY_S, CachedFigure, RequestTotals
from crawler.errors import StoreError
from crawler.frontier.operator import Command, Order, Standing, standing
from crawler.inspect.status import SILENT_S, are_several, last_seen, reasons, workers
from crawler.model import State
from crawler.store.location import is_url, store_name
from crawler.store.protocols import Beat, Store

_SITES = 60  # shown of those worked on and those whose turn comes next
_LAST_SITES = 20  # and of those that wait longest
_QUEUED_SHOWN = 1000  # a site's queue is counted up to here

# Groups that have something to do, each with its sites that have; {0} picks and sorts them.
_SITES_OF = """
SELECT s.name AS site, g.name AS politeness_group, g.claimed_by IS NOT NULL AS worked_on,
  g.next_at, s.wait_until, coalesce(g.ready_at, 0) AS ready_at, g.pause_s, s.fetched,
  CASE WHEN s.wait_until > ?1 THEN 'robots.txt: ' || r.status ELSE coalesce(nullif(g.waits_for, ''), 'retry') END
    AS waits_for,
  r.status AS robots,
  (SELECT count(*) FROM (SELECT 1 FROM frontier f WHERE f.site_id = s.id LIMIT {1}) AS q) AS queued
FROM ({0}) g JOIN site s ON s.group_id = g.id LEFT JOIN robots_copy r ON r.id = s.robots_id
WHERE EXISTS (SELECT 1 FROM frontier f WHERE f.site_id = s.id) LIMIT ?2
"""
_WORKED_ON = "SELECT * FROM politeness_group WHERE claimed_by IS NOT NULL ORDER BY next_at LIMIT ?2"
_NEXT = "SELECT * FROM politeness_group WHERE ready_at IS NOT NULL AND claimed_by IS NULL ORDER BY ready_at LIMIT ?2"
_LAST = "SELECT * FROM politeness_group WHERE ready_at > ?1 AND claimed_by IS NULL ORDER BY ready_at DESC LIMIT ?2"


class SnapshotReader:
    """Reads the store at ``db`` repeatedly. Expensive figures are cached (:class:`CachedFigure`)."""

    def __init__(self, store: Store, db: str) -> None:
        self._store = store
        self._name = store_name(db)
        self._path = None if is_url(db) else Path(db)
        self._file = None if self._path is None else self._path.stat().st_ino
        self.tally = RequestTotals(store)
        self._queued = CachedFigure(lambda now: store.queued_count())
        self._sites_and_pages = CachedFigure(
            lambda now: self._row("SELECT count(*) AS sites, coalesce(sum(fetched), 0) AS pages FROM site")
        )
        self._ended = CachedFigure(lambda now: self._ends())
        self._groups = CachedFigure(self._count_groups)
        self._excluded = CachedFigure(lambda now: reasons(store, State.EXCLUDED, 30))
        self._failed = CachedFigure(lambda now: reasons(store, State.FAILED))
        self._sites = CachedFigure(self._look_at_sites)
        self._workers = CachedFigure(lambda now: workers(store))

    async def look(self, now: float, *, whole: bool = False) -> dict[str, Any]:
        """All there is to show, as one JSON object; times in seconds since the epoch. ``whole``: however long it takes.

        Raises :class:`StoreError` where the store fails, or is not the one that was opened any more.
        """
        self._require_file()
        await self.tally.read(now, whole=whole)
        orders, beats = await self._store.control.orders(), await self._store.control.beats()
        stand, totals = standing(orders), await self._sites_and_pages.at(now)
        return {
            "db": self._name,
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
        }

    async def _several_workers(self, now: float) -> list[dict[str, Any]]:
        seen = await self._workers.at(now)
        return seen if are_several(seen) else []

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
        """The last run: who it is, whether it lives, and whether it has done what was asked."""
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
            "ended_by": run["ended_by"],
            "seen_at": seen_at,
            "agent": identity.get("agent", ""),
            "contact": identity.get("contact", ""),
            "memory_bytes": sum(beat.memory_bytes or 0 for beat in beats) or None,
            "lag_s": max((beat.lag_s for beat in beats), default=0.0),
            "worst_lag_s": run["worst_lag_s"],
        }

    def _answers(self) -> list[tuple[str, int]]:
        answers: dict[str, int] = {}
        for (_, status), n in self.tally.requests.items():
            key = "no answer" if status is None else str(status)
            answers[key] = answers.get(key, 0) + n
        return sorted(answers.items(), key=lambda item: (-item[1], item[0]))

    async def _row(self, sql: str, *parameters: object) -> dict[str, Any]:
        return (await self._store.query(sql, parameters))[0]

    async def _ends(self) -> dict[str, int]:
        ended = dict.fromkeys((State.REDIRECTED, State.EXCLUDED, State.FAILED), 0)
        sql = "SELECT state, count(*) AS n FROM url WHERE state IN ('redirected', 'excluded', 'failed') GROUP BY state"
        return {state.value: n for state, n in ended.items()} | {
            row["state"]: row["n"] for row in await self._store.query(sql)
        }

    async def _count_groups(self, now: float) -> dict[str, int]:
        row = await self._row(
            """SELECT count(claimed_by) AS worked_on,
                 count(*) FILTER (WHERE claimed_by IS NULL AND ready_at > ?1) AS waiting,
                 count(*) FILTER (WHERE claimed_by IS NULL AND ready_at <= ?1) AS ready FROM politeness_group""",
            now,
        )
        return dict(row)

    async def _look_at_sites(self, now: float) -> list[dict[str, Any]]:
        """Sites with something to do: worked on, next in turn, and those that wait longest."""
        found: dict[str, dict[str, Any]] = {}
        for groups, most in ((_WORKED_ON, _SITES), (_NEXT, _SITES), (_LAST, _LAST_SITES)):
            if groups is _LAST or len(found) < _SITES:
                sql = _SITES_OF.format(groups, _QUEUED_SHOWN)
                for row in await self._store.query(sql, (now, most)):
                    row["until"] = max(row.pop("next_at"), row.pop("wait_until"), row.pop("ready_at"))
                    found.setdefault(row["site"], row)
        return sorted(found.values(), key=lambda row: (not row["worked_on"], row["until"]))


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
