"""Offers to other politeness groups: left behind by a turn, and carried over in transactions of their own.

A turn writes rows of the groups that it has in hand, and of no other. What their pages say of URLs of other groups goes
into the table ``offer``, with the group of the page, and from there in two steps. The first takes the offers in where
they lead, which may be done twice: an offer that was weighed changes nothing any more. The second writes the links (and
where redirects lead) with the numbers of the URLs, in the place of the offers, in one transaction with the group of the
page: what is left in the table is still to be done, whoever was killed in between.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from typing import NamedTuple

from crawler.errors import LeaseLost
from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import GroupBy, group_name
from crawler.model import Kind, Link
from crawler.reasons import Reason, ReasonCode, StoredReason
from crawler.store.postgres.dialect import columns
from crawler.store.postgres.groups import GroupedPostgres
from crawler.store.protocols import RobotsNews
from crawler.store.retrying import Again, lasting
from crawler.store.sql.offers import Found, Offers, UrlRow, heed_sitemap, is_better
from crawler.store.sqlite.connection import Read, every, one
from crawler.url import split

_AT_ONCE = 5_000  # offers in one transaction
_SITES_KEPT = 100_000


class PostgresOffers(Offers):
    """The known URLs, where others write at the same time and no turn writes into other groups."""

    _db: GroupedPostgres

    def __init__(self, db: GroupedPostgres, queries: Mapping[str, str], group_by: GroupBy) -> None:
        super().__init__(db, queries, group_by)
        self._names: dict[str, str] = {}  # site -> name of its group
        self.worker = 0
        self.has_left = False  # something that may not have been carried over yet

    def forget(self) -> None:
        super().forget()
        self._db.forget()

    async def groups(self, numbers: Iterable[int]) -> set[int]:
        return {group for group in await self._db.groups_of(numbers) if group is not None}

    async def entailed(self, numbers: list[int], max_depth: int | None) -> dict[int, Found]:
        """As there, within the groups of the pages; what leads to others is left to be carried over."""
        best: dict[int, int] = {}
        leaving: dict[tuple[int, int], int] = {}
        found = list(await every(self._db, self._sql["links_of"], (json.dumps(numbers),)))
        owners = await self._db.groups_of([row[1] for row in found])
        for (depth, number, group), own in zip(found, owners, strict=True):
            if group == own:
                best[number] = min(depth, best.get(number, depth))
            else:
                leaving[group, number] = min(depth, leaving.get((group, number), depth))
        rows = [(group, self.worker, max_depth, depth, number) for (group, number), depth in leaving.items()]
        await self._leave("leave_nearer", rows)
        return await self.nearer(best, max_depth)

    async def _insert(self, rows: list[UrlRow]) -> set[int]:
        inserted = set()
        for batch in columns(rows):
            inserted |= {row[0] for row in await every(self._db, self._sql["insert_url"], batch)}
        return {row[0] for row in rows} - inserted

    async def lock(self, numbers: Collection[int]) -> None:
        if numbers:
            await self._db.execute(self._sql["lock_urls"], (json.dumps(list(numbers)),))

    # --- what a turn leaves behind ------------------------------------------------------------

    def kept(self, outcome: Outcome) -> Outcome:
        """An outcome with what its own group is offered, and the links to it. URLs of others that were met lately, and
        of which nothing new is said, stay: their numbers are known, and no more is asked of them."""
        site = split(outcome.queued.url).site
        leaving = {offer.url for offer in outcome.offers if self._leaves(offer, site)}
        if not leaving:
            return outcome
        return replace(
            outcome,
            offers=tuple(offer for offer in outcome.offers if offer.url not in leaving),
            links=tuple(link for link in outcome.links if link.url not in leaving),
        )

    async def leave(self, outcomes: Iterable[tuple[Outcome, Outcome]], max_depth: int | None) -> None:
        """Leave behind what the second of each pair has not of the first."""
        rows: list[tuple[object, ...]] = []
        for outcome, kept in outcomes:
            if outcome is kept:
                continue
            here = {offer.url for offer in kept.offers}
            links = {link.url: link for link in outcome.links} if outcome.page is not None else {}
            rows += [
                self._row(
                    outcome.queued.site_id,
                    offer,
                    max_depth,
                    source=outcome.queued,
                    link=links.get(offer.url),
                    leads=offer.url == outcome.target,
                )
                for offer in outcome.offers
                if offer.url not in here
            ]
        await self._leave("leave_offer", rows)

    async def leave_sitemaps(self, news: RobotsNews, max_depth: int | None) -> RobotsNews:
        """Leave behind the sitemaps of other groups that a robots.txt names; the news without them."""
        leaving = [offer for offer in news.sitemaps if self._leaves(offer, news.site)]
        await self._leave("leave_offer", [self._row(news.site_id, offer, max_depth) for offer in leaving])
        return replace(news, sitemaps=tuple(o for o in news.sitemaps if o not in leaving)) if leaving else news

    def _row(
        self,
        site_id: int,
        offer: Offer,
        max_depth: int | None,
        *,
        source: Queued | None = None,
        link: Link | None = None,
        leads: bool = False,
    ) -> tuple[object, ...]:
        """As leave_offer takes it: what is said on ``site_id``, and by which page."""
        found_on = (None, None) if source is None else (source.id, source.depth)
        refusal = (None, None) if offer.refusal is None else (offer.refusal.code, offer.refusal.sentence)
        linked = (None, None, None) if link is None else (link.anchor, link.rel, int(link.follow))
        return (
            site_id, self.worker, max_depth, offer.depth, None, offer.url, *found_on, *refusal, offer.hops,
            int(offer.seed), offer.kind, offer.lastmod, *linked, int(leads),
        )  # fmt: skip

    async def _leave(self, how: str, rows: Sequence[tuple[object, ...]]) -> None:
        self.has_left = self.has_left or bool(rows)
        await self._db.executemany(self._sql[how], rows)

    def _leaves(self, offer: Offer, site: str) -> bool:
        known = self._recent.get(offer.url)
        is_page = offer.kind is Kind.PAGE and offer.lastmod is None
        if known is not None and is_page and not (offer.is_good and offer.depth < known[1]):
            return False  # nothing new, as take has it
        return not offer.url.startswith(site + "/") and self.group_name(offer.url) != self.group_name(site + "/")

    def group_name(self, url: str) -> str:
        """The name of the politeness group that a URL is in."""
        site = split(url).site
        name = self._names.get(site)
        if name is None:
            if len(self._names) > _SITES_KEPT:
                self._names.clear()
            name = self._names[site] = group_name(site, self._group_by)
        return name

    @contextmanager
    def grouped(self, group_by: GroupBy) -> Iterator[None]:
        """Inside, sites are put into groups so."""
        ours, self._group_by = self._group_by, group_by
        self._names.clear()
        try:
            yield
        finally:
            self._group_by = ours
            self._names.clear()


class _Left(NamedTuple):
    """A row as offers_left gives it."""

    group_id: int
    id: int
    max_depth: int | None
    depth: int
    target: int | None
    url: str | None
    source: int | None
    source_depth: int | None
    refusal_code: str | None
    refusal: str | None
    hops: int
    seed: int
    kind: str
    lastmod: float | None


#: Told which groups have got new work, within a transaction.
Refresh = Callable[[set[int]], Awaitable[None]]


class Carrier:
    """Carries offers over."""

    def __init__(
        self,
        db: GroupedPostgres,
        queries: Mapping[str, str],
        offers: PostgresOffers,
        read: Read,
        writing: Callable[[], AbstractAsyncContextManager[None]],
        again: Again,
    ) -> None:
        self._db, self._sql, self._offers = db, queries, offers
        self._read, self._writing, self._again = read, writing, again

    async def carry(self, worker: int | None, refresh: Refresh) -> None:
        """Carry over what this worker has left (``None``: any), and what those have that are gone."""
        while rows := await self._read(self._sql["offers_left"], (worker, _AT_ONCE)):
            left = [_Left(*row) for row in rows]
            numbers: dict[str, int] = {}
            for part in await self._by_node(left, self._groups_offered_to):
                numbers |= await self._take_in(part, worker, refresh)
            for part in await self._by_node(left, _groups_of_pages):
                await self._settle(part, numbers, worker, refresh)
        self._offers.has_left = False

    async def _require_lease(self, worker: int | None) -> None:
        """As a turn does: who was found lost writes no more, and who finds it lost waits until it has written."""
        if worker is not None and await one(self._db, self._sql["still_at_work"], (worker,)) is None:
            message = "the lease of this worker ran out, and what it left is carried over by others"
            raise LeaseLost(message, committed=True)

    @lasting
    async def _by_node(
        self, left: list[_Left], groups_of: Callable[[Sequence[_Left]], Awaitable[list[int]]]
    ) -> Iterable[list[_Left]]:
        """The rows by the nodes that have these groups."""
        if not self._db.is_spread:
            return [left]
        async with self._writing():
            groups = await groups_of(left)
            nodes = await self._db.nodes_of(groups)
        parts: dict[int, list[_Left]] = {}
        for row, group in zip(left, groups, strict=True):
            parts.setdefault(nodes[group], []).append(row)
        return parts.values()

    async def _groups_offered_to(self, left: Sequence[_Left]) -> list[int]:
        names = {row.url: self._offers.group_name(row.url) for row in left if row.url is not None}
        named = await self._db.groups_to_be(names.values())
        known = await self._db.groups_of([row.target or 0 for row in left])
        return [
            named[names[row.url]] if row.url is not None else group or 0 for row, group in zip(left, known, strict=True)
        ]

    @lasting
    async def _take_in(self, left: Sequence[_Left], worker: int | None, refresh: Refresh) -> dict[str, int]:
        """The first step; the numbers of the URLs."""
        numbers: dict[str, int] = {}
        async with self._writing():
            await self._require_lease(worker)
            touched = set[int]()
            for max_depth in dict.fromkeys(row.max_depth for row in left):
                rows = [row for row in left if row.max_depth == max_depth]
                found, groups = await self._offers.take(_best(rows), max_depth)
                numbers |= found
                nearer: dict[int, int] = {}
                for row in rows:
                    if row.target is not None:
                        nearer[row.target] = min(row.depth, nearer.get(row.target, row.depth))
                better = await self._offers.nearer(nearer, max_depth)
                touched |= groups | await self._offers.settle(better, max_depth)
            await refresh(touched)
        return numbers

    @lasting
    async def _settle(
        self, left: Sequence[_Left], numbers: Mapping[str, int], worker: int | None, refresh: Refresh
    ) -> None:
        """The second step. A page that has come nearer to the seeds since brings these links nearer, too."""
        async with self._writing():
            await self._require_lease(worker)
            sources = {row.source: row for row in left if row.source is not None}
            await self._offers.lock(sources)
            await self._db.executemany(
                self._sql["take_offers"],
                [(row.group_id, row.id, None if row.url is None else numbers[row.url]) for row in left],
            )
            rows = await every(self._db, self._sql["depths"], (json.dumps(list(sources)),))
            depths = {row[0]: row[1] for row in rows}
            touched = set[int]()
            for max_depth in dict.fromkeys(row.max_depth for row in left):
                moved = [
                    number
                    for number, row in sources.items()
                    if row.max_depth == max_depth and row.source_depth is not None and depths[number] < row.source_depth
                ]
                if moved:
                    touched |= await self._offers.settle(await self._offers.entailed(moved, max_depth), max_depth)
            await refresh(touched)


async def _groups_of_pages(left: Sequence[_Left]) -> list[int]:
    return [row.group_id for row in left]


def _refusal(row: _Left) -> Reason | None:
    return None if row.refusal_code is None else StoredReason(ReasonCode(row.refusal_code), row.refusal or "")


def _best(rows: Iterable[_Left]) -> dict[str, Found]:
    """The best offer of each URL."""
    offers: list[Found] = [
        (Offer(row.url, row.depth, _refusal(row), row.hops, bool(row.seed), Kind(row.kind), row.lastmod), row.source)
        for row in rows
        if row.url is not None
    ]
    best: dict[str, Found] = {}
    for offer, source in offers:
        known = best.get(offer.url)
        if known is None or is_better(offer, known[0]):
            best[offer.url] = (offer, source)
    heed_sitemap(offers, best)
    return best
