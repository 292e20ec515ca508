"""Random walks on an undirected graph, and the probability with which they visit each node (pure).

A walk that follows each edge of a node with equal probability visits a node in proportion to its degree. Here a walk
may also jump to any node, as if each node had additional edges, as many as the mean degree, to random nodes. So the
walk can leave every component of the graph, and visits a node in proportion to its degree plus the mean degree (K.
Avrachenkov, B. Ribeiro, D. Towsley, Improving random walk estimation accuracy with uniform restarts, WAW 2010). The
first node is drawn from the same distribution, so no burn-in is needed. Estimates weight a visit by the inverse of its
probability (the re-weighted random walk: M. Gjoka, M. Kurant, C. T. Butts, A. Markopoulou, Walking in Facebook, INFOCOM
2010). The steps of a walk are correlated while walks are independent, so the walks are the clusters of the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from crawler.frontier.sample_design import key

#: The largest number of walks in one stratum. It makes enough clusters to estimate the skewness of their sums. With 30
#: walks, 90 of 100 intervals for the size of real pages contained the true value.
WALKS = 100


class WalkStep(NamedTuple):
    """A node that a walk visited. ``probability`` is the probability that any given step visits it."""

    node: int
    walk: int
    probability: float


def undirected(nodes: int, one: ArrayLike, other: ArrayLike) -> csr_array:
    """The adjacency of a graph with an edge between ``one[i]`` and ``other[i]`` for each ``i``, without loops."""
    a, b = np.asarray(one, np.int64), np.asarray(other, np.int64)
    apart = a != b
    a, b = a[apart], b[apart]
    ends = np.concatenate([a, b]), np.concatenate([b, a])
    return csr_array((np.ones(len(ends[0]), bool), ends), shape=(nodes, nodes))


def weights_of(graph: csr_array) -> NDArray[np.int64]:
    """The weight of each node: its edges and its jumps."""
    degrees = np.diff(graph.indptr).astype(np.int64)
    weights: NDArray[np.int64] = degrees + max(1, round(float(degrees.mean())))
    return weights


def walk(graph: csr_array, size: int, seed: int, stratum: str = "") -> Iterator[WalkStep]:
    """``size`` steps on a non-empty graph, in up to :data:`WALKS` walks whose lengths differ by at most one.

    The same arguments give the same steps. So number the nodes in an order that depends on the web alone.
    """
    graph.sort_indices()
    weights = weights_of(graph)
    upto = np.cumsum(weights)
    total, walks = int(upto[-1]), min(size, WALKS)
    for number in range(walks):
        for step in range(-(-(size - number) // walks)):
            name = f"{stratum} {number} {step}"
            chance = key(name, seed)
            if step == 0:
                node = int(np.searchsorted(upto, chance * total >> 64, side="right"))
            elif (place := int(graph.indptr[node]) + (chance * int(weights[node]) >> 64)) < graph.indptr[node + 1]:
                node = int(graph.indices[place])
            else:
                node = key(f"{name} jump", seed) * len(weights) >> 64
            yield WalkStep(node, number, float(weights[node]) / total)
