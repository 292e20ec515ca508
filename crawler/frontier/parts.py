"""The parts of a crawl on several databases, and the part that each registered domain belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from crawler.url import host_of, registered_domain


def part_of(domain: str, parts: int) -> int:
    """The number, from 0, of the part of ``parts`` that a registered domain belongs to (``docs/scale.md``).

    It is the number in the first eight octets of the SHA-256 of the domain, modulo ``parts``. A host without a
    registered domain, such as an IP address, stands for itself.
    """
    return int.from_bytes(sha256(domain.encode()).digest()[:8]) % parts


class Parts(NamedTuple):
    """The databases of a crawl, one for each part. ``own`` is the number of the part whose store this is."""

    dbs: tuple[str, ...]
    own: int

    def other_of(self, site: str) -> int | None:
        """The number of the other part that a site belongs to; ``None`` if it belongs to the own part."""
        return self.other_of_host(host_of(site))

    def other_of_host(self, host: str) -> int | None:
        """As :meth:`other_of`, for a host: a name or an address."""
        part = _part_of_host(host, len(self.dbs))
        return None if part == self.own else part

    @property
    def others(self) -> list[int]:
        """The numbers of the other parts."""
        return [number for number in range(len(self.dbs)) if number != self.own]


class PartState(NamedTuple):
    """The state of one part at one moment.

    ``has_ended``: its last run is over. ``has_work``: a group of it is ready at some time, or held, or offers are under
    way within it. ``received`` counts the offers of other parts that it has stored. ``seen_at`` is its last sign of
    life by its own clock. ``offers_to`` are the parts that have not received all its offers.
    """

    has_begun: bool
    has_ended: bool
    has_work: bool
    received: int
    seen_at: float | None
    offers_to: frozenset[int]


class PartTraffic(NamedTuple):
    """The offers that a part exchanges with another one: those ``waiting`` for it, and the number ``received`` from it.

    An offer that was received twice, because a process was killed before it could delete it, counts twice.
    """

    part: int
    db: str
    waiting: int
    received: int


def is_quiet(states: Mapping[int, PartState]) -> bool:
    """Whether no part that is at work has work, and no offer waits for one that is.

    One round of states proves nothing: the parts were asked one after the other, and an offer may have moved from one
    that was asked last to one that was asked first. Two rounds prove it if each part has the same ``received`` in both:
    only received offers give work to a part that has none, and no part received any between its two states. So when
    the first round was over, all parts were without work, and no offer was under way.
    """
    ended = {number for number, state in states.items() if state.has_ended}
    return all(
        state.has_begun and (state.has_ended or not state.has_work) and state.offers_to <= ended
        for state in states.values()
    )


@lru_cache(10_000)
def _part_of_host(host: str, parts: int) -> int:
    return part_of(registered_domain(host).removesuffix("."), parts)
