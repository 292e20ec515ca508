"""The glued graph, read from the store by numbers.

The same graph as the view ``links_glued`` without the links that may not be followed; the view puts texts together
and sorts them, which takes minutes where this takes seconds. A page is whatever a link leads from or to, and every
page that was fetched. Memory: 12 bytes a URL and 8 a link while it is read, 5 a link afterwards.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from crawler.errors import StoreError
from crawler.rank.pagerank import Counts, LinkGraph
from crawler.store.protocols import Store

Indices = NDArray[np.int32]

_MOST_STEPS = 16  # of a chain of mirrors and canonical URLs, as in the view
_LINKS_AT_ONCE = 1 << 18
_SITE_SHIFT = 39  # a URL's number has its site's above so many bits of hash

_URLS = """
SELECT id, CASE WHEN state IN ('fetched', 'excluded') THEN target END, state = 'fetched' AND kind = 'page'
FROM url ORDER BY id"""

# One row a page and its targets as one text: thirty times fewer rows to hand over than links.
_LINKS = "SELECT source, count(*), group_concat(target) FROM link WHERE follow = 1 GROUP BY source"

# The URLs of mirrors that are folded by their Host line alone: (URL, main site, the URL that stands for it). That is
# the main host's URL with the same path; where the crawl has none, the first of its mirrors' that have the path. The
# bits of equal paths are equal but for a few places, by which a collision put them off.
_FOLDED = """
WITH folded (site, main) AS MATERIALIZED (
  SELECT s.id, t.id FROM mirrors m JOIN site s ON s.name = m.site JOIN site t ON t.name = m.leads_to
  WHERE EXISTS (SELECT 1 FROM url u WHERE u.id BETWEEN s.id << 39 AND (s.id + 1 << 39) - 1
                AND u.state = 'excluded' AND u.target IS NOT NULL)),
behind AS (
  SELECT u.id, u.path, f.main, (f.main << 39) + (u.id & (1 << 39) - 1) AS near
  FROM folded f JOIN url u ON u.id BETWEEN f.site << 39 AND (f.site + 1 << 39) - 1)
SELECT b.id, b.main, coalesce(m.id, min(b.id) OVER (PARTITION BY b.main, b.path))
FROM behind b LEFT JOIN url m ON m.id BETWEEN b.near - 8 AND b.near + 8 AND m.path = b.path AND m.id >> 39 = b.main"""


async def read_graph(store: Store) -> LinkGraph:
    """The glued graph of a store. Raises :class:`crawler.errors.StoreError` where the store cannot be read."""
    ids, targets, is_page = await _read_urls(store)
    sites = ids >> _SITE_SHIFT
    node = _ends(ids, targets)
    del targets
    await _fold(store, ids, node, sites)
    source, target = await _read_links(store, ids)
    is_page = np.bincount(node[is_page], minlength=len(ids)) > 0
    for ends in (source, target):
        is_page[node[ends]] = True
    pages = np.flatnonzero(is_page)
    pages = pages[np.argsort(sites[pages], kind="stable")]
    index = np.zeros(len(ids), np.int32)
    index[pages] = np.arange(len(pages), dtype=np.int32)
    index = index[node]
    source, target = index[source], index[target]
    # Two links that have become one are one, as are two that stand in the store twice.
    links = coo_array((np.ones(len(source), np.bool_), (target, source)), shape=(len(pages), len(pages)))
    return LinkGraph(ids[pages], sites[pages], csr_array(links))


async def _read_urls(store: Store) -> tuple[Counts, Counts, NDArray[np.bool_]]:
    """Of every URL, ascending: its number, that of its target (0: none), and whether it is a page."""
    ids, targets, is_page = array("q"), array("q"), bytearray()
    async for number, target, fetched in store.rows(_URLS):
        ids.append(number)
        targets.append(target or 0)
        is_page.append(fetched)
    return np.array(ids, np.int64), np.array(targets, np.int64), np.array(is_page, np.bool_)


def _ends(ids: Counts, targets: Counts) -> Indices:
    """For each URL the one that stands for it: the end of its chain of targets, or itself where that goes round."""
    own = np.arange(len(ids), dtype=np.int32)
    ends_there = targets == 0
    step = own.copy()
    step[~ends_there] = _places(ids, targets[~ends_there])
    end = own
    for _ in range(_MOST_STEPS):
        end = step[end]
    return np.where(ends_there[end], end, own)


async def _fold(store: Store, ids: Counts, node: Indices, sites: Counts) -> None:
    """Let a mirror's URLs stand for its main host's: changes ``node`` and ``sites`` in place."""
    folded, mains, stand_ins = array("q"), array("q"), array("q")
    async for number, main, stand_in in store.rows(_FOLDED):
        folded.append(number)
        mains.append(main)
        stand_ins.append(stand_in)
    stands_for = np.arange(len(ids), dtype=np.int32)
    there = _places(ids, np.array(stand_ins, np.int64))
    stands_for[_places(ids, np.array(folded, np.int64))] = there
    sites[there] = np.array(mains, np.int64)
    node[:] = stands_for[node]


async def _read_links(store: Store, ids: Counts) -> tuple[Indices, Indices]:
    """The places of each link's two URLs among ``ids``."""
    sources, targets = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    numbers, counts, texts, waiting = array("q"), array("q"), list[str](), 0

    def take() -> None:
        sources.append(np.repeat(_places(ids, np.array(numbers, np.int64)), np.array(counts, np.int64)))
        targets.append(_places(ids, np.fromstring(",".join(texts), np.int64, sep=",")))
        del numbers[:], counts[:], texts[:]

    async for number, count, text in store.rows(_LINKS):
        numbers.append(number)
        counts.append(count)
        texts.append(text)
        waiting += count
        if waiting >= _LINKS_AT_ONCE:
            take()
            waiting = 0
    if waiting:
        take()
    return np.concatenate(sources), np.concatenate(targets)


def _places(ids: Counts, numbers: Counts) -> Indices:
    """Where the numbers stand among ``ids``."""
    places = np.searchsorted(ids, numbers)
    if len(numbers) and not (places.max() < len(ids) and np.array_equal(ids[places], numbers)):
        raise StoreError("the store has links to URLs that it does not have: it is damaged; restore it, or crawl anew")
    return places.astype(np.int32)
