"""PageRank and counts of links over a graph of pages (pure).

L. Page, S. Brin, R. Motwani, T. Winograd: The PageRank Citation Ranking (1999), with a
random surfer who continues from a page without links to any page with equal probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

DAMPING = 0.85
#: The largest error of all ranks together (their L1 distance from the exact ranks). The ranks sum to 1.
MAX_ERROR = 1e-9

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Pages and the links between them. Pages are numbered from 0; the pages of a site are consecutive.

    ``in_links`` is a boolean matrix, pages × pages. Row ``i`` holds the pages that link to page ``i``.
    """

    url_ids: Counts
    """The number of each page in the store (``url_id`` in the views)."""
    site_ids: Counts
    """The number of the site of each page, ascending."""
    in_links: csr_array


@dataclass(frozen=True, slots=True)
class PageRanks:
    """One entry for each page. ``in_links`` counts the pages that link to it, ``in_sites`` the sites of these pages."""

    pagerank: Floats
    in_links: Counts
    in_sites: Counts


@dataclass(frozen=True, slots=True)
class SiteRanks:
    """One entry for each site. ``in_links`` counts linking pages of other sites, ``in_sites`` linking other sites."""

    site_ids: Counts
    pagerank: Floats
    pages: Counts
    in_links: Counts
    in_sites: Counts


def pagerank(in_links: csr_array) -> Floats:
    """The PageRank of each page, by power iteration to within :data:`MAX_ERROR`; the ranks sum to 1.

    ``in_links`` is as in :class:`LinkGraph`. A step multiplies the distance between two distributions by at most
    ``DAMPING``. So the size of the last step bounds the error, and the number of steps is bounded (142 at 0.85).
    """
    pages = in_links.shape[0]
    share = 1 / np.maximum(np.bincount(in_links.indices, minlength=pages), 1)
    votes = csr_array((share[in_links.indices], in_links.indices, in_links.indptr), shape=in_links.shape)
    rank = np.full(pages, 1 / max(pages, 1))
    step = 1.0
    while pages and step * DAMPING / (1 - DAMPING) > MAX_ERROR:
        before, rank = rank, DAMPING * (votes @ rank)
        rank += (1 - rank.sum()) / pages  # surfers who jump, and those at a page without links
        step = np.abs(rank - before).sum()
    return rank


def rank_pages(graph: LinkGraph) -> PageRanks:
    """The popularity of each page."""
    by_sites = graph.in_links @ _membership(graph.site_ids)
    return PageRanks(pagerank(graph.in_links), _entries(graph.in_links), _entries(by_sites))


def rank_sites(graph: LinkGraph, pageranks: Floats) -> SiteRanks:
    """The popularity of each site.

    The PageRank of a site is the sum of the ranks of its pages: the share of time that the surfer spends there. A
    PageRank over the graph of sites would need weights for links, and would describe the same surfer.
    """
    site_ids, site_of = np.unique(graph.site_ids, return_inverse=True)
    members = _membership(graph.site_ids)
    linking = csr_array(members.T @ graph.in_links)  # sites × pages
    linked = np.repeat(np.arange(len(site_ids)), _entries(linking))
    in_links = np.bincount(linked[linked != site_of[linking.indices]], minlength=len(site_ids))
    by_sites = csr_array(linking @ members)
    return SiteRanks(
        site_ids,
        members.T @ pageranks,
        np.bincount(site_of, minlength=len(site_ids)),
        in_links,
        _entries(by_sites) - by_sites.diagonal(),
    )


def _entries(matrix: csr_array) -> Counts:
    """The number of entries of each row."""
    entries: Counts = np.diff(matrix.indptr).astype(np.int64)
    return entries


def _membership(site_ids: Counts) -> csr_array:
    """The sites of the pages, as a boolean matrix, pages × sites."""
    sites, site_of = np.unique(site_ids, return_inverse=True)
    pages = len(site_ids)
    is_of = site_of.astype(np.int32), np.arange(pages + 1, dtype=np.int32)
    return csr_array((np.ones(pages, np.bool_), *is_of), shape=(pages, len(sites)))
