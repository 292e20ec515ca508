"""PageRank and the counts of links, against networkx and by plain counting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from crawler.rank.pagerank import LinkGraph, pagerank, rank_pages, rank_sites

#: Made by the test that needs them, from the module networkx, which takes a fifth of a second to import.
GRAPHS: dict[str, Callable[[Any], Any]] = {
    "one page": lambda nx: nx.empty_graph(1, nx.DiGraph),
    "no links": lambda nx: nx.empty_graph(5, nx.DiGraph),
    "a page that links to itself alone": lambda nx: nx.DiGraph([(0, 0), (1, 0), (2, 1)]),
    "a ring": lambda nx: nx.cycle_graph(7, nx.DiGraph),
    "a star": lambda nx: nx.DiGraph([(n, 0) for n in range(1, 30)]),
    "a chain that ends": lambda nx: nx.path_graph(40, nx.DiGraph),
    "two halves": lambda nx: nx.DiGraph([(0, 1), (1, 0), (2, 3), (3, 2), (4, 2)]),
    "all to all": lambda nx: nx.complete_graph(12, nx.DiGraph),
    "the karate club": lambda nx: nx.karate_club_graph().to_directed(),
    "thin chance": lambda nx: nx.gnp_random_graph(300, 0.003, seed=1, directed=True),
    "dense chance": lambda nx: nx.gnp_random_graph(200, 0.2, seed=2, directed=True),
    "a scale-free web": lambda nx: nx.DiGraph(nx.scale_free_graph(1000, seed=3)),
}


def matrix(size: int, links: Iterable[tuple[int, int]]) -> csr_array:
    source, target = np.array(sorted(links), np.int32).reshape(-1, 2).T
    return csr_array(coo_array((np.ones(len(source), np.bool_), (target, source)), shape=(size, size)))


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_networkx(name: str) -> None:
    import networkx

    graph = GRAPHS[name](networkx)
    truth = networkx.pagerank(graph, alpha=0.85, max_iter=1000, tol=1e-13, weight=None)
    ranks = pagerank(matrix(len(graph), graph.edges))
    assert ranks == pytest.approx([truth[n] for n in range(len(graph))], abs=2e-9, rel=0)
    assert ranks.sum() == pytest.approx(1)


def test_a_graph_without_pages_has_no_ranks() -> None:
    empty = LinkGraph(np.empty(0, np.int64), np.empty(0, np.int64), matrix(0, []))
    assert rank_pages(empty).pagerank.tolist() == []
    assert rank_sites(empty, np.empty(0)).site_ids.tolist() == []


@pytest.mark.parametrize("seed", range(5))
def test_linking_pages_and_sites_are_counted_once_each(seed: int) -> None:
    chance = np.random.default_rng(seed)
    size = 60
    site_ids = np.sort(chance.integers(1, 9, size))
    links = {(int(s), int(t)) for s, t in chance.integers(0, size, (200, 2))}
    graph = LinkGraph(np.arange(size) + 100, site_ids, matrix(size, links))
    pages = rank_pages(graph)
    linking = [{s for s, t in links if t == page} for page in range(size)]
    assert pages.in_links.tolist() == [len(sources) for sources in linking]
    assert pages.in_sites.tolist() == [len({site_ids[s] for s in sources}) for sources in linking]
    sites = rank_sites(graph, pages.pagerank)
    for n, site in enumerate(sites.site_ids):
        foreign = {s for s, t in links if site_ids[t] == site != site_ids[s]}
        assert sites.in_links[n] == len(foreign)
        assert sites.in_sites[n] == len({site_ids[s] for s in foreign})
        assert sites.pages[n] == np.count_nonzero(site_ids == site)
        assert sites.pagerank[n] == pytest.approx(pages.pagerank[site_ids == site].sum())
    assert sites.pagerank.sum() == pytest.approx(1)
