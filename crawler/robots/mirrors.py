"""Resolve a site's main site: follow the claims of mirrors, and recognise mirrors by equal pages.

Source: ``docs/protocols.md``, section 2, "Collapsing".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

#: The longest chain of claims that is followed.
MOST_STEPS = 16


@dataclass(frozen=True, slots=True)
class Main:
    """The main site at the end of the chain of claims."""

    site: str


@dataclass(frozen=True, slots=True)
class Cycle:
    """``members`` name each other in a circle, so none of them is the main site.

    A chain longer than :data:`MOST_STEPS` counts as a circle of all its sites.
    """

    members: tuple[str, ...]


class Contradiction(StrEnum):
    """Why a site that a ``Host`` line names is no main site."""

    REDIRECTS = "redirects"
    UNREACHABLE = "unreachable"
    NO_PAGE = "no_page"
    OTHER_DOMAIN = "other_domain"

    @property
    def meaning(self) -> str:
        """The rest of a sentence that begins with the named site."""
        return _CONTRADICTIONS[self]


_CONTRADICTIONS = {
    Contradiction.REDIRECTS: "redirects to this site",
    Contradiction.UNREACHABLE: "cannot be reached",
    Contradiction.NO_PAGE: "has brought no page",
    Contradiction.OTHER_DOMAIN: "has another registered domain and does not say the same of itself",
}


#: The least number of equal pages for a judgement: two unrelated sites may share a front page and an imprint.
MIN_ALIKE = 10
_LEAST_SHARE = 0.9
_Z95 = 1.645  # one-sided


@dataclass(frozen=True, slots=True)
class Alike:
    """Two sites with equal pages: of ``sample`` common paths, at least the share ``confidence`` has equal bodies."""

    sample: int
    confidence: float


def judge_alike(*, alike: int, sample: int, pages: int) -> Alike | None:
    """Judge whether two sites with ``alike`` equal bodies among ``sample`` common paths are mirrors; None if not.

    Sites that share only a part, such as a manual, are no mirrors: at least half of the ``pages`` of the smaller site
    must be common.

    Nine in ten of all common paths must have equal bodies with 95 % confidence, by the lower end of Wilson's interval
    (1927). The interval also holds if all pages of a small sample are equal.
    """
    if alike < MIN_ALIKE or 2 * sample < pages:
        return None
    share, z2 = alike / sample, _Z95 * _Z95
    spread = _Z95 * math.sqrt(share * (1 - share) / sample + z2 / (4 * sample * sample))
    least = (share + z2 / (2 * sample) - spread) / (1 + z2 / sample)
    return Alike(sample, round(least, 4)) if least >= _LEAST_SHARE else None


def main_of(site: str, claim: Callable[[str], str | None]) -> Main | Cycle:
    """Follow ``claim`` from ``site``. ``claim`` returns the main site that a site names, None if it names no other."""
    chain = [site]
    while (named := claim(chain[-1])) is not None:
        if named in chain:
            return Cycle(tuple(chain[chain.index(named) :]))
        if len(chain) > MOST_STEPS:
            return Cycle(tuple(chain))
        chain.append(named)
    return Main(chain[-1])
