"""Following what sites say of their main host, from mirror to mirror.

Source: ``docs/protocols.md``, section 2, "Collapsing".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Main:
    """The main site, and the chain of claims that leads there: from the site asked about to ``site``."""

    site: str
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cycle:
    """The claims lead nowhere: ``members`` name each other in a circle. ``chain`` is the way from the site asked.

    A chain longer than the limit ends like a circle: all of it are the members.
    """

    members: tuple[str, ...]
    chain: tuple[str, ...]


def main_of(site: str, claim: Callable[[str], str | None], limit: int = 16) -> Main | Cycle:
    """Follow ``claim`` (the main site that a site names; None where it names no other) for ``limit`` steps at most."""
    chain = [site]
    while (named := claim(chain[-1])) is not None:
        if named in chain:
            return Cycle(tuple(chain[chain.index(named) :]), tuple(chain))
        if len(chain) > limit:
            return Cycle(tuple(chain), tuple(chain))
        chain.append(named)
    return Main(chain[-1], tuple(chain))
