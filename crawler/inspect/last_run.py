"""Facts of the last run: its last sign of life, its wait for room on a disk, its end, its limit on pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawler.reasons import EndCode
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.store.rows import Beat
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: A crawl records a sign of life every 5 s. One without a sign for this long was killed, or is stuck.
SILENT_S = 15.0
#: A condition on the site ``s`` of the group ``g``, over the views by number: no queued URL of it may be claimed.
AT_LIMIT = load_statements("crawler.inspect")["at_limit"]


async def page_limit_reached(store: Store, settings: Settings) -> bool:
    """Whether the crawl has all the pages that ``settings`` allow."""
    most = settings.limits.max_pages
    return most is not None and await store.fetched_count() >= most


def last_seen(run: Mapping[str, Any], beats: list[Beat]) -> float:
    """The time of the last sign of life of a run, in seconds since the epoch."""
    return max((beat.seen_at for beat in beats if beat.run_id == run["id"]), default=float(run["started_at"]))


def low_disk(run: Mapping[str, Any] | None, beats: Sequence[Beat], now: float) -> str | None:
    """The disk for whose free space a process of ``run`` pauses; ``None`` if none does, or the run has ended."""
    if run is None or run["finished_at"] is not None:
        return None
    alive = (beat for beat in beats if beat.run_id == run["id"] and now - beat.seen_at < SILENT_S)
    return next((beat.low_disk for beat in alive if beat.low_disk is not None), None)


def end_of(run: Mapping[str, Any]) -> str | None:
    """Why a run or a worker ended, with the names that a terminal has for settings; ``None`` without an end."""
    code = run["ended_code"]
    return None if code is None else EndCode(code).message(run["ended_by"], terminal_name)
