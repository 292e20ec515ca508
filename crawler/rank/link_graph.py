"""Reads the link graph of the crawl, in which one page stands for all its duplicates.

It is the graph of the view ``links_glued`` without the links that may not be followed, and with one page for each
cluster of near-duplicates. The view joins and sorts texts,
which takes minutes where numbers take seconds. A node is every page that was fetched, and every URL at an end of a
link. Memory: 20 bytes a URL and 8 a link while reading, 5 a link afterwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from crawler.cli.progress import Say
from crawler.errors import StoreError
from crawler.rank.pagerank import Counts, LinkGraph
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

Indices = NDArray[np.int32]

_MAX_STEPS = 16  # of a chain of mirrors and canonical URLs, as in the view
_LINKS_AT_ONCE = 1 << 18

_SQL = load_statements("crawler.rank")


async def read_graph(store: Store, say: Say = lambda what, done=0, total=None: None) -> LinkGraph:
    """The link graph of a store; ``say`` gets the progress.

    Raises :class:`crawler.errors.StoreError` if the store cannot be read.
    """
    counts = await store.counts()
    say("URLs read")
    numbers, of_site, targets, fetched = array("q"), array("q"), array("q"), bytearray()
    async for row in store.rows(_SQL["urls"]):  # ascending by number
        numbers.append(row.url_id)
        of_site.append(row.site_id)
        targets.append(row.target_id or 0)
        fetched.append(row.is_page)
    ids, sites = np.asarray(numbers, np.int64), np.asarray(of_site, np.int64)
    node = _chain_ends(ids, np.asarray(targets, np.int64))
    await _map_mirrors(store, ids, node, sites)
    await _map_near_duplicates(store, ids, node)
    source, target = await _read_links(store, ids, lambda done: say("links read", done, counts.links))
    is_page = np.bincount(node[np.array(fetched, np.bool_)], minlength=len(ids)) > 0
    for ends in (source, target):
        is_page[node[ends]] = True
    pages = np.flatnonzero(is_page)
    pages = pages[np.argsort(sites[pages], kind="stable")]
    index = np.zeros(len(ids), np.int32)
    index[pages] = np.arange(len(pages), dtype=np.int32)
    index = index[node]
    source, target = index[source], index[target]
    # The boolean matrix counts two links between the same two nodes once.
    links = coo_array((np.ones(len(source), np.bool_), (target, source)), shape=(len(pages), len(pages)))
    return LinkGraph(ids[pages], sites[pages], csr_array(links))


def _chain_ends(ids: Counts, targets: Counts) -> Indices:
    """The index of the URL that stands for each URL: the end of its chain of targets, or itself if that is a circle.

    A target of 0 is none.
    """
    own = np.arange(len(ids), dtype=np.int32)
    is_end = targets == 0
    step = own.copy()
    step[~is_end] = _indices(ids, targets[~is_end])
    end = own
    for _ in range(_MAX_STEPS):
        end = step[end]
    return np.where(is_end[end], end, own)


async def _map_mirrors(store: Store, ids: Counts, node: Indices, sites: Counts) -> None:
    """Map the URLs of mirrors to those of their main sites. Changes ``node`` and ``sites`` in place."""
    mirrored, mains, stand_ins = array("q"), array("q"), array("q")
    async for row in store.rows(_SQL["mirrored_urls"]):
        mirrored.append(row.url_id)
        mains.append(row.main_site_id)
        stand_ins.append(row.stand_in_id)
    stands_for = np.arange(len(ids), dtype=np.int32)
    stand_in = _indices(ids, np.array(stand_ins, np.int64))
    stands_for[_indices(ids, np.array(mirrored, np.int64))] = stand_in
    sites[stand_in] = np.array(mains, np.int64)
    node[:] = stands_for[node]


async def _map_near_duplicates(store: Store, ids: Counts, node: Indices) -> None:
    """Map the pages of a cluster to the page that represents it. Changes ``node`` in place.

    A page with a canonical URL that stands for it already stays with that one.
    """
    pages, representatives = array("q"), array("q")
    async for row in store.rows(_SQL["near_duplicates"]):
        pages.append(row.url_id)
        representatives.append(row.cluster_id)
    page, stand_in = (_indices(ids, np.array(numbers, np.int64)) for numbers in (pages, representatives))
    stands_for = np.arange(len(ids), dtype=np.int32)
    alone = node[page] == page
    stands_for[page[alone]] = node[stand_in[alone]]
    node[:] = stands_for[node]


async def _read_links(store: Store, ids: Counts, on_links: Callable[[int], None]) -> tuple[Indices, Indices]:
    """The indices in ``ids`` of the source and of the target of each link; ``on_links`` gets the links read so far."""
    sources, targets = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    source_ids, counts, target_texts, waiting, done = array("q"), array("q"), list[str](), 0, 0

    def convert() -> None:
        sources.append(np.repeat(_indices(ids, np.array(source_ids, np.int64)), np.array(counts, np.int64)))
        targets.append(_indices(ids, np.fromstring(",".join(target_texts), np.int64, sep=",")))
        del source_ids[:], counts[:], target_texts[:]

    async for row in store.rows(_SQL["links"]):
        source_ids.append(row.source_id)
        counts.append(row.links)
        target_texts.append(row.targets)
        waiting += row.links
        if waiting >= _LINKS_AT_ONCE:
            convert()
            done, waiting = done + waiting, 0
            on_links(done)
    if waiting:
        convert()
    return np.concatenate(sources), np.concatenate(targets)


def _indices(ids: Counts, numbers: Counts) -> Indices:
    """The indices of ``numbers`` in ``ids``. Raises :class:`StoreError` if ``ids`` lacks one."""
    indices = np.searchsorted(ids, numbers)
    if len(numbers) and not (indices.max() < len(ids) and np.array_equal(ids[indices], numbers)):
        raise StoreError("the store has links to URLs that it does not have: it is damaged; restore it, or crawl again")
    return indices.astype(np.int32)
