"""All behaviours, by family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from tests.hostile import coding, dns, framing, html, redirects, robots, rup, sitemaps, tls, traps, urls, wire
from tests.hostile.attacks import SCENARIOS
from tests.hostile.behaviour import Behaviour
from tests.hostile.healthy import FEW_PAGES, SITES, healthy

_MODULES = (wire, framing, coding, html, urls, redirects, robots, rup, sitemaps, traps, tls, dns)
FAMILIES: Mapping[str, tuple[Behaviour, ...]] = MappingProxyType(
    {module.__name__.rpartition(".")[2]: module.BEHAVIOURS for module in _MODULES}
)
ALL = tuple(one for family in FAMILIES.values() for one in family)
HEALTHY = tuple(healthy(number) for number in range(SITES))
#: The healthy sites of the short form.
SMALL = (HEALTHY[0], *(healthy(number, FEW_PAGES) for number in range(1, SITES)))
assert len({one.name for one in (*ALL, *HEALTHY)}) == len(ALL) + len(HEALTHY), "a name stands for two behaviours"


def named(names: Sequence[str]) -> tuple[Behaviour, ...]:
    """The behaviours, healthy sites and attackers of these names. Raises :class:`KeyError` for an unknown name."""
    attackers = (one for zone in SCENARIOS.values() for one in zone)
    known = {one.name: one for one in (*ALL, *HEALTHY, *SMALL, *attackers)}
    return tuple(known[name] for name in names)


def chosen(names: Iterable[str], *, quick: bool) -> tuple[Behaviour, ...]:
    """The behaviours whose name or family is in ``names``; without names, all, or those of the short form."""
    wanted = set(names)
    if wanted:
        return tuple(one for family, ones in FAMILIES.items() for one in ones if {family, one.name} & wanted)
    return tuple(one for one in ALL if one.quick or not quick)
