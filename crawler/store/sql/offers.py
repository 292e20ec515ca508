"""Taking offered URLs into the SQLite store: numbering them, and weighing those already known."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crawler.frontier.offers import Change, Known, Offer, passed_on, weigh
from crawler.frontier.politeness import GroupBy, group_name
from crawler.model import Kind, State
from crawler.reasons import Reason, ReasonCode, StoredReason
from crawler.store.keys import site_of, url_number
from crawler.store.sqlite.connection import Database, every
from crawler.url import split

_GENERATION = 20_000
_SITES_KEPT = 100_000
_REFUSED = 1 << 30  # the depth remembered for a URL that was refused: any admitted offer beats it


@dataclass(slots=True)
class Recent:
    """URLs offered lately, with number and depth: a page's links are mostly links of the page before.

    Two generations, so that its size is bounded and the often seen stay.
    """

    young: dict[str, tuple[int, int]] = field(default_factory=dict)
    old: dict[str, tuple[int, int]] = field(default_factory=dict)

    def get(self, url: str) -> tuple[int, int] | None:
        return self.young.get(url) or self.old.get(url)

    def put(self, url: str, number: int, depth: int) -> None:
        self.young[url] = (number, depth)
        if len(self.young) > _GENERATION:
            self.old, self.young = self.young, {}

    def forget(self) -> None:
        """Nothing is known: after a transaction that was rolled back."""
        self.young.clear()
        self.old.clear()


_NEW = Reason(ReasonCode.NEW)
UrlRow = tuple[int, str, str, str, str, int, int | None, int, bool, str, float | None]  # as insert_url takes it
_Row = tuple[int, str, str, str, str, int, int]  # as known_urls gives it
Found = tuple[Offer, int | None]  # with the number of the page that it was found on


def _known(row: _Row) -> Known:
    _, _, state, code, reason, depth, hops = row
    return Known(State(state), StoredReason(ReasonCode(code), reason), depth, hops)


def is_better(offer: Offer, best: Offer) -> bool:
    """An offer that is not refused, or else one that is nearer to the seeds."""
    if (offer.refusal is None) is (best.refusal is None):
        return offer.depth < best.depth
    return offer.refusal is None


def heed_sitemap(found: Iterable[Found], best: dict[str, Found]) -> None:
    """Among the ``best`` offers, what only a sitemap knows: which URLs are sitemaps themselves, and pages' dates."""
    for offer, found_on in found:
        known, known_on = best[offer.url]
        if offer.kind is Kind.SITEMAP and offer.refusal is None:
            best[offer.url] = (offer, found_on)
        elif offer.lastmod is not None and known.lastmod is None:
            best[offer.url] = (known._replace(lastmod=offer.lastmod), known_on)


class Offers:
    """The known URLs of one store, as seen by one of its writers. Call within a transaction only."""

    def __init__(self, db: Database, queries: Mapping[str, str], group_by: GroupBy) -> None:
        self._db = db
        self._sql = queries
        self._group_by = group_by
        self._sites: dict[str, tuple[int, int]] = {}  # name -> (site, group)
        self._recent = Recent()

    def forget(self) -> None:
        """After a rollback: numbers given in it do not exist."""
        self._sites.clear()
        self._recent.forget()

    async def sites(self, names: Iterable[str]) -> dict[str, tuple[int, int]]:
        """(site number, group number) of each site, given where it had none."""
        if len(self._sites) > _SITES_KEPT:
            self._sites.clear()
        missing = [name for name in dict.fromkeys(names) if name not in self._sites]
        if missing:
            groups = [group_name(name, self._group_by) for name in missing]
            await self._db.executemany(self._sql["add_groups"], [(g,) for g in dict.fromkeys(groups)])
            await self._db.executemany(self._sql["add_sites"], list(zip(missing, groups, strict=True)))
            for number, name, group in await every(self._db, self._sql["sites_named"], (json.dumps(missing),)):
                self._sites[name] = (number, group)
        return self._sites

    async def numbers(self, urls: Iterable[str]) -> dict[str, int]:
        """The number of each URL that the store knows; nothing is added."""
        places = {url: split(url) for url in urls}
        names = json.dumps(list({place.site for place in places.values()}))
        sites = {name: number for number, name, _ in await every(self._db, self._sql["sites_named"], (names,))}
        wanted = {url: url_number(sites[p.site], p.path) for url, p in places.items() if p.site in sites}
        found: dict[str, int] = {}
        while wanted:  # once, but for collisions
            paths = {row[0]: row[1] for row in await self._known(wanted.values())}
            found |= {url: number for url, number in wanted.items() if paths.get(number) == places[url].path}
            wanted = {url: number + 1 for url, number in wanted.items() if number in paths and url not in found}
        return found

    async def take(
        self, offers: Mapping[str, Found], max_depth: int | None, ending: Sequence[int] = ()
    ) -> tuple[dict[str, int], set[int]]:
        """Take in the best offer of each URL, each with the number of the page it was found on. ``ending`` are the
        URLs that the same transaction is going to end.

        Returns the number of every URL offered, and the groups that have got new work.
        """
        numbers: dict[str, int] = {}
        fresh: dict[str, Found] = {}
        for url, (offer, found_on) in offers.items():
            known = self._recent.get(url)
            if known is None or offer.kind is not Kind.PAGE or (offer.is_good and offer.depth < known[1]):
                fresh[url] = (offer, found_on)
            else:
                numbers[url] = known[0]
        touched = await self._take_fresh(fresh, numbers, max_depth, ending) if fresh or ending else set()
        await self._note_sitemaps(offers, numbers)
        return numbers, touched

    async def _take_fresh(
        self, fresh: Mapping[str, Found], numbers: dict[str, int], max_depth: int | None, ending: Sequence[int]
    ) -> set[int]:
        """Take in offers that may say something new; fills in ``numbers``, returns the groups with new work."""
        queued: list[int] = []
        better: dict[int, Found] = {}
        rest = fresh
        while rest:
            inserts, changed = await self._compare(rest, numbers)
            better |= changed
            taken = await self._insert(inserts)
            queued += [row[0] for row in inserts if row[2] == State.QUEUED and row[0] not in taken]
            rest = {url: found for url, found in rest.items() if numbers[url] in taken}
        await self._db.executemany(self._sql["enqueue"], [(number,) for number in queued])
        for url, (offer, _) in fresh.items():
            self._recent.put(url, numbers[url], offer.depth if offer.is_good else _REFUSED)
        queued += await self._apply(better, max_depth, ending)
        return await self.groups(queued)

    async def _insert(self, rows: list[UrlRow]) -> set[int]:
        """Insert new URLs; returns the numbers that somebody else has taken meanwhile, which none can here."""
        await self._db.executemany(self._sql["insert_url"], rows)
        return set()

    async def _compare(
        self, fresh: Mapping[str, Found], numbers: dict[str, int]
    ) -> tuple[list[UrlRow], dict[int, Found]]:
        """Sort offers into rows to insert and those that are better than what is there; fills in ``numbers``."""
        places = {url: split(url) for url in fresh}
        sites = await self.sites(place.site for place in places.values())
        wanted = {url: url_number(sites[place.site][0], place.path) for url, place in places.items()}
        stored = {row[0]: row for row in await self._known(wanted.values())}
        inserts: list[UrlRow] = []
        better: dict[int, Found] = {}
        taken: dict[int, str] = {}
        for url, (offer, found_on) in fresh.items():
            number, path = wanted[url], places[url].path
            while taken.get(number, path) != path or (number in stored and stored[number][1] != path):
                number += 1  # another path of this site has these hash bits
                if number not in stored:
                    stored |= {row[0]: row for row in await self._known([number])}
            numbers[url] = number
            if number in stored:
                if weigh(_known(stored[number]), offer) is not None:
                    better[number] = (offer, found_on)
            else:
                taken[number] = path
                state = State.QUEUED if offer.refusal is None else State.EXCLUDED
                reason = offer.refusal or _NEW
                row = (number, path, state, reason.code, reason.sentence, offer.depth, found_on, offer.hops)
                inserts.append((*row, offer.seed, offer.kind, offer.lastmod))
        return inserts, better

    async def _note_sitemaps(self, offers: Mapping[str, Found], numbers: Mapping[str, int]) -> None:
        """What is said of URLs that may have been known before: a page's date, and that a URL is itself a sitemap."""
        dated = [(o.lastmod, numbers[o.url]) for o, _ in offers.values() if o.lastmod is not None]
        named = [(found_on, numbers[o.url]) for o, found_on in offers.values() if o.kind is Kind.SITEMAP]
        await self._db.executemany(self._sql["set_lastmod"], dated)
        await self._db.executemany(self._sql["make_sitemap"], named)

    async def _known(self, numbers: Iterable[int]) -> Iterable[_Row]:
        return await every(self._db, self._sql["known_urls"], (json.dumps(list(numbers)),))

    async def lock(self, numbers: Collection[int]) -> None:
        """Where others write at the same time: nobody else changes these URLs until the transaction ends."""

    async def _apply(self, better: Mapping[int, Found], max_depth: int | None, ending: Sequence[int] = ()) -> list[int]:
        """Take in better offers of known URLs, and what they entail: a page that is nearer to the seeds brings its
        outlinks nearer. Returns the numbers of those queued anew."""
        requeued: list[int] = []
        await self.lock({*better, *ending})
        while better:
            stored = {row[0]: row for row in await self._known(better)}
            changes: dict[int, tuple[Change, int | None]] = {}
            for number, (offer, found_on) in better.items():
                if change := weigh(_known(stored[number]), offer):
                    changes[number] = (change, found_on)
            await self._write(changes, {number: row[2] for number, row in stored.items()})
            requeued += [number for number, (change, _) in changes.items() if change.requeue]
            better = await self.entailed(list(changes), max_depth)
            await self.lock(better)
        return requeued

    async def _write(self, changes: dict[int, tuple[Change, int | None]], states: Mapping[int, str]) -> None:
        moved = [(n,) for n, (change, _) in changes.items() if change.requeue or states[n] == State.QUEUED]
        await self._db.executemany(self._sql["dequeue"], moved)
        await self._db.executemany(
            self._sql["change_url"],
            [
                (
                    c.depth,
                    c.hops,
                    State.QUEUED if c.requeue else states[n],
                    c.reason.code,
                    c.reason.sentence,
                    found_on,
                    c.seed,
                    n,
                )
                for n, (c, found_on) in changes.items()
            ],
        )
        await self._db.executemany(self._sql["enqueue"], moved)

    async def entailed(self, numbers: list[int], max_depth: int | None) -> dict[int, Found]:
        """What a lower depth of these pages offers to the pages they link to or redirect to, where it is better."""
        best: dict[int, int] = {}
        for depth, number in await every(self._db, self._sql["links_of"], (json.dumps(numbers),)):
            best[number] = min(depth, best.get(number, depth))
        return await self.nearer(best, max_depth)

    async def nearer(self, best: Mapping[int, int], max_depth: int | None) -> dict[int, Found]:
        """What links that may be followed offer to these URLs, each at its depth, where it is better."""
        better: dict[int, Found] = {}
        for row in await self._known(best):
            number, known = row[0], _known(row)
            offer = passed_on(known, best[number], max_depth)
            if weigh(known, offer) is not None:
                better[number] = (offer, None)
        return better

    async def settle(self, better: Mapping[int, Found], max_depth: int | None) -> set[int]:
        """Take in entailed offers; returns the groups that have got new work."""
        return await self.groups(await self._apply(better, max_depth))

    async def groups(self, numbers: Iterable[int]) -> set[int]:
        sites = list({site_of(number) for number in numbers})
        if not sites:
            return set()
        return {row[0] for row in await every(self._db, self._sql["groups_of_sites"], (json.dumps(sites),))}
