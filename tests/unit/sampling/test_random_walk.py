"""Random walks come to a node as often as they say, and what they estimate is true 95 times of 100."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crawler.sampling.estimators import Estimate, Sample
from crawler.sampling.random_walk import WalkStep, undirected, walk, weights_of
from tests.binomial import require_coverage

if TYPE_CHECKING:
    import networkx


def graph_of(web: networkx.Graph) -> csr_array:
    edges = np.array(web.edges, np.int64).reshape(-1, 2)
    return undirected(len(web), edges[:, 0], edges[:, 1])


@cache
def webs() -> dict[str, networkx.Graph]:
    """A web of one piece, one of many, and one of directed links. Some pages of the others have no link to them."""
    import networkx  # takes a fifth of a second

    return {
        "scale-free": networkx.barabasi_albert_graph(400, 3, seed=5),
        "in pieces": networkx.gnm_random_graph(400, 500, seed=5),
        "with directions": networkx.DiGraph(networkx.gnp_random_graph(300, 0.02, seed=5, directed=True)),
    }


WEBS = ("scale-free", "in pieces", "with directions")


def test_an_edge_counts_once_whatever_its_direction() -> None:
    graph = undirected(4, [0, 1, 1, 2, 2], [1, 0, 2, 2, 1])
    assert weights_of(graph).tolist() == [2, 3, 2, 1]
    assert graph.toarray().astype(int).tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("size", [1, 99, 101, 300])
def test_as_many_visits_as_asked_for_by_a_hundred_walks_at_most(size: int) -> None:
    graph = graph_of(webs()["in pieces"])
    visits = list(walk(graph, size, seed=3))
    assert visits == list(walk(graph, size, seed=3))
    assert visits != list(walk(graph, size, seed=4))
    lengths = np.bincount([visit.walk for visit in visits])
    assert (lengths.sum(), len(lengths)) == (size, min(size, 100))
    assert lengths.max() - lengths.min() <= 1


@pytest.mark.parametrize("name", WEBS)
def test_a_walk_follows_edges_or_jumps(name: str) -> None:
    web = webs()[name]
    visits = list(walk(graph_of(web), 6000, seed=1))
    steps = [(a.node, b.node) for a, b in pairwise(visits) if a.walk == b.walk]
    followed = sum(web.has_edge(a, b) or web.has_edge(b, a) for a, b in steps)
    assert 0.45 < followed / len(steps) < 0.75, "half of the steps on average, more where there are many edges"


@pytest.mark.slow
def test_each_step_is_distributed_as_it_says() -> None:
    """The first already, and in a graph of pieces."""
    graph = undirected(7, [0, 0, 0, 4], [1, 2, 3, 5])
    counts, said = np.zeros((5, 7)), np.zeros(7)
    for seed in range(300):
        for number, visit in enumerate(walk(graph, 500, seed)):
            counts[number % 5, visit.node] += 1
            said[visit.node] = visit.probability
    assert said.sum() == pytest.approx(1)
    for step in counts:
        assert step / step.sum() == pytest.approx(said, abs=0.012)


def held(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


def sample_of(visits: list[WalkStep]) -> tuple[Sample, NDArray[np.int64]]:
    sample = Sample([visit.probability for visit in visits], clusters=[visit.walk for visit in visits])
    return sample, np.array([visit.node for visit in visits])


@pytest.mark.parametrize("size", [300, pytest.param(1500, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [WEBS[0], *(pytest.param(name, marks=pytest.mark.long) for name in WEBS[1:])])
def test_estimates_from_walks(name: str, size: int) -> None:
    web = webs()[name]
    graph = graph_of(web)
    links = np.array([web.degree(n) for n in range(len(web))], float)
    bytes_ = np.random.default_rng(1).lognormal(9 + 0.05 * links, 0.8)  # a page with many links is large
    is_odd, is_rare = np.arange(len(web)) % 3 == 0, np.arange(len(web)) % 30 == 0

    def run(seed: int) -> dict[str, bool]:
        sample, rows = sample_of(list(walk(graph, size, seed)))
        return {
            "links": held(sample.mean(links[rows]), links.mean()),
            "bytes": held(sample.mean(bytes_[rows]), bytes_.mean()),
            "a third": held(sample.share(is_odd[rows]), is_odd.mean()),
            "a thirtieth": held(sample.share(is_rare[rows]), is_rare.mean()),
        }

    require_coverage(run)


@pytest.mark.parametrize("size", [20, pytest.param(60, marks=pytest.mark.long)])
def test_estimates_from_walks_within_each_site(size: int) -> None:
    """Sites of very different size, each walked on for itself."""
    import networkx

    chance = np.random.default_rng(2)
    sites = [networkx.barabasi_albert_graph(n, 2, seed=n) for n in (10, 30, 30, 60, 90, 200)]
    graphs = [graph_of(site) for site in sites]
    first = np.cumsum([0, *map(len, sites)])
    links = np.array([site.degree(n) for site in sites for n in range(len(site))], float)
    is_english = chance.random(first[-1]) < np.repeat(chance.random(len(sites)), [len(site) for site in sites])

    def run(seed: int) -> dict[str, bool]:
        visits = [(n, visit) for n, graph in enumerate(graphs) for visit in walk(graph, size, seed, str(n))]
        sample = Sample(
            [visit.probability for _, visit in visits],
            strata=[n for n, _ in visits],
            clusters=[1000 * n + visit.walk for n, visit in visits],
        )
        rows = np.array([first[n] + visit.node for n, visit in visits])
        return {
            "links": held(sample.mean(links[rows]), links.mean()),
            "in English": held(sample.share(is_english[rows]), is_english.mean()),
        }

    require_coverage(run)
