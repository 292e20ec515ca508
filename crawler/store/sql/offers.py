"""Storing offered URLs: numbering new URLs, and comparing offers with the URLs that are known."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from crawler.frontier.buckets import Bucket
from crawler.frontier.offers import KnownUrl, Offer, UrlChange, passed_on, weigh
from crawler.frontier.politeness import GroupBy, group_name
from crawler.frontier.site_settings import SiteRule, rule_for
from crawler.model import Kind, State
from crawler.reasons import ReasonCode, StoredReason
from crawler.store.keys import PROBES, new_key, numbers_from, site_of, url_number
from crawler.store.sql.tables import StoreStatements
from crawler.store.statements import unlimited
from crawler.url import SiteAndPath, host_of, registered_domain, split

_LOG = logging.getLogger("crawler.store")

_GENERATION = 20_000
_SITES_KEPT = 20_000
_REFUSED = 1 << 30  # the depth remembered of a refused URL: every admitted offer is better


class RecentUrl(msgspec.Struct, frozen=True, gc=False):
    """The number of a URL that was offered lately, and the depth of that offer."""

    number: int
    depth: int


class FoundOffer(NamedTuple):
    """An offer, with the number of the page that it was found on."""

    offer: Offer
    found_on: int | None


class StoredOffers(NamedTuple):
    """The result of storing offers: the numbers of their URLs, and the groups that have new work.

    A URL is left out of ``numbers`` if other paths of its site have all numbers that it may have. ``nearer`` are those
    URLs of the transaction's outcomes that came nearer to a seed since they were claimed.
    """

    numbers: dict[str, int]
    touched: set[int]
    nearer: list[int]


def _known(row: Any) -> KnownUrl:
    """The stored facts about a URL, from a row of ``known_urls``."""
    return KnownUrl(State(row.state), StoredReason(ReasonCode(row.reason_code), row.reason), row.depth, row.hops)


def is_better(offer: Offer, best: Offer) -> bool:
    """Whether an offer is admitted and the other is not, or else nearer to a seed."""
    if (offer.refusal is None) is (best.refusal is None):
        return offer.depth < best.depth
    return offer.refusal is None


def merge_sitemap_facts(found: Iterable[FoundOffer], best: dict[str, FoundOffer]) -> None:
    """Add to the ``best`` offers the facts that only a sitemap has: its sitemaps, and the dates of pages."""
    for offer, found_on in found:
        if offer.kind is Kind.SITEMAP and offer.refusal is None:
            best[offer.url] = FoundOffer(offer, found_on)
        elif offer.lastmod is not None and (known := best[offer.url]).offer.lastmod is None:
            dated = msgspec.structs.replace(known.offer, lastmod=offer.lastmod)
            best[offer.url] = FoundOffer(dated, known.found_on)


def best_offers(found: Iterable[FoundOffer]) -> dict[str, FoundOffer]:
    """The best offer of each URL, with all facts that only sitemaps have."""
    offers, best = list(found), dict[str, FoundOffer]()
    for each in offers:
        known = best.get(each.offer.url)
        if known is None or is_better(each.offer, known.offer):
            best[each.offer.url] = each
    merge_sitemap_facts(offers, best)
    return best


def own_page_limit(rule: SiteRule | None) -> int | None:
    """The limit that ``rule`` sets on the pages of its sites, as the column ``site.max_pages`` has it."""
    return None if rule is None or rule.max_pages is None else unlimited(rule.max_pages or None)


class Offers:
    """The URLs of a store and when their groups are ready, as one of its writers sees them.

    Every method must be called within a transaction.
    """

    def __init__(self, sql: StoreStatements, group_by: GroupBy, rules: Sequence[SiteRule] = ()) -> None:
        self._sql = sql
        self._group_by = group_by
        self._rules = rules
        self._sites: dict[str, int] = {}  # the number of each site
        self._groups: dict[int, int] = {}  # of each site
        # The URLs that were offered lately: most links of a page are links of the page before. Two generations bound
        # their number and keep those that are offered often.
        self._recent: dict[str, RecentUrl] = {}
        self._less_recent: dict[str, RecentUrl] = {}
        self._key: int | None = None
        self.bucket: Bucket | None = None  # None: the store has the whole crawl

    def is_elsewhere(self, site: str) -> bool:
        """Whether the task of another bucket requests a site."""
        return self.bucket is not None and self.bucket.other_of(site) is not None

    def forget(self) -> None:
        """Forget all numbers, after a transaction was rolled back: numbers given in it do not exist."""
        self._sites.clear()
        self._groups.clear()
        self._recent.clear()
        self._less_recent.clear()
        self._key = None

    async def _hash_key(self) -> int:
        """The key of the hashes in the numbers of this store. The first writer makes it."""
        if self._key is None:
            row = await self._sql.fetch_one("hash_key")
            if row is None:
                await self._sql.insert("hash_key", [{"id": 1, "key": new_key()}], known="kept")
                row = await self._sql.fetch_one("hash_key")
            self._key = int(row.key)
        return self._key

    async def sites(self, names: Iterable[str]) -> dict[str, int]:
        """The numbers of sites by name. A site that the store does not know is added."""
        if len(self._groups) > _SITES_KEPT:
            self._sites.clear()
            self._groups.clear()
        missing = [name for name in dict.fromkeys(names) if name not in self._sites]
        if missing:
            groups = [group_name(name, self._group_by) for name in missing]
            await self._sql.execute_many("add_groups", [{"name": group} for group in dict.fromkeys(groups)])
            await self._sql.execute_many(
                "add_sites",
                [
                    {
                        "name": name,
                        "group_name": group,
                        "host": host,
                        "registered_domain": registered_domain(host),
                        "other_bucket": None if self.bucket is None else self.bucket.other_of(name),
                        "max_pages": own_page_limit(rule_for(host, self._rules)),
                    }
                    for name, group, host in zip(missing, groups, map(host_of, missing), strict=True)
                ],
            )
            for row in await self._sql.fetch("sites_named", names=json.dumps(missing)):
                self._sites[row.name], self._groups[row.id] = row.id, row.group_id
        return self._sites

    async def numbers(self, urls: Iterable[str]) -> dict[str, int]:
        """The number of each URL that the store knows. Adds nothing."""
        split_urls = {url: split(url) for url in urls}
        names = json.dumps(list({found.site for found in split_urls.values()}))
        sites = {row.name: row.id for row in await self._sql.fetch("sites_named", names=names)}
        hashed, stored, apart = await self._hashed(split_urls, sites)
        found: dict[str, int] = {}
        for url, number in hashed.items():
            for each in numbers_from(number) if url in apart else [number]:
                if each in stored and stored[each].path == split_urls[url].path:
                    found[url] = each
        return found

    def weed(
        self, offers: Iterable[Offer], found_on: int, best: dict[str, FoundOffer], numbers: dict[str, int]
    ) -> None:
        """Add the offers that may be news to the ``best`` offers, and those of known URLs to their ``numbers``.

        Most links of a page lead to URLs that were offered lately, from no nearer to a seed: they need no more than
        their number. Offers with the facts that only sitemaps have are never left out.
        """
        recent, less_recent = self._recent, self._less_recent
        for offer in offers:
            url = offer.url
            known = recent.get(url) or less_recent.get(url)
            refusal = offer.refusal
            if (
                known is not None
                and (offer.depth >= known.depth or (refusal is not None and refusal.code is not ReasonCode.BLOCKED))
                and not (offer.seed or offer.lastmod is not None or offer.kind is not Kind.PAGE)
            ):
                numbers[url] = known.number
            elif (other := best.get(url)) is None or is_better(offer, other.offer):
                best[url] = FoundOffer(offer, found_on)

    async def store(
        self, offers: Mapping[str, FoundOffer], max_depth: int | None, ending: Mapping[int, int] | None = None
    ) -> StoredOffers:
        """Store the best offer of each URL.

        ``ending`` are the URLs that the same transaction ends, with the depths that they had when they were claimed.
        """
        if not offers and not ending:
            return StoredOffers({}, set(), [])
        numbers: dict[str, int] = {}
        queued: list[int] = []
        better: dict[int, FoundOffer] = {}
        rest = offers
        while rest:
            inserts, changed = await self._compare(rest, numbers)
            better |= changed
            collided = await self._insert(list(inserts.values()))
            queued += [n for n, row in inserts.items() if row["state"] == State.QUEUED and n not in collided]
            rest = {url: found for url, found in rest.items() if numbers.get(url) in collided}
        await self.enqueue(queued)
        ending = ending or {}
        requeued, depths = await self._apply(better, max_depth, ending)
        queued += requeued
        if len(numbers) < len(offers):
            left_out = next(url for url in offers if url not in numbers)
            _LOG.warning(
                "%d URLs were left out: %d other paths of the same site have the numbers that each of them may have "
                "(docs/decisions/0012-number-urls-by-site.md). The first one is %s",
                *(len(offers) - len(numbers), PROBES, left_out),
            )
            offers = {url: found for url, found in offers.items() if url in numbers}
        self._recent |= {
            url: RecentUrl(numbers[url], offer.depth if offer.is_good else _REFUSED)
            for url, (offer, _) in offers.items()
        }
        if len(self._recent) > _GENERATION:
            self._less_recent, self._recent = self._recent, {}
        await self._note_sitemaps(offers, numbers)
        nearer = [number for number, depth in ending.items() if depths.get(number, depth) < depth]
        return StoredOffers(numbers, await self.groups(queued), nearer)

    async def enqueue(self, numbers: Collection[int]) -> None:
        """Add the queued URLs among these to the frontier. Every URL that is queued passes here.

        URLs of other buckets are excluded instead, and offered to these buckets.

        While a sample stands, a page that it did not draw is excluded instead, however it was found. The exceptions are
        the targets of redirects, and pages nearer than the depth that was held back, if they were visited before.
        """
        if not numbers:
            return
        if self.bucket is not None:
            await self._offer_to_buckets(numbers)
            terms = {"numbers": json.dumps(list(numbers)), "sentence": ReasonCode.OTHER_BUCKET.sentence}
            await self._sql.execute("leave_to_buckets", **terms)
        listed = json.dumps(list(numbers))
        if await self._sql.fetch("standing_sample"):
            await self._sql.execute("leave_not_drawn", sentence=ReasonCode.SAMPLE.sentence, numbers=listed)
        await self._sql.execute("enqueue", numbers=listed)

    async def dequeue(self, numbers: Collection[int]) -> None:
        """Remove URLs from the frontier. To be called before a column changes of which the frontier has a copy."""
        if numbers:
            await self._sql.execute("dequeue", numbers=json.dumps(list(numbers)))

    async def requeue(self, numbers: Collection[int]) -> None:
        """Queue the excluded and failed URLs among these anew."""
        if numbers:
            await self._sql.execute("requeue", numbers=json.dumps(list(numbers)))
            await self.enqueue(numbers)

    async def _offer_to_buckets(self, numbers: Collection[int]) -> None:
        await self._sql.execute("offer_to_buckets", numbers=json.dumps(list(numbers)))

    async def _insert(self, rows: list[dict[str, object]]) -> set[int]:
        """Insert new URLs; returns the numbers that another worker has inserted since: none on SQLite."""
        await self._sql.insert("url", rows)
        return set()

    async def _compare(
        self, fresh: Mapping[str, FoundOffer], numbers: dict[str, int]
    ) -> tuple[dict[int, dict[str, object]], dict[int, FoundOffer]]:
        """Divide offers into new rows and offers that are better than the stored URL; fills in ``numbers``.

        Executes at most two statements that read URLs, for any paths.
        """
        split_urls = {url: split(url) for url in fresh}
        sites = await self.sites(found.site for found in split_urls.values())
        hashed, stored, apart = await self._hashed(split_urls, sites)
        inserts: dict[int, dict[str, object]] = {}
        better: dict[int, FoundOffer] = {}
        paths = {number: row.path for number, row in stored.items()}
        for url in sorted(fresh, key=apart.__contains__):  # those that have the number of their hash come first
            (offer, found_on), path, number = fresh[url], split_urls[url].path, hashed[url]
            if url in apart:
                free = next((each for each in numbers_from(number) if paths.setdefault(each, path) == path), None)
                if free is None:
                    continue
                number = free
            paths[number] = path
            numbers[url] = number
            if number in stored:
                if weigh(_known(stored[number]), offer) is not None:
                    better[number] = FoundOffer(offer, found_on)
            else:
                refusal = offer.refusal
                inserts[number] = {
                    "id": number,
                    "path": path,
                    "state": State.QUEUED if refusal is None else State.EXCLUDED,
                    "reason_code": ReasonCode.NEW if refusal is None else refusal.code,
                    "reason": "" if refusal is None else refusal.sentence,
                    "depth": offer.depth,
                    "found_on": found_on,
                    "hops": offer.hops,
                    "seed": offer.seed,
                    "kind": offer.kind,
                    "lastmod": offer.lastmod,
                    "by_domain": offer.by_domain,
                }
        return inserts, better

    async def _note_sitemaps(self, offers: Mapping[str, FoundOffer], numbers: Mapping[str, int]) -> None:
        """Store the facts in offers of URLs that may be known: the date of a page, and that a URL is a sitemap."""
        dated = [{"lastmod": o.lastmod, "id": numbers[o.url]} for o, _ in offers.values() if o.lastmod is not None]
        named = [{"found_on": on, "id": numbers[o.url]} for o, on in offers.values() if o.kind is Kind.SITEMAP]
        await self._sql.update("url", dated)
        await self._sql.execute_many("make_sitemap", named)
        if self.bucket is not None and (dated or named):
            stated = [o.url for o, _ in offers.values() if o.lastmod is not None or o.kind is Kind.SITEMAP]
            await self._offer_to_buckets([numbers[url] for url in stated])

    async def _stored(self, numbers: Iterable[int]) -> list[Any]:
        return await self._sql.fetch("known_urls", numbers=json.dumps(list(numbers)))

    async def _hashed(
        self, split_urls: Mapping[str, SiteAndPath], sites: Mapping[str, int]
    ) -> tuple[dict[str, int], dict[int, Any], set[str]]:
        """The numbers that URLs on these ``sites`` have by their hash, and the stored URLs with these numbers.

        Also the URLs whose number another path has, too. The stored URLs include all with the numbers that follow it.
        """
        key = await self._hash_key()
        hashed = {url: url_number(sites[p.site], p.path, key) for url, p in split_urls.items() if p.site in sites}
        stored = {row.id: row for row in await self._stored(hashed.values())}
        shared = {number for number, urls in Counter(hashed.values()).items() if urls > 1}
        apart = {
            url
            for url, number in hashed.items()
            if number in shared or (number in stored and stored[number].path != split_urls[url].path)
        }
        if wanted := {each for url in apart for each in numbers_from(hashed[url])}:
            stored |= {row.id: row for row in await self._stored(wanted)}
        return hashed, stored, apart

    async def locked(self, numbers: Collection[int]) -> dict[int, Any]:
        """The stored rows of these URLs, by number. No other worker changes them until the transaction ends."""
        if not numbers:
            return {}
        return {row.id: row for row in await self._sql.fetch("locked_urls", numbers=json.dumps(list(numbers)))}

    async def _apply(
        self, better: Mapping[int, FoundOffer], max_depth: int | None, ending: Collection[int] = ()
    ) -> tuple[list[int], dict[int, int]]:
        """Apply better offers of known URLs and all that follows: a page nearer to a seed brings its outlinks nearer.

        Returns the numbers of the URLs that were queued anew, and the depths of all that were locked.
        """
        requeued: list[int] = []
        stored = await self.locked({*better, *ending})
        depths = {number: row.depth for number, row in stored.items()}
        while better:
            changes: dict[int, tuple[UrlChange, int | None]] = {}
            for number, (offer, found_on) in better.items():
                if change := weigh(_known(stored[number]), offer):
                    changes[number] = (change, found_on)
            await self._write(changes, {number: row.state for number, row in stored.items()})
            requeued += [number for number, (change, _) in changes.items() if change.requeue]
            depths |= {number: change.depth for number, (change, _) in changes.items()}
            better = await self._entailed(list(changes), max_depth)
            stored = await self.locked(better)
        return requeued, depths

    async def bring_targets_nearer(self, numbers: list[int], max_depth: int | None) -> set[int]:
        """Apply what follows from a lower depth of these pages; returns the groups that have new work."""
        requeued, _ = await self._apply(await self._entailed(numbers, max_depth), max_depth)
        return await self.groups(requeued)

    async def _write(self, changes: dict[int, tuple[UrlChange, int | None]], states: Mapping[int, str]) -> None:
        moved = [n for n, (change, _) in changes.items() if change.requeue or states[n] == State.QUEUED]
        await self.dequeue(moved)
        await self._sql.execute_many(
            "change_url",
            [
                {
                    "id": number,
                    "depth": change.depth,
                    "hops": change.hops,
                    "state": State.QUEUED if change.requeue else states[number],
                    "reason_code": change.reason.code,
                    "reason": change.reason.sentence,
                    "found_on": found_on,
                    "seed": change.seed,
                    "by_domain": change.by_domain if change.requeue else None,
                }
                for number, (change, found_on) in changes.items()
            ],
        )
        await self.enqueue(moved)

    async def _entailed(self, numbers: list[int], max_depth: int | None) -> dict[int, FoundOffer]:
        """The better offers that a lower depth of these pages makes to the URLs that they link or redirect to."""
        best: dict[int, int] = {}
        for row in await self._sql.fetch("links_of", numbers=json.dumps(numbers)):
            best[row.target] = min(row.depth, best.get(row.target, row.depth))
        better: dict[int, FoundOffer] = {}
        for row in await self._stored(best):
            known = _known(row)
            offer = passed_on(known, best[row.id], max_depth)
            if weigh(known, offer) is not None:
                better[row.id] = FoundOffer(offer, None)
        return better

    async def lock_groups(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        """Keep other workers from changing these groups until the transaction ends. SQLite has one writer: no-op."""

    async def refresh(
        self, groups: set[int], pages_per_site: int | None = None, released: Collection[int] = ()
    ) -> None:
        """Lock these groups, and :meth:`recompute` them with nothing held back."""
        if groups:
            await self.lock_groups(groups, ())
            await self.recompute(groups, pages_per_site, None, released)

    async def recompute(
        self, groups: set[int], pages_per_site: int | None, below_depth: int | None, released: Collection[int] = ()
    ) -> None:
        """Recompute when each of these groups is ready, which are locked, and release some of them.

        URLs as deep as ``below_depth`` wait.
        """
        if groups:
            limits = {"pages_per_site": unlimited(pages_per_site), "below_depth": unlimited(below_depth)}
            lists = {"groups": json.dumps(list(groups)), "released": json.dumps(list(released))}
            await self._sql.execute("refresh_ready", **lists, **limits)

    async def refresh_all(self, pages_per_site: int | None) -> None:
        """Recompute when each group is ready, with nothing held back."""
        limits = {"pages_per_site": unlimited(pages_per_site), "below_depth": unlimited(None)}
        stale = await self._sql.fetch("stale_groups", **limits)
        await self.refresh({group.id for group in stale}, pages_per_site)

    async def groups(self, numbers: Iterable[int]) -> set[int]:
        """The politeness groups of these URLs."""
        return await self.groups_of({site_of(number) for number in numbers})

    async def groups_of(self, sites: set[int]) -> set[int]:
        """The politeness groups of these sites."""
        if missing := sites - self._groups.keys():
            rows = await self._sql.fetch("sites", sites=json.dumps(list(missing)))
            self._groups |= {row.id: row.group_id for row in rows}
        return {self._groups[site] for site in sites if site in self._groups}
