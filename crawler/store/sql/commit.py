"""One commit: store a batch of results, release groups, claim the next ones, all in one transaction."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.politeness import Pace
from crawler.frontier.refusals import RefusalNews
from crawler.frontier.revisit import BACK
from crawler.model import Kind, Resource, RobotsAction, State
from crawler.reasons import ReasonCode
from crawler.robots.mirrors import Contradiction
from crawler.robots.text import SMALL_BYTES
from crawler.store.rows import (
    Claim,
    ClaimLimits,
    CommitBatch,
    CommitResult,
    Heard,
    PageGrant,
    Refuted,
    RequestRow,
    RobotsNews,
    RobotsTarget,
    SiteNews,
    UrlLimits,
)
from crawler.store.sql.contents import answer_id, set_id, tls_id, tls_rows
from crawler.store.sql.offers import FoundOffer, merge_sitemap_facts
from crawler.store.sql.revisits import seen_from
from crawler.store.sql.section import StoreSection
from crawler.store.sql.site_rows import OF_COPY, claimed_site, heard_from
from crawler.store.sql.tables import Row
from crawler.store.sql.unread import unread_row
from crawler.store.sql.workers import pace_of, pace_row
from crawler.store.statements import unlimited
from crawler.url import ROBOTS_PATH, registered_domain, split

if TYPE_CHECKING:
    from crawler.rup.protocol.info import FoundInfo
    from crawler.store.sql.store import Store

_MANY_GROUPS = 4000  # beyond this number of groups their distribution among workers does not matter
#: When a site may be asked that waits for a URL of another bucket, or that is of another bucket: never in this run.
_NOT_IN_THIS_RUN = 1e11
_LONGEST_COMMIT_S = 60.0  # a row that another worker wrote that long ago may have been committed just now

# Rows of what a commit has many of are tuples: a mapping costs more.
_LINK = ("source", "target", "anchor", "rel", "follow")
LinkRow = tuple[int, int, str, str, int]

#: The columns of a page that have the name of a field: of its facts, and of the page itself.
_OF_FACTS = (
    "charset",
    "title",
    "description",
    "keywords",
    "canonical_url",
    "meta_url",
    "document_state",
    "note",
    "text_sha256",
    "language",
)
_OF_PAGE = ("status", "content_type", "fetched_at", "body_bytes", "etag", "last_modified")
#: As above, of a request.
_OF_REQUEST = (
    *("site_id", "path", "purpose", "started_at", "finished_at", "status", "bytes", "retry_after_s", "robots_id"),
    *("verdict_line", "for_site_id", "location", "lag_s", "address", "price"),
)
REQUEST = (*_OF_REQUEST, "run_id", "tls_id", "error_kind", "error")
_facts_of, _page_of, _request_of = attrgetter(*_OF_FACTS), attrgetter(*_OF_PAGE), attrgetter(*_OF_REQUEST)


class Committer(StoreSection):
    """Executes the commits of one worker. Every method must be called within a transaction."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.begin(0)

    def begin(self, run_id: int) -> None:
        """Commit for this run from now on."""
        self._run_id = run_id
        self._worst_lag_s = 0.0
        self._mirrors_read_at = 0.0

    async def commit(self, batch: CommitBatch) -> CommitResult:
        """Store a batch; see :meth:`crawler.store.sql.store.Store.commit`."""
        limits = batch.limits
        opened = {news.site_id for news in batch.refusals if news.is_open}
        if opened:
            await self._sql.execute("forget_refusals", sites=json.dumps(sorted(opened)))
        touched, robots_ids, moved = await self._store_news(batch)
        touched |= set(batch.released) | await self._offers.groups_of(await self._store_waits(batch))
        if batch.outcomes:
            touched |= await self._store_outcomes(batch.outcomes, limits.max_depth)
            taken = sorted({outcome.adopted_host for outcome in batch.outcomes if outcome.adopted_host is not None})
            adopted = [{"host": host, "found_at": batch.now} for host in taken]
            await self._sql.insert("adopted_host", adopted, known="kept")
            read = [outcome.queued.id for outcome in batch.outcomes if not outcome.awaits_licence]
            await self._sql.execute("drop_unread", numbers=json.dumps(read))
            hints = [hint for outcome in batch.outcomes for hint in outcome.hints]
            if hints:
                await self._revisits.apply_hints(hints, batch.now)
        for news in batch.refusals:
            if news.queues_again:
                await self._queue_refused([news.site_id], news.queues_again)
        refuted = [*batch.refuted, *await self._refuted_mirrors(batch.suspected_mains)]
        for each in refuted:
            row = each._asdict() | {"now": batch.now}
            await self._sql.execute("refute_mirror", **row)
            await self._sql.update("site", [{"name": each.site, "main_site": None}], "name")
        moved += [each.site for each in refuted]
        moved += await self._decided_under_refuted(batch.outcomes)
        if moved:  # after the outcomes, which were decided under the old main site
            touched |= await self._requeue_behind_mirrors(moved)
        await self._offers.lock_groups(touched, batch.paces)
        await self._store_paces(batch.paces)
        if batch.worst_lag_s > self._worst_lag_s:
            self._worst_lag_s = batch.worst_lag_s
            await self._sql.update("run", [{"id": self._run_id, "worst_lag_s": batch.worst_lag_s}])
        await self._offers.recompute(touched, limits.pages_per_site, limits.below_depth, batch.released)
        heard, workers, share = Heard([], refuted, []), 1, None
        if self._workers.lease_s is not None:
            heard, workers, share = await self._hear_of_workers(batch.now)
        claims, grant = await self._claim_share(batch.now, batch.claim_limits, limits, workers, share)
        await self._log(batch)
        return CommitResult(claims, robots_ids, grant, share, heard)

    async def commit_late(self, news: SiteNews) -> None:
        """Store the news of a worker that has lost its lease.

        A refusing site that has opened stays as it is: the worker that has its group now learns that from its own
        answers. Refusals since then are added to those that are stored.
        """
        sites = json.dumps([each.site_id for each in news.robots])
        in_force = {row.site_id: row.fetched_at for row in await self._sql.fetch("robots_in_force", sites=sites)}
        latest = {each.site_id: each for each in news.robots}
        robots = [each for site, each in latest.items() if in_force.get(site, -inf) <= each.copy.fetched_at]
        touched, _, moved = await self._store_news(dataclasses.replace(news, robots=robots))
        touched |= await self._offers.groups_of(set(latest))
        if moved:
            touched |= await self._requeue_behind_mirrors(moved)
        await self._offers.lock_groups(touched, news.paces)
        await self._store_paces(news.paces)
        await self._offers.recompute(touched, news.limits.pages_per_site, news.limits.below_depth)
        await self._log(news)

    async def _store_news(self, news: SiteNews) -> tuple[set[int], dict[int, int], list[str]]:
        """Store what answers have told about sites, all but the paces and the log.

        Returns the groups that may be ready, the numbers of the robots copies by site, and the sites that name another
        main site than before.
        """
        await self._store_refusals(news)
        robots, woken = await self._end_waits(news.robots)
        moved = await self._moved(robots)
        robots_ids = await self._store_robots(robots, news.now)
        files = [{"site_id": site_id} | file._asdict() for (site_id, _), file in news.files.items()]
        await self._sql.insert("site_file", files, known="replaced", newest="fetched_at")
        touched = await self._offers.groups_of(woken | {each.site_id for each in news.refusals})
        sitemaps = {offer.url: FoundOffer(offer, None) for each in robots for offer in each.sitemaps}
        touched |= (await self._offers.store(sitemaps, news.limits.max_depth)).touched
        return touched, robots_ids, moved

    async def _store_paces(self, paces: Mapping[str, Pace]) -> None:
        await self._sql.execute_many("set_pace", [pace_row(name, pace) for name, pace in paces.items()])

    async def _hear_of_workers(self, now: float) -> tuple[Heard, int, int]:
        """What all workers have heard since the last call, their number, and the share of the groups of each."""
        since, self._mirrors_read_at = self._mirrors_read_at - _LONGEST_COMMIT_S, now
        news = await self._sql.fetch_one("news_of_workers", limit=_MANY_GROUPS, now=now, since=since)
        workers = max(1, int(news.workers))
        return heard_from(json.loads(news.heard or "[]")), workers, -(-int(news.groups) // workers)

    async def _refuted_mirrors(self, suspected_mains: Mapping[str, Contradiction]) -> list[Refuted]:
        """The mirrors of those suspected main sites that have no page, and none to come if they can be had."""
        refuted = []
        for main_site, why in suspected_mains.items():
            row = await self._sql.fetch_one("pages_of_main", site=main_site)
            if row is None or row.fetched or (row.is_waiting and why is not Contradiction.UNREACHABLE):
                continue
            mirrors = await self._sql.fetch("mirrors_of", main_site=main_site)
            refuted += [Refuted(mirror.site, main_site, why) for mirror in mirrors]
        return refuted

    async def _decided_under_refuted(self, outcomes: Iterable[Outcome]) -> list[str]:
        """The sites of URLs that a worker left to a main site before it heard that this is none."""
        sites = {split(o.queued.url).site for o in outcomes if o.reason.code is ReasonCode.MIRROR}
        rows = await self._sql.fetch("refuted_among", sites=json.dumps(sorted(sites))) if sites else []
        return [row.site for row in rows]

    async def _claim_share(
        self, now: float, limits: ClaimLimits, urls: UrlLimits, workers: int, share: int | None
    ) -> tuple[list[Claim], PageGrant | None]:
        """Claim no more than the share of this worker, and reserve pages for it if there is a limit on pages.

        Returns the claims, and the pages reserved.
        """
        groups = limits.groups if share is None else max(0, min(limits.groups, share - limits.held))
        if (asked := limits.pages) is None:
            return await self._claim(now, limits._replace(groups=groups), urls), None
        left, others = await self._workers.pages_left(asked.limit)
        claims = await self._claim(now, limits._replace(groups=groups if left > 0 else 0), urls)
        pages = asked.granted(left, others, workers, has_groups=bool(limits.held or claims))
        await self._workers.reserve(pages)
        return claims, PageGrant(pages, left)

    async def _store_outcomes(self, outcomes: list[Outcome], max_depth: int | None) -> set[int]:
        offers: dict[str, FoundOffer] = {}
        numbers: dict[str, int] = {}
        for outcome in outcomes:
            self._offers.weed(outcome.offers, outcome.queued.id, offers, numbers)
        for outcome in outcomes:
            if outcome.queued.kind is Kind.SITEMAP:
                merge_sitemap_facts([FoundOffer(offer, outcome.queued.id) for offer in outcome.offers], offers)
        stored = await self._offers.store(offers, max_depth, {o.queued.id: o.queued.depth for o in outcomes})
        numbers |= stored.numbers
        outcomes = await self._without_stale(outcomes)
        await self._end_urls(outcomes, numbers)
        pages = [outcome for outcome in outcomes if outcome.page is not None]
        if pages:
            await self._store_pages(pages, numbers)
        offered = [rup_offer_row(outcome.rupinfo) for outcome in outcomes if outcome.rupinfo is not None]
        await self._sql.insert("rup_offer", offered, known="replaced")
        if stored.nearer:  # while they were being fetched: their outlinks come nearer, too
            return stored.touched | await self._offers.bring_targets_nearer(stored.nearer, max_depth)
        return stored.touched

    async def _without_stale(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Drop each exclusion by depth or type if the depth or the kind of its URL has changed since the claim."""
        claimed = {o.queued.id: o.queued for o in outcomes if o.reason.code in (ReasonCode.DEPTH, ReasonCode.TYPE)}
        if not claimed:
            return outcomes
        rows = await self._sql.fetch("known_urls", numbers=json.dumps(list(claimed)))
        stale = {row.id for row in rows if row.depth < claimed[row.id].depth or row.kind != claimed[row.id].kind}
        return [o for o in outcomes if o.queued.id not in stale]

    async def _end_urls(self, outcomes: list[Outcome], numbers: Mapping[str, int]) -> None:
        await self._offers.dequeue([o.queued.id for o in outcomes])
        await self._sql.execute_many(
            "end_url",
            [
                {
                    "id": o.queued.id,
                    "state": o.state,
                    "reason_code": o.reason.code,
                    "reason": o.reason.sentence,
                    "attempts": o.queued.attempts + _is_attempt(o),
                    "target": None if o.target is None else numbers.get(o.target),
                    "due_at": o.retry_at or 0.0,
                    "kind": o.queued.kind,
                }
                for o in outcomes
                if not _restores(o)
            ],
        )
        await self._revisits.end([o for o in outcomes if o.revisit is not None])
        await self._offers.enqueue([o.queued.id for o in outcomes if o.state is State.QUEUED])

    async def _store_pages(self, outcomes: list[Outcome], numbers: Mapping[str, int]) -> None:
        pages: list[tuple[object, ...]] = []
        links: list[LinkRow] = []
        own: Row = {}
        for outcome in outcomes:
            page, number = outcome.page, outcome.queued.id
            assert page is not None
            facts = page.facts
            own = {
                "url_id": number,
                "noindex": not facts.index,
                "nofollow": not facts.follow,
                "sha256": None if page.body is None else page.body.sha256,
                "other_schemes": json.dumps(facts.other_schemes) if facts.other_schemes else None,
                "directives": json.dumps(facts.directives) if facts.directives else None,
                "version": 1 if outcome.queued.seen is None else outcome.queued.seen.version + 1,
                "last_seen_at": None,
                "gone_at": None,
                "preferences_id": set_id(outcome.own_preferences),
                "robots_preferences_id": set_id(outcome.robots_preferences),
                "answer_id": answer_id(page.answer),
                "resources": _resources(facts.resources),
                "soft_404": None if facts.soft_404 is None else int(facts.soft_404),
            }
            pages.append((*_facts_of(facts), *_page_of(page), *own.values()))
            links += [
                (number, numbers[link.url], link.anchor, link.rel, int(link.follow))  # SQLite converts a bool slowly
                for link in outcome.links
                if link.url in numbers
            ]
        await self._sql.insert("page", pages, known="replaced", columns=(*_OF_FACTS, *_OF_PAGE, *own))
        await self._sql.insert("link", links, known="replaced", columns=_LINK)
        new = [o.queued for o in outcomes if o.queued.seen is None or not o.queued.seen.version]
        fetched = Counter(queued.site_id for queued in new if queued.kind is Kind.PAGE)
        await self._sql.execute_many("count_fetched", [{"pages": n, "site_id": site} for site, n in fetched.items()])

    async def put_contents(self, contents: Mapping[str, Sequence[Row]]) -> None:
        """Store rows that are named by their content, by table: bodies, answers, and preferences about use."""
        for table, rows in contents.items():
            await self._sql.insert(table, rows, known="kept")

    async def _insert_requests(self, rows: list[tuple[object, ...]]) -> None:
        await self._sql.insert("request", rows, columns=REQUEST)

    async def _log(self, news: SiteNews) -> None:
        """Log requests, and keep those answers that are not read yet.

        On PostgreSQL this acquires the lock that numbers requests: it must come last in a commit.
        """
        unread = [unread_row(url_id, answer) for url_id, answer in news.unread.items()]
        await self._sql.execute_many("put_unread", unread)
        await self._sql.insert("tls", tls_rows(news.requests), known="kept")
        await self._insert_requests([_request_row(request, self._run_id) for request in news.requests])
        for broken in news.broken_bodies:
            row = broken._asdict() | {"error_kind": broken.error.kind, "error": broken.error.sentence}
            await self._sql.execute("set_body_error", **row)

    async def _store_robots(self, robots: Sequence[RobotsNews], now: float) -> dict[int, int]:
        """Put robots copies in force, one of each site; the copy before it ends when this one begins.

        Returns their numbers by site. A broad crawl commits hundreds at once, so each statement gets all of them.
        """
        if not robots:
            return {}
        texts = {news.copy.sha256: news.copy.body for news in robots if news.copy.action is RobotsAction.PARSE}
        small = [{"sha256": sha256, "body": body} for sha256, body in sorted(texts.items()) if body is not None]
        await self._sql.insert("robots_text", small, known="kept")
        await self._sql.execute_many(
            "close_robots_copy", [{"now": news.copy.fetched_at, "site_id": news.site_id} for news in robots]
        )
        await self._sql.insert(
            "robots_copy",
            [
                {name: getattr(copy, name) for name in OF_COPY}
                | {
                    "site_id": news.site_id,
                    "sha256": copy.sha256 if copy.action is RobotsAction.PARSE else None,
                    "valid_from": copy.fetched_at,
                    "valid_until": copy.expires_at,
                    "run_id": self._run_id,
                    "answered_by": news.answered_by,
                    "headers": json.dumps(news.headers),
                }
                for news in robots
                for copy in (news.copy,)
            ],
        )
        sites = json.dumps([news.site_id for news in robots])
        ids = {row.site_id: row.id for row in await self._sql.fetch("last_robots_copies", sites=sites)}
        await self._sql.update(
            "site",
            [
                {
                    "id": news.site_id,
                    "robots_id": ids[news.site_id],
                    "robots_needs": None,
                    "robots_until": (news.copy.retry_at if _is_deferred(news) else news.not_before) or 0.0,
                    "crawl_delay_s": news.crawl_delay_s,
                    "main_site": news.main_site,
                }
                for news in robots
            ],
        )
        await self._store_mirrors(robots, now)
        heard = [news for news in robots if not _is_deferred(news)]  # else the last lines received hold
        await self._sql.delete("agent_server", "site_id", [news.site_id for news in heard])
        await self._sql.insert(
            "agent_server",
            [
                {"site_id": news.site_id, "line": line.number, "path": line.path, "agent_server": line.url}
                for news in heard
                for line in news.agent_servers
            ],
        )
        return ids

    async def _end_waits(self, robots: Sequence[RobotsNews]) -> tuple[list[RobotsNews], set[int]]:
        """End the waits of sites that get a copy. Returns the copies to store, and the sites whose groups may be ready.

        A copy for a site that waited is not stored if the site waits no longer: it has asked by itself meanwhile.
        """
        if not robots:
            return [], set()
        ended = await self._sql.fetch("end_robots_waits", sites=json.dumps([news.site_id for news in robots]))
        waited = {row.site_id for row in ended} - {news.site_id for news in robots if news.not_before is None}
        kept = [news for news in robots if news.not_before is None or news.site_id in waited]
        return kept, {number for row in ended for number in (row.site_id, row.target_id)}

    async def _store_waits(self, batch: CommitBatch) -> set[int]:
        """Begin waits for robots.txt of other sites, and end those that are over. Returns the sites as above."""
        touched: set[int] = set()
        if batch.robots_waits:
            sites = await self._offers.sites([wait.target.site for wait in batch.robots_waits])
            for wait in batch.robots_waits:
                target = sites[wait.target.site]
                touched |= {wait.site_id, target}
                row = {
                    "site_id": wait.site_id,
                    "target_id": target,
                    "path": wait.target.path,
                    "seen": json.dumps(wait.seen),
                    "hops": wait.target.hops,
                }
                await self._sql.insert("robots_wait", [row], known="replaced")
                circle = await self._sql.fetch_one("waits_for_itself", site_id=wait.site_id)
                needs = f"{wait.target.site}{wait.target.path}"
                times = {wait.site_id: 0.0 if circle.is_circle else wait.until}
                if self._offers.is_elsewhere(wait.target.site):
                    # Another bucket publishes robots.txt files and licences. A file behind another path never comes.
                    is_published = wait.target.path == ROBOTS_PATH or not wait.seen
                    times = {wait.site_id: _NOT_IN_THIS_RUN if is_published else 0.0, target: _NOT_IN_THIS_RUN}
                for site, until in times.items():
                    await self._sql.execute("set_robots_until", until=until, needs=needs, sites=json.dumps([site]))
        for hold in batch.holds:  # of pages alone: other sites may wait for a URL of the site
            touched.add(hold.site_id)
            await self._sql.execute("hold_pages", **hold._asdict())
            await self._sql.execute("hold_pages_in_frontier", site_id=hold.site_id, until=hold.until)
        for answered in batch.targets_answered:
            rows = await self._sql.fetch("robots_waits", site=answered.site, path=answered.path)
            if woken := [row.site_id for row in rows if row.seen == "[]"]:
                for row in await self._sql.fetch("end_robots_waits", sites=json.dumps(woken)):
                    touched |= {row.site_id, row.target_id}
                await self._sql.execute("set_robots_until", until=0.0, needs=None, sites=json.dumps(woken))
        return touched

    async def _store_refusals(self, news: SiteNews) -> None:
        """Add the refusals of sites to those that are stored."""
        latest: dict[int, RefusalNews] = {}  # none follows the one that begins a rest
        for each in news.refusals:
            earlier = latest.get(each.site_id)
            latest[each.site_id] = each if earlier is None or each.is_open else each._replace(before=earlier.before)
        rows = [
            {
                "walls": each.refusals.walls - each.before.walls,
                "refused": each.refusals.refused - each.before.refused,
                "front_refused": int(each.refusals.front_refused),
                "rest_count": each.refusals.rest_count,
                "rests_until": each.rests_until,
                "probe": each.refusals.probe,
                "closed": int(each.refusals.closed),
                "now": news.now,
                "site_id": site_id,
            }
            for site_id, each in latest.items()
        ]
        await self._sql.execute_many("add_refusals", rows)

    async def _queue_refused(self, sites: list[int], codes: Collection[ReasonCode]) -> None:
        """Queue the URLs of sites that failed or were excluded for one of these reasons."""
        rows = await self._sql.fetch("refused_of", sites=json.dumps(sites), codes=json.dumps(sorted(codes)))
        await self._offers.requeue([row.id for row in rows])

    async def forget_refusals(self, sites: Sequence[str], now: float) -> None:
        """Open sites that rest or are closed because of refusals, and queue what they refused."""
        rows = await self._sql.fetch("refusing_of", sites=json.dumps(list(sites)))
        ids = [row.id for row in rows]
        if not ids:
            return
        await self._sql.execute("forget_refusals", sites=json.dumps(ids))
        walled = json.dumps([row.id for row in rows if row.is_walled])
        await self._sql.execute("forget_walls", sites=walled, now=now)
        await self._sql.execute("set_robots_until", until=0.0, needs=None, sites=walled)
        await self._queue_refused(ids, (ReasonCode.WALL, ReasonCode.REFUSED_AT_THE_EDGE))
        await self._offers.refresh({row.group_id for row in rows})

    async def _store_mirrors(self, robots: Sequence[RobotsNews], now: float) -> None:
        named = {news.site: news.main_site if news.refuted is None else news.refuted.main_site for news in robots}
        unnamed = [site for site, main in named.items() if main is None]
        await self._sql.execute("drop_mirrors", sites=json.dumps(unnamed))
        rows = [
            {
                "site": news.site,
                "main_site": named[news.site],
                "evidence": "host" if news.refuted is None else "refuted",
                "contradiction": None if news.refuted is None else news.refuted.contradiction,
                "seen_at": now,
                "sample": None,
                "confidence": None,
            }
            for news in robots
            if named[news.site] is not None
        ]
        await self._sql.insert("mirror", rows, known="replaced")

    async def _moved(self, robots: Sequence[RobotsNews]) -> list[str]:
        """The sites that name another main site than before, or none any more."""
        sites = json.dumps([news.site_id for news in robots])
        rows = await self._sql.fetch("sites", sites=sites) if robots else []
        before = {row.id: row.main_site for row in rows}
        return [news.site for news in robots if before.get(news.site_id, news.main_site) != news.main_site]

    async def _requeue_behind_mirrors(self, sites: list[str]) -> set[int]:
        """Queue the URLs that were excluded as a mirror's, if its site or a site on the way names another main site."""
        behind = await self._sql.fetch("urls_behind_mirrors", sites=json.dumps(sites))
        numbers = [row.id for row in behind]
        await self._offers.requeue(numbers)
        return await self._offers.groups(numbers)

    async def _claim(self, now: float, limits: ClaimLimits, urls: UrlLimits) -> list[Claim]:
        if limits.groups <= 0:
            return []
        until = now + limits.horizon_s
        rows = await self._sql.fetch("claim_groups", worker=self._workers.id, until=until, limit=limits.groups)
        groups = sorted(rows, key=attrgetter("ready_at"))
        claims = {g.id: Claim(g.id, g.name, pace_of(g), {}, []) for g in groups}
        if not claims:
            return []
        batches: dict[int, list[list[Queued]]] = {group: [] for group in claims}
        for site in await self._sql.fetch(
            "claimed_sites",
            until=until,
            limit=limits.urls_per_group,
            groups=json.dumps(list(claims)),
            pages_per_site=unlimited(urls.pages_per_site),
            below_depth=unlimited(urls.below_depth),
            small=SMALL_BYTES,
        ):
            claims[site.group_id].sites[site.id] = claimed_site(site)
            batch = [_queued(url, site) for url in _in_order(json.loads(site.urls or "[]"), site.probe)]
            if claims[site.group_id].sites[site.id].refusals.is_probed:
                batch = batch[:1]
            batches[site.group_id].append(_within(batch, site.page_limit - site.fetched))
        for group in groups:
            claim = claims[group.id]
            claim.urls = _interleaved(batches[group.id])[: limits.urls_per_group]
            is_probed = any(site.refusals.is_probed for site in claim.sites.values())
            targets = [RobotsTarget(**target) for target in json.loads(group.targets or "[]")]
            for target in sorted(targets, key=lambda target: target.path != ROBOTS_PATH):
                if target.path == ROBOTS_PATH or not (claim.targets or (claim.urls and is_probed)):
                    claim.targets.append(target)
        return list(claims.values())


def _queued(url: dict[str, Any], site: Any) -> Queued:
    """A URL of a claim, from the JSON of ``claimed_sites``."""
    return Queued(
        **{name: url[name] for name in ("id", "depth", "attempts", "hops", "due_at")},
        url=site.name + url["path"],
        site_id=site.id,
        seed=bool(url["seed"]),
        kind=Kind(url["kind"]),
        seen=seen_from(url["seen"]),
        by_domain=bool(url["by_domain"]),
        is_answered=bool(url["is_answered"]),
    )


def _in_order(urls: list[dict[str, Any]], probe: int | None) -> list[dict[str, Any]]:
    """The probe first, then what is due first, then what is nearest to a seed."""
    return sorted(urls, key=lambda url: (url["id"] != probe, url["due_at"], url["depth"], url["id"]))


def _resources(resources: tuple[Resource, ...]) -> str | None:
    named = [one._asdict() | {"registered_domain": registered_domain(one.host)} for one in resources]
    return json.dumps(named, ensure_ascii=False) if named else None


def _request_row(request: RequestRow, run_id: int) -> tuple[object, ...]:
    """A row of the columns :data:`REQUEST`."""
    error = request.error
    kind, sentence = (None, None) if error is None else (error.kind, error.sentence)
    return (*_request_of(request), run_id, tls_id(request.tls), kind, sentence)


def _is_attempt(outcome: Outcome) -> bool:
    """Whether a visit counts among those that failed."""
    return not outcome.awaits_licence and (outcome.retry_at is not None or outcome.state is State.FAILED)


def _restores(outcome: Outcome) -> bool:
    """Whether a revisit leaves the URL and its target as they were."""
    return outcome.revisit is not None and outcome.revisit.found in BACK


def _within(batch: list[Queued], pages: int) -> list[Queued]:
    """At most this number of new pages, and all revisits: limits on pages do not count them."""
    if len(batch) <= pages:
        return batch
    new = [queued for queued in batch if queued.seen is None][: max(0, pages)]
    return [queued for queued in batch if queued.seen is not None or queued in new]


def rup_offer_row(offered: FoundInfo) -> dict[str, object]:
    """The contents of a /rupinfo.txt, as parameters of the statement ``put_rup_offer``."""
    info = offered.info
    return {
        "site": offered.site,
        "url": offered.url,
        "found_at": offered.found_at,
        "cgi": info.cgi,
        "authentifier": info.authentifier,
        "latencies": json.dumps(info.latencies),
        "exclude": json.dumps(info.exclude),
        "include_only": json.dumps(info.include_only),
        "max_query_span": None if info.max_query_span is None else str(info.max_query_span),
    }


def _is_deferred(news: RobotsNews) -> bool:
    return news.copy.action is RobotsAction.DEFER


def _interleaved(batches: list[list[Queued]]) -> list[Queued]:
    """The URLs of a group's sites: one of each site, then the next of each."""
    return [queued for urls in zip_longest(*batches) for queued in urls if queued is not None]
