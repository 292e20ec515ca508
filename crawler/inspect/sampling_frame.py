"""What holds up the drawing of a sample: the sites of its sampling frame that were not reached yet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from crawler.clock import brief_time
from crawler.formatting import many
from crawler.frontier.sample_design import Method
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.store.statements import load_statements, unlimited

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SITES_SHOWN = 5

_SQL = load_statements("crawler.inspect")


class OpenFrame(NamedTuple):
    """A sampling frame that is not closed yet. ``closes_at`` in seconds since the epoch, if no page is answered before.

    ``depth`` is the depth whose pages are held back, ``None`` if none are. ``sites`` hold the frame up, at most five of
    ``site_count``.
    """

    depth: int | None
    closes_at: float
    sites: tuple[str, ...]
    site_count: int

    def describe(self, now: float) -> str:
        """The sites that hold up the draw, and until when, in a sentence."""
        latest = f"and is drawn {brief_time(self.closes_at, now)} at the latest if none of them answers"
        if not self.sites:
            return f"the sample waits for nothing, {latest}"
        more = f" and {self.site_count - len(self.sites):,} more" if self.site_count > len(self.sites) else ""
        held_by = many(self.site_count, "site")
        return (
            f"the sample waits for {held_by} ({', '.join(self.sites)}{more}), {latest}; a shorter "
            "sample.frame_patience draws it earlier, and `crawler control block SITE` leaves a site out"
        )


async def open_frame(store: Store, now: float) -> OpenFrame | None:
    """The sampling frame that the last run left open, or has open now; ``None`` if there is none."""
    settings = await stored_settings(store) or Settings()
    if settings.sample.size is None or settings.sample.method is Method.STRATIFIED:
        return None
    draw = await store.samples.drawn()
    if draw is not None and draw.stands:
        return None
    depth = settings.limits.max_depth
    bounds = {"held_from": unlimited(depth)}
    (count,) = await store.query(_SQL["count_frame_waits"], bounds)
    rows = await store.query(_SQL["frame_waits"], bounds | {"limit": _SITES_SHOWN})
    closes_at = await frame_answered_at(store, now) + settings.sample.frame_patience_s
    return OpenFrame(depth, closes_at, tuple(row["site"] for row in rows), count["sites"])


async def frame_answered_at(store: Store, now: float) -> float:
    """When a page was last answered for the sampling frame that is open; at least when the crawl began to build it."""
    (answer,) = await store.query(_SQL["last_answer"])
    return max(answer["at"] or 0.0, _begun_at(await store.query(_SQL["runs_since_draw"]), now))


def _begun_at(runs: Iterable[dict[str, object]], now: float) -> float:
    """When the first of the last ``runs`` began that all draw a sample; ``runs`` begins with the last one."""
    begun_at = now
    for run in runs:
        settings = json.loads(str(run["settings"]))
        if "auxiliary_run" in settings:
            continue
        if settings.get("sample", {}).get("size") is None:
            break
        begun_at = float(str(run["started_at"]))
    return begun_at
