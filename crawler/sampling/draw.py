"""Draws a sample of the known URLs, and stores it."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from crawler.frontier.sample_design import Design, Drawn, Method, Per, Sampler, SampleSettings
from crawler.sampling.random_walk import undirected, walk
from crawler.store.rows import SampleDraw, SampleRow
from crawler.store.statements import load_statements, unlimited

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.sampling")

_UNNAMED = Design()


class FrameUrl(NamedTuple):
    """A URL of the sampling frame."""

    url_id: int
    site: str
    url: str


async def draw(
    store: Store,
    settings: SampleSettings,
    max_depth: int | None,
    pages_per_site: int | None,
    now: float,
    design: Design = _UNNAMED,
) -> None:
    """Draw a sample of all known URLs, and replace the one in the store. ``design`` is recorded with the draw."""
    assert settings.size is not None
    deepest = unlimited(max_depth)
    limits = {"deepest": deepest, "held_from": deepest, "pages_per_site": unlimited(pages_per_site)}
    frame, cut = array("q"), set[str]()
    sampler = Sampler(
        settings.size, settings.seed, share=settings.share, sites=settings.sites, sites_by=settings.sites_by
    )
    walking, units = settings.method is Method.RANDOM_WALK, list[FrameUrl]()
    async for row in store.rows(_SQL["frame"], limits):
        frame.append(row.url_id)
        if row.is_cut:
            cut.add(row.site)
        if walking:
            units.append(FrameUrl(row.url_id, row.site, row.url))
        else:
            sampler.offer(row.url, row.site if settings.per is Per.SITE else "", row.url_id)
    if walking:
        rows = await _walked(store, units, settings)
    else:
        rows = [_row(each, each.url_id) for each in sampler.drawn()]
    (unreached,) = await store.query(
        _SQL["unreached"], {name: limits[name] for name in ("held_from", "pages_per_site")}
    )
    made = _made(settings, now, len(frame), len(cut), max_depth, design)
    made = made._replace(missed=unreached["urls"], missed_sites=unreached["sites"])
    await store.samples.replace(made, rows, pages_per_site, frame)


async def keep_drawn(
    store: Store,
    drawn: Iterable[Drawn],
    settings: SampleSettings,
    listed: int,
    pages_per_site: int | None,
    now: float,
    design: Design = _UNNAMED,
) -> None:
    """Store a sample of a list of ``listed`` seeds. The store must know all URLs in ``drawn``.

    A standing sample of the same design and list is the same sample, and stays.
    """
    last = await store.samples.drawn()
    if last is not None and last.stands and design.seeds is not None and last.design == design.text:
        return
    rows = [_row(each, await store.find(each.url)) for each in drawn]
    await store.samples.replace(_made(settings, now, listed, 0, 0, design), rows, pages_per_site)


def _made(
    settings: SampleSettings, now: float, frame: int, cut_sites: int, max_depth: int | None, design: Design
) -> SampleDraw:
    assert settings.size is not None
    return SampleDraw(
        settings.method.value,
        settings.per.value,
        settings.size,
        settings.seed,
        now,
        frame,
        cut_sites,
        follows=max_depth == 0,
        held_from=max_depth,
        share=settings.share,
        sites=settings.sites,
        sites_by=settings.sites_by.value,
        design=design.text,
        design_sha256=design.sha256,
    )


def _row(drawn: Drawn, url_id: int | None) -> SampleRow:
    assert url_id is not None, "the store knows every drawn URL"
    return SampleRow(url_id, drawn.stratum, None, drawn.probability, drawn.site_probability)


async def _walked(store: Store, units: list[FrameUrl], settings: SampleSettings) -> list[SampleRow]:
    """Random walks on the links between the URLs of the frame: over the whole frame, or within each site."""
    assert settings.size is not None
    units.sort(key=lambda unit: unit.url)  # the numbers of URLs depend on the order in which the crawl found the sites
    strata: defaultdict[str, list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        strata[unit.site if settings.per is Per.SITE else ""].append(place)
    links, rows = await _links(store, units), list[SampleRow]()
    for name, members in sorted(strata.items()):
        for visit in walk(links[members][:, members], settings.size, settings.seed, name):
            rows.append(SampleRow(units[members[visit.node]].url_id, name, visit.walk, visit.probability))
    return rows


async def _links(store: Store, units: list[FrameUrl]) -> csr_array:
    """The links between ``units``, by their places."""
    numbers = np.array([unit.url_id for unit in units], np.int64)
    order = np.argsort(numbers)
    ends = array("q")
    async for row in store.rows(_SQL["links"]):
        ends.append(row.source_id)
        ends.append(row.target_id)
    found = np.array(ends, np.int64).reshape(-1, 2).T
    found = found[:, np.isin(found, numbers).all(axis=0)]
    return undirected(len(units), *order[np.searchsorted(numbers, found, sorter=order)])
