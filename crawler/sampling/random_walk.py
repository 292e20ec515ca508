"""Random walks on a graph without directions, and with what probability they come to each node (pure).

A walk that takes any of a node's edges alike comes to a node in proportion to its degree. Here it may also jump, to
any node alike, as if each node had as many edges more as nodes have on average, that lead anywhere: so it gets out of
every piece of the graph, and comes to a node in proportion to its degree and these (K. Avrachenkov, B. Ribeiro,
D. Towsley, Improving random walk estimation accuracy with uniform restarts, WAW 2010). It begins in this proportion as
well: no steps are needed to burn in. Estimates weigh by one over it (the re-weighted random walk: M. Gjoka, M. Kurant,
C. T. Butts, A. Markopoulou, Walking in Facebook, INFOCOM 2010). The steps of one walk are alike, walks are independent:
these are the clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawler.frontier.sample_design import key

#: Walks in one stratum, at most: enough clusters to see how skewed their sums are. (With 30, intervals for the size of
#: real pages held 90 times of 100.)
WALKS = 100


class Visit(NamedTuple):
    """A node that a walk came to. ``probability`` is that of each single visit being to it."""

    node: int
    walk: int
    probability: float


@dataclass(frozen=True, slots=True)
class UndirectedGraph:
    """``near[start[n]:start[n + 1]]`` are the neighbours of node ``n``, ascending, each once."""

    start: NDArray[np.int64]
    near: NDArray[np.int64]

    @classmethod
    def of(cls, nodes: int, one: ArrayLike, other: ArrayLike) -> UndirectedGraph:
        """The graph of so many nodes with an edge for each pair, whatever its direction and however often it is named;
        pairs of a node with itself are none."""
        a, b = np.asarray(one, np.int64), np.asarray(other, np.int64)
        apart = a != b
        a, b = a[apart], b[apart]
        pairs = np.unique(np.concatenate([a * nodes + b, b * nodes + a]))
        source, near = np.divmod(pairs, max(nodes, 1))
        return cls(np.concatenate([[0], np.cumsum(np.bincount(source, minlength=nodes))]), near)

    @property
    def weights(self) -> NDArray[np.int64]:
        """Of each node, its edges and its jumps."""
        degrees = np.diff(self.start)
        return degrees + max(1, round(float(degrees.mean())))


def walk(graph: UndirectedGraph, size: int, seed: int, stratum: str = "") -> Iterator[Visit]:
    """``size`` visits of a graph that is not empty, by up to :data:`WALKS` walks as equal in length as can be.

    The same arguments give the same visits. Name the nodes in an order that depends on nothing but the web.
    """
    weights = graph.weights
    upto = np.cumsum(weights)
    total, walks = int(upto[-1]), min(size, WALKS)
    for number in range(walks):
        for step in range(-(-(size - number) // walks)):
            name = f"{stratum} {number} {step}"
            chance = key(name, seed)
            if step == 0:
                node = int(np.searchsorted(upto, chance * total >> 64, side="right"))
            elif (place := int(graph.start[node]) + (chance * int(weights[node]) >> 64)) < graph.start[node + 1]:
                node = int(graph.near[place])
            else:
                node = key(f"{name} jump", seed) * len(weights) >> 64
            yield Visit(node, number, float(weights[node]) / total)
