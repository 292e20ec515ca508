"""Following what sites say of their main host, from mirror to mirror.

Source: ``docs/protocols.md``, section 2, "Collapsing".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

#: How far a chain of claims is followed.
MOST_STEPS = 16


@dataclass(frozen=True, slots=True)
class Main:
    """The main site, to which the claims lead."""

    site: str


@dataclass(frozen=True, slots=True)
class Cycle:
    """The claims lead nowhere: ``members`` name each other in a circle.

    A chain longer than :data:`MOST_STEPS` ends like a circle: all of it are the members.
    """

    members: tuple[str, ...]


#: Pages alike below which nothing is said: two sites may share a front page and an imprint.
MIN_ALIKE = 10
_LEAST_SHARE = 0.9
_Z95 = 1.645  # one-sided


@dataclass(frozen=True, slots=True)
class Alike:
    """Two sites with the same pages: of ``sample`` paths that both have, at least the share ``confidence`` is alike."""

    sample: int
    confidence: float


def judge_alike(*, alike: int, sample: int, pages: int) -> Alike | None:
    """Whether ``alike`` same bodies among ``sample`` common paths make two sites mirrors, on how sure a footing.

    Sites that share a part (the same manual, say) are none: of the ``pages`` of the smaller one, half must be common.

    The sample must be large enough that, with 95 % confidence, nine in ten of all their paths are alike: the
    lower end of Wilson's interval (1927), which also holds where all of a small sample are alike.
    """
    if alike < MIN_ALIKE or 2 * sample < pages:
        return None
    share, z2 = alike / sample, _Z95 * _Z95
    spread = _Z95 * math.sqrt(share * (1 - share) / sample + z2 / (4 * sample * sample))
    least = (share + z2 / (2 * sample) - spread) / (1 + z2 / sample)
    return Alike(sample, round(least, 4)) if least >= _LEAST_SHARE else None


def main_of(site: str, claim: Callable[[str], str | None]) -> Main | Cycle:
    """Follow ``claim`` (the main site that a site names; None where it names no other)."""
    chain = [site]
    while (named := claim(chain[-1])) is not None:
        if named in chain:
            return Cycle(tuple(chain[chain.index(named) :]))
        if len(chain) > MOST_STEPS:
            return Cycle(tuple(chain))
        chain.append(named)
    return Main(chain[-1])
