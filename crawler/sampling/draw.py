"""Draws a sample from what the crawl knows, into the store."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from crawler.frontier.sample_design import Drawn, Method, Per, Sampler, SampleSettings
from crawler.sampling.random_walk import UndirectedGraph, walk
from crawler.store.protocols import SampleDraw, SampleRow, Store

# Every page URL that the crawl asked for, or would have but for robots.txt, a mirror's Host line, or its address, and
# those held back: (deepest, held from, pages allowed per site). Of a site that has had its pages while more were
# queued, only what was asked for until then.
_FRAME = """
WITH cut (site_id) AS MATERIALIZED (
  SELECT s.id FROM site s WHERE s.fetched >= ?3 AND EXISTS (SELECT 1 FROM frontier f WHERE f.site_id = s.id))
SELECT u.id, s.name, s.name || u.path, u.id >> 39 IN (SELECT site_id FROM cut)
FROM url u JOIN site s ON s.id = u.id >> 39
WHERE u.kind = 'page' AND u.depth <= ?1 AND (
  u.state IN ('fetched', 'redirected', 'failed')
  OR (u.state = 'excluded' AND u.reason_code IN ('robots', 'mirror', 'mirror_cycle', 'type', 'address'))
  OR (u.state = 'queued' AND u.depth >= ?2 AND u.id >> 39 NOT IN (SELECT site_id FROM cut)))"""

_ENDLESS = 1 << 62


class Unit(NamedTuple):
    """A URL of the frame."""

    number: int
    site: str
    url: str


async def draw(
    store: Store, settings: SampleSettings, max_depth: int | None, pages_per_site: int | None, now: float
) -> None:
    """Draw the sample of all that is known, in place of the one in the store."""
    assert settings.size is not None
    deepest = _ENDLESS if max_depth is None else max_depth
    limits = (deepest, deepest, _ENDLESS if pages_per_site is None else pages_per_site)
    frame, cut, sampler = 0, set[str](), Sampler(settings.size, settings.seed)
    walking, units, numbers = settings.method is Method.RANDOM_WALK, list[Unit](), dict[str, int]()
    async for number, site, url, is_cut in store.rows(_FRAME, limits):
        frame += 1
        if is_cut:
            cut.add(site)
        if walking:
            units.append(Unit(number, site, url))
        else:
            sampler.offer(url, site if settings.per is Per.SITE else "")
    if walking:
        rows = list(await _walked(store, units, settings))
    else:
        drawn = list(sampler.drawn())
        numbers = await _numbers(store, drawn)
        rows = [(numbers[each.url], each.stratum, None, each.probability) for each in drawn]
    made = _made(settings, now, frame, len(cut), follows=max_depth == 0)
    await store.replace_sample(made, rows, max_depth, pages_per_site)


async def keep_drawn(
    store: Store, drawn: Iterable[Drawn], settings: SampleSettings, listed: int, pages_per_site: int | None, now: float
) -> None:
    """Put a sample of a list of ``listed`` seeds into the store, which knows all that were drawn."""
    drawn = list(drawn)
    numbers = await _numbers(store, drawn)
    rows: list[SampleRow] = [(numbers[each.url], each.stratum, None, each.probability) for each in drawn]
    await store.replace_sample(_made(settings, now, listed, 0, follows=True), rows, None, pages_per_site)


def _made(settings: SampleSettings, now: float, frame: int, cut_sites: int, *, follows: bool) -> SampleDraw:
    assert settings.size is not None
    return SampleDraw(
        settings.method.value, settings.per.value, settings.size, settings.seed, now, frame, cut_sites, follows
    )


async def _numbers(store: Store, drawn: Iterable[Drawn]) -> dict[str, int]:
    numbers = {}
    for each in drawn:
        number = await store.find(each.url)
        assert number is not None, "what was drawn is in the store"
        numbers[each.url] = number
    return numbers


async def _walked(store: Store, units: list[Unit], settings: SampleSettings) -> Iterator[SampleRow]:
    """Walks on the links between the URLs of the frame: on all, or within each site."""
    assert settings.size is not None
    units.sort(key=lambda unit: unit.url)  # numbers depend on the order in which sites were met
    links = await _links(store, units)
    if settings.per is Per.CRAWL:
        return _visits({"": range(len(units))} if units else {}, units, links, settings)
    sites: defaultdict[str, list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        sites[unit.site].append(place)
    return _visits(dict(sorted(sites.items())), units, links, settings)


def _visits(
    strata: Mapping[str, Iterable[int]], units: list[Unit], links: np.ndarray, settings: SampleSettings
) -> Iterator[SampleRow]:
    assert settings.size is not None
    place = np.zeros(len(units), np.int64)  # within its stratum
    stratum = np.zeros(len(units), np.int64)
    for n, members in enumerate(strata.values()):
        rows = np.fromiter(members, np.int64)
        place[rows], stratum[rows] = np.arange(len(rows)), n
    links = links[:, stratum[links[0]] == stratum[links[1]]]
    links = links[:, np.argsort(stratum[links[0]], kind="stable")]
    bounds = np.searchsorted(stratum[links[0]], np.arange(len(strata) + 1))
    for n, (name, members) in enumerate(strata.items()):
        rows = np.fromiter(members, np.int64)
        own = place[links[:, bounds[n] : bounds[n + 1]]]
        for visit in walk(UndirectedGraph.of(len(rows), own[0], own[1]), settings.size, settings.seed, name):
            yield units[rows[visit.node]].number, name, visit.walk, visit.probability


async def _links(store: Store, units: list[Unit]) -> np.ndarray:
    """The places among ``units`` of the two ends of each link, one row for sources and one for targets."""
    numbers = np.array([unit.number for unit in units], np.int64)
    order = np.argsort(numbers)
    ends = array("q")
    async for source, target in store.rows("SELECT source, target FROM link"):
        ends.append(source)
        ends.append(target)
    found = np.array(ends, np.int64).reshape(-1, 2).T
    if not len(numbers):
        return np.zeros((2, 0), np.int64)
    near = np.minimum(np.searchsorted(numbers[order], found), len(numbers) - 1)
    known = (numbers[order][near] == found).all(axis=0)
    return order[near[:, known]]
