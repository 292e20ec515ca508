"""What a store that has a part of a crawl shows of the other parts (``docs/scale.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.cli.layout import Fact
from crawler.formatting import many
from crawler.frontier.parts import Parts, PartTraffic
from crawler.model import State
from crawler.store.location import is_url, shown
from crawler.store.open import is_there

if TYPE_CHECKING:
    from crawler.store.sections import Store


class PartStatus(NamedTuple):
    """The part of a crawl that a store has, and its exchange with the others.

    ``is_waiting``: its run is under way and has no work, so only an offer of another part can give it some.
    ``unbegun`` are the other parts that are known not to have begun: their files do not exist.
    """

    parts: Parts
    others: tuple[PartTraffic, ...]
    is_waiting: bool
    unbegun: frozenset[int] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """As one JSON object. Parts count from 1, and their databases have no passwords."""
        others = [other._asdict() | {"part": other.part + 1, "db": shown(other.db)} for other in self.others]
        return {
            "part": self.parts.own + 1,
            "of": len(self.parts.dbs),
            "waits_for_others": self.is_waiting,
            "others": others,
        }

    def rows(self) -> list[Fact]:
        """As labelled lines."""
        rows: list[Fact] = [("Part", describe_merge(self.parts))]
        for other in self.others:
            counts = f"{many(other.waiting, 'offer')} to it not received yet"
            if other.part in self.unbegun:
                counts = f"not begun, {counts}"
            else:
                counts += f", {many(other.received, 'offer')} of it received here"
            rows.append((f"Part {other.part + 1}", f"{shown(other.db)}: {counts}"))
        if self.is_waiting:
            rows.append(("Waiting", "for the other parts: nothing of this part is left, and they may still offer URLs"))
        return rows


async def part_status(store: Store) -> PartStatus | None:
    """The part that a store has, and what it exchanges; ``None`` if it has the whole crawl."""
    if store.parts is None:
        return None
    state = await store.part_state()
    is_waiting = state.has_begun and not state.has_ended and not state.has_work and store.is_held()
    files = {number: store.parts.dbs[number] for number in store.parts.others if not is_url(store.parts.dbs[number])}
    unbegun = frozenset([number for number, db in files.items() if not await is_there(db)])
    return PartStatus(store.parts, tuple(await store.part_traffic()), is_waiting, unbegun)


async def describe_unfinished(stores: Mapping[int, Store], parts: Parts) -> str:
    """Which parts of a crawl are not over, and why; "" if all are. ``stores`` are those of the parts that exist."""
    states = {number: await store.part_state() for number, store in stores.items()}
    unfinished = []
    for number, db in enumerate(parts.dbs):
        if number not in states or not states[number].has_begun:
            unfinished.append(f"{shown(db)} has not begun")
            continue
        queued = (await stores[number].counts()).states[State.QUEUED]
        if not states[number].has_ended and stores[number].is_held():
            unfinished.append(f"{shown(db)} is at work")
        elif queued:
            unfinished.append(f"{shown(db)} has {many(queued, 'queued URL')}")
        elif any(number in state.offers_to for state in states.values()):
            unfinished.append(f"{shown(db)} has offers of other parts to receive")
    return ", ".join(unfinished)


def describe_merge(parts: Parts) -> str:
    """Which part a store has, and the command that makes one store of all."""
    merge = f"crawler store merge {quote(shown(parts.dbs[parts.own]))} whole.db"
    return f"{parts.own + 1} of {len(parts.dbs)} of the crawl; `{merge}` makes one store of all"


def requesting_part(parts: Parts | None, site: str) -> dict[str, Any] | None:
    """The other part that requests a site, as JSON; ``None`` if this store's part does."""
    number = None if parts is None else parts.other_of(site)
    if parts is None or number is None:
        return None
    return {"part": number + 1, "of": len(parts.dbs), "db": shown(parts.dbs[number])}
