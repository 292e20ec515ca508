"""Offers to other politeness groups: left behind by a commit, and carried over in transactions of their own.

A commit writes rows of the groups that it holds, and of no other. What pages say of URLs of other groups goes into the
table ``offer``, and is carried over from there in two steps. The first step stores the
offers in the groups that they lead to. It may run twice: an offer that was weighed changes nothing any more. The second
step replaces the offers by links (and targets of redirects) with the numbers of the URLs, in one transaction with the
group of the page. Whatever process is killed in between, the rows of the table are still to be carried over.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from msgspec.structs import asdict, replace

from crawler.errors import LeaseLost
from crawler.frontier.decide import Outcome
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import GroupBy, group_name
from crawler.frontier.site_settings import SiteRule
from crawler.model import Kind, Link
from crawler.reasons import ReasonCode, StoredReason
from crawler.store.keys import site_of
from crawler.store.postgres.statements import PostgresStatements
from crawler.store.retrying import retrying
from crawler.store.rows import RobotsNews, UrlLimits
from crawler.store.sql.offers import FoundOffer, Offers, best_offers
from crawler.store.sql.section import StoreSection, in_transaction
from crawler.url import split

_AT_ONCE = 5_000  # offers in one transaction
_SITES_KEPT = 100_000


class PostgresOffers(Offers):
    """The URLs of a store to which other workers write, and in which no commit writes to other groups."""

    _sql: PostgresStatements

    def __init__(self, sql: PostgresStatements, group_by: GroupBy, rules: Sequence[SiteRule] = ()) -> None:
        super().__init__(sql, group_by, rules)
        self._names: dict[str, str] = {}  # name of the group by site
        self.worker = 0
        self.has_left = False  # offers that may not have been carried over yet

    async def entailed(self, numbers: list[int], max_depth: int | None) -> dict[int, FoundOffer]:
        """Within the groups of the pages; offers to other groups are left to be carried over."""
        best: dict[int, int] = {}
        leaving: dict[int, int] = {}
        found = await self._sql.fetch("links_of", numbers=json.dumps(numbers))
        sites = {site_of(number) for row in found for number in (row.source, row.target)}
        rows = await self._sql.fetch("sites", sites=json.dumps(list(sites)))
        group = {row.id: row.group_id for row in rows}
        for row in found:
            depths = best if group[site_of(row.source)] == group[site_of(row.target)] else leaving
            depths[row.target] = min(row.depth, depths.get(row.target, row.depth))
        await self._leave(
            [
                {"worker_id": self.worker, "max_depth": max_depth, "depth": depth, "target": number}
                for number, depth in leaving.items()
            ]
        )
        return await self.nearer(best, max_depth)

    async def _insert(self, rows: list[dict[str, object]]) -> set[int]:
        in_order = sorted(rows, key=itemgetter("id"))  # no two transactions wait for each other
        inserted = {row.id for row in await self._sql.inserted("url", in_order, "id", known="kept")}
        return {row["id"] for row in rows if isinstance(row["id"], int)} - inserted

    async def lock(self, numbers: Collection[int]) -> None:
        if numbers:
            await self._sql.execute("lock_urls", numbers=json.dumps(list(numbers)))

    async def lock_groups(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        """Without the lock, :meth:`recompute` would undo what another worker has written since."""
        await self._sql.execute("lock_groups", numbers=json.dumps(list(numbers)), names=json.dumps(list(names)))

    # --- the offers of a commit ---------------------------------------------------------------

    def kept(self, outcome: Outcome) -> Outcome:
        """An outcome with the offers to its own group, and the links to them.

        Offers that are no news of URLs of other groups also stay: their numbers are known, and nothing is written.
        """
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
        """Leave behind the offers of the first outcome of each pair that the second one lacks."""
        rows: list[dict[str, object]] = []
        for outcome, kept in outcomes:
            if outcome is kept:
                continue
            here = {offer.url for offer in kept.offers}
            links = {link.url: link for link in outcome.links} if outcome.page is not None else {}
            source = {"source": outcome.queued.id, "source_depth": outcome.queued.depth}
            rows += [
                self._row(offer, max_depth, links.get(offer.url)) | source | {"leads": offer.url == outcome.target}
                for offer in outcome.offers
                if offer.url not in here
            ]
        await self._leave(rows)

    async def leave_sitemaps(self, news: RobotsNews, max_depth: int | None) -> RobotsNews:
        """Leave behind the sitemaps of other groups that a robots.txt names; returns the news without them."""
        leaving = [offer for offer in news.sitemaps if self._leaves(offer, news.site)]
        await self._leave([self._row(offer, max_depth) for offer in leaving])
        return news._replace(sitemaps=tuple(o for o in news.sitemaps if o not in leaving)) if leaving else news

    def _row(self, offer: Offer, max_depth: int | None, link: Link | None = None) -> dict[str, object]:
        """An offer as a row of the table ``offer``, without the page that it was found on."""
        refusal = offer.refusal
        return asdict(offer) | {
            "worker_id": self.worker,
            "max_depth": max_depth,
            "refusal_code": None if refusal is None else refusal.code,
            "refusal": None if refusal is None else refusal.sentence,
            "anchor": None if link is None else link.anchor,
            "rel": None if link is None else link.rel,
            "follow": None if link is None else link.follow,
        }

    async def _leave(self, rows: Sequence[Mapping[str, object]]) -> None:
        self.has_left = self.has_left or bool(rows)
        await self._sql.insert("offer", rows)

    def _leaves(self, offer: Offer, site: str) -> bool:
        known = self._recent.get(offer.url)
        is_page = offer.kind is Kind.PAGE and offer.lastmod is None
        if known is not None and is_page and not self._is_news(offer, known):
            return False
        return not offer.url.startswith(site + "/") and self.group_name(offer.url) != self.group_name(site + "/")

    def group_name(self, url: str) -> str:
        """The name of the politeness group of a URL."""
        site = split(url).site
        name = self._names.get(site)
        if name is None:
            if len(self._names) > _SITES_KEPT:
                self._names.clear()
            name = self._names[site] = group_name(site, self._group_by)
        return name

    @contextmanager
    def grouped(self, group_by: GroupBy) -> Iterator[None]:
        """Group sites by another rule inside the context."""
        ours, self._group_by = self._group_by, group_by
        self._names.clear()
        try:
            yield
        finally:
            self._group_by = ours
            self._names.clear()


class Carrier(StoreSection):
    """Carries offers over to their groups."""

    _offers: PostgresOffers

    async def carry(self, worker: int | None, limits: UrlLimits) -> None:
        """Carry over the offers of this worker (``None``: of every worker), and those of workers that have ended."""
        while left := await self._read.fetch("offers_left", worker=worker, limit=_AT_ONCE):
            numbers = await self._store_urls(left, worker, limits)
            await self._store_links(left, numbers, worker, limits)
        self._offers.has_left = False

    async def _require_lease(self, worker: int | None) -> None:
        """Lock the row of this worker. A lost worker writes no more; a worker that ends this one waits."""
        if worker is not None and not await self._sql.fetch("still_at_work", worker=worker):
            message = "the lease of this worker ran out, and other workers carry over what it left"
            raise LeaseLost(message, committed=True)

    @retrying
    @in_transaction
    async def _store_urls(self, left: Sequence[Any], worker: int | None, limits: UrlLimits) -> dict[str, int]:
        """The first step; returns the numbers of the URLs."""
        numbers: dict[str, int] = {}
        await self._require_lease(worker)
        touched = set[int]()
        for max_depth in dict.fromkeys(row.max_depth for row in left):
            rows = [row for row in left if row.max_depth == max_depth]
            found, groups = await self._offers.store(_best(rows), max_depth)
            numbers |= found
            nearer: dict[int, int] = {}
            for row in rows:
                if row.target is not None:
                    nearer[row.target] = min(row.depth, nearer.get(row.target, row.depth))
            better = await self._offers.nearer(nearer, max_depth)
            touched |= groups | await self._offers.apply_better(better, max_depth)
        await self._offers.refresh(touched, limits.pages_per_site, limits.below_depth)
        return numbers

    @retrying
    @in_transaction
    async def _store_links(
        self, left: Sequence[Any], numbers: Mapping[str, int], worker: int | None, limits: UrlLimits
    ) -> None:
        """The second step. A page that has come nearer to a seed since also brings the URLs of its new links nearer."""
        await self._require_lease(worker)
        sources = {row.source: row for row in left if row.source is not None}
        await self._offers.lock(sources)
        await self._sql.execute_many(
            "replace_offers_by_links",
            [{"id": row.id, "number": None if row.url is None else numbers.get(row.url)} for row in left],
        )
        rows = await self._sql.fetch("depths", numbers=json.dumps(list(sources)))
        depths = {row.id: row.depth for row in rows}
        touched = set[int]()
        for max_depth in dict.fromkeys(row.max_depth for row in left):
            moved = [
                number
                for number, row in sources.items()
                if row.max_depth == max_depth and row.source_depth is not None and depths[number] < row.source_depth
            ]
            if moved:
                touched |= await self._offers.apply_better(await self._offers.entailed(moved, max_depth), max_depth)
        await self._offers.refresh(touched, limits.pages_per_site, limits.below_depth)


def _offer(row: Any) -> Offer:
    refusal = None if row.refusal_code is None else StoredReason(ReasonCode(row.refusal_code), row.refusal or "")
    about = (bool(row.seed), Kind(row.kind), row.lastmod, bool(row.by_domain))
    return Offer(row.url, row.depth, refusal, row.hops, *about)


def _best(rows: Iterable[Any]) -> dict[str, FoundOffer]:
    """The best offer of each URL, from rows of ``offers_left``."""
    return best_offers(FoundOffer(_offer(row), row.source) for row in rows if row.url is not None)
