"""Reads a pilot: a store with a sample, from which the cost and the precision of another sample are forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawler.errors import UsageError
from crawler.sampling.survey import DrawnUrls, drawn_of
from crawler.sampling.variables import Variable
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.store.location import shown
from crawler.store.rows import SampleDraw
from crawler.store.statements import load_statements, unlimited

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.sampling")
_COUNTS = ("drawn_urls", "drawn_requests", "requests")


@dataclass(frozen=True, slots=True)
class PilotSite:
    """The requests to a site, without those for drawn URLs that were held back, and its URLs in the frame.

    ``held`` are the URLs of the frame that were held back.
    """

    requests: int
    frame: int
    held: int


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot tells. ``requests_per_drawn`` are the requests for a drawn URL that was held back.

    It sent ``requests``, in runs of ``run_s`` in all; ``answer_s`` is the mean time of an answer. Times in seconds.
    """

    settings: Settings
    draw: SampleDraw
    seeds: Sequence[str]
    sites: Mapping[str, PilotSite]
    requests_per_drawn: float
    requests: int
    run_s: float
    answer_s: float
    drawn: DrawnUrls


async def read_pilot(store: Store, variables: Mapping[str, Variable], now: float) -> Pilot:
    """The pilot in a store.

    Raises :class:`UsageError` if the store has no sample, and for a variable that cannot be computed.
    """
    draw, settings = await store.samples.drawn(), await stored_settings(store)
    if draw is None or settings is None:
        raise UsageError(f"{shown(store.name)} holds no sample, so it is no pilot")
    rows = await store.query(_SQL["pilot_sites"], {"held_from": unlimited(draw.held_from)})
    (runs,) = await store.query(_SQL["pilot_runs"])
    urls, of_drawn, requests = (sum(int(row[name]) for row in rows) for name in _COUNTS)
    drawn = await drawn_of(store, draw, variables, now)
    if not drawn.sites:
        raise UsageError(f"the sample in {shown(store.name)} has no URL, so it is no pilot")
    sites = {
        row["site"]: PilotSite(
            int(row["requests"]) - int(row["drawn_requests"]), int(row["frame_urls"]), int(row["held"])
        )
        for row in rows
    }
    return Pilot(
        settings,
        draw,
        await store.seeds(),
        sites,
        requests_per_drawn=of_drawn / urls if urls else 1.0,
        requests=requests,
        run_s=float(runs["run_s"]),
        answer_s=sum(float(row["answer_s"]) for row in rows) / max(requests, 1),
        drawn=drawn,
    )
