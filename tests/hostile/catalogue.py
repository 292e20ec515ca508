"""All behaviours, by family, and those that the crawler does not stand yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from tests.hostile import dns, framing, wire
from tests.hostile.behaviour import Behaviour
from tests.hostile.healthy import SITES, healthy

FAMILIES: Mapping[str, tuple[Behaviour, ...]] = MappingProxyType(
    {module.__name__.rpartition(".")[2]: module.BEHAVIOURS for module in (wire, framing, dns)}
)
ALL = tuple(one for family in FAMILIES.values() for one in family)
HEALTHY = tuple(healthy(number, pages=12) for number in range(SITES))

#: Behaviours for which the crawler still comes to another end, with the reason. The quick test in CI asserts that its
#: failures are exactly those of this table, so it can only shrink.
NOT_YET: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("http-102-endless", "http-103-many", "http-chunk-extensions", "http-chunks-of-one"),
                *("http-chunk-zeros", "http-x-robots-tag", "http-link-headers"),
            ),
            "what arrives for one request is not bounded as a whole",
        ),
        "http-te-unknown": "a body in an unknown transfer coding is taken as it came",
        "http-junk-behind-200": "junk behind a whole answer spoils it",
        "http-junk-behind-204": "junk behind a whole answer spoils it",
    }
)


def named(names: Sequence[str]) -> tuple[Behaviour, ...]:
    """The behaviours and healthy sites of these names. Raises :class:`KeyError` for an unknown name."""
    known = {one.name: one for one in (*ALL, *HEALTHY)}
    return tuple(known[name] for name in names)


def chosen(names: Iterable[str], *, quick: bool) -> tuple[Behaviour, ...]:
    """The behaviours whose name or family is in ``names``; without names, all, or those of the short form."""
    wanted = set(names)
    if wanted:
        found = [one for family, ones in FAMILIES.items() for one in ones if {family, one.name} & wanted]
        return tuple(found)
    return tuple(one for one in ALL if one.quick or not quick)
