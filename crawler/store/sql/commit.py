"""One turn of the SQLite store: take in what is finished, release, claim; all in one transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import Pace
from crawler.frontier.revisit import BACK
from crawler.model import Body, Kind, RobotsAction, RobotsCopy, State
from crawler.reasons import ReasonCode
from crawler.store.coordination import PageGrant
from crawler.store.protocols import Claim, ClaimedSite, ClaimLimits, CommitBatch, CommitResult, RobotsNews
from crawler.store.sql.offers import Offers, heed_sitemap, is_better
from crawler.store.sql.revisits import Revisits, seen_from
from crawler.store.sql.subscriptions import write_offer
from crawler.store.sql.workers import Workers
from crawler.store.sqlite.connection import Database, every, one

_UNLIMITED = 1 << 62
_MANY = 4000  # groups, of which it does not matter who has more
_LONGEST_TURN_S = 60.0  # what another worker noted so long ago may have been committed just now


LinkRow = tuple[int, int, str, str, bool]  # as insert_link takes it


class TurnTaker:
    """Executes the turns of one worker. Call within a transaction only."""

    def __init__(self, db: Database, queries: Mapping[str, str], offers: Offers, workers: Workers, run_id: int) -> None:
        self._db = db
        self._sql = queries
        self._offers = offers
        self._workers = workers
        self._revisits = Revisits(db, queries, offers)
        self._run_id = run_id
        self._worst_lag_s = 0.0
        self._looked_at = 0.0

    async def take(self, batch: CommitBatch) -> CommitResult:
        touched = set(batch.released)
        moved = [news.site for news in batch.robots if await self._has_moved(news)]
        robots_ids = {news.site_id: await self._take_robots(news, batch.now) for news in batch.robots}
        sitemaps: dict[str, tuple[Offer, int | None]] = {
            offer.url: (offer, None) for news in batch.robots for offer in news.sitemaps
        }
        touched |= (await self._offers.take(sitemaps, batch.limits.max_depth))[1]
        if batch.outcomes:
            touched |= await self._take_outcomes(batch.outcomes, batch.limits.max_depth)
            hints = [hint for outcome in batch.outcomes for hint in outcome.hints]
            if hints:
                await self._revisits.take_hints(hints, batch.now)
        if moved:  # after the outcomes, which were decided on before
            touched |= await self._ask_mirrors_again(moved, batch.limits.max_depth)
        await self._lock_groups(touched, {*batch.paces, *batch.visited})
        await self._keep_paces(batch.paces)
        if batch.released:
            await self._db.execute(self._sql["release_groups"], (json.dumps(batch.released),))
            await self._workers.end_trial(batch.released)
        if batch.visited:
            await self._db.executemany(self._sql["end_visit"], [(name,) for name in batch.visited])
        if batch.worst_lag_s > self._worst_lag_s:
            self._worst_lag_s = batch.worst_lag_s
            await self._db.execute("UPDATE run SET worst_lag_s = ? WHERE id = ?", (batch.worst_lag_s, self._run_id))
        await self.refresh(touched, batch.limits.pages_per_site, batch.limits.below_depth)
        if self._workers.lease_s is None:
            claims, grant, share = await self._claim(batch.now, batch.limits), None, None
        else:
            claims, grant, share = await self._claim_fairly(batch.now, batch.limits)
        if batch.requests:
            await self._log(batch)
        return CommitResult(claims, robots_ids, grant, await self._news_of_mirrors(batch.now), share)

    async def take_late(self, batch: CommitBatch) -> None:
        """Of a worker that has lost its lease: what it sent, and how long sites are to be left alone."""
        await self._lock_groups((), batch.paces)
        await self._keep_paces(batch.paces)
        if batch.requests:
            await self._log(batch)

    async def _keep_paces(self, paces: Mapping[str, Pace]) -> None:
        if paces:
            rows = [(p.next_at, p.pause_s, p.backoff_s, p.waits_for, name) for name, p in paces.items()]
            await self._db.executemany(self._sql["add_groups"], [(name,) for name in paces])
            await self._db.executemany(self._sql["set_pace"], rows)

    async def _news_of_mirrors(self, now: float) -> list[tuple[str, str]]:
        """The mirrors noted since the last turn, by this worker or others; where there are no others, none."""
        if self._workers.lease_s is None:
            return []
        since, self._looked_at = self._looked_at - _LONGEST_TURN_S, now
        return [tuple(row) for row in await every(self._db, self._sql["mirrors_since"], (since,))]

    async def _claim_fairly(self, now: float, limits: ClaimLimits) -> tuple[list[Claim], PageGrant | None, int]:
        """Claims that leave every worker its share of the groups, and under a limit on pages no more groups than this
        worker may have pages for; then the pages that the groups it has now may use."""
        there, workers = await one(self._db, self._sql["groups_and_workers"], (_MANY, now))
        share = -(-int(there) // max(1, int(workers)))
        groups = max(0, min(limits.groups, share - limits.held))
        if limits.max_pages is None:
            return await self._claim(now, replace(limits, groups=groups)), None, share
        left, others = await self._workers.pages_left(limits.max_pages)
        fair = -(-left // max(1, int(workers)))
        most = max(limits.pages_kept, min(fair, left - others))
        spare = max(0, most - max(limits.held, limits.pages_under_way))
        claims = await self._claim(now, replace(limits, groups=min(groups, spare)))
        wanted = limits.pages_under_way + limits.pages_per_group * (limits.held + len(claims))
        pages = max(limits.pages_kept, min(most, wanted))
        await self._workers.set_aside(pages)
        return claims, PageGrant(pages, fair, spare == 0, left <= 0), share

    async def _lock_groups(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        """Where others write at the same time: nobody else changes these groups until the turn is committed."""

    async def refresh(self, groups: set[int], pages_per_site: int | None, below_depth: int | None = None) -> None:
        """Recompute when each of these groups is ready."""
        if groups:
            below = _UNLIMITED if below_depth is None else below_depth
            await self._db.execute(
                self._sql["refresh_ready"], (allowed(pages_per_site), json.dumps(list(groups)), below)
            )

    async def refresh_all(self, pages_per_site: int | None) -> None:
        """The same for every group there is, with nothing held back."""
        await self._db.execute(self._sql["refresh_all"], (allowed(pages_per_site),))

    async def _take_outcomes(self, outcomes: list[Outcome], max_depth: int | None) -> set[int]:
        offers: dict[str, tuple[Offer, int | None]] = {}
        for outcome in outcomes:
            for offer in outcome.offers:
                known = offers.get(offer.url)
                if known is None or is_better(offer, known[0]):
                    offers[offer.url] = (offer, outcome.queued.id)
        for outcome in outcomes:
            if outcome.queued.kind is Kind.SITEMAP:
                heed_sitemap([(offer, outcome.queued.id) for offer in outcome.offers], offers)
        numbers, touched = await self._offers.take(offers, max_depth, [o.queued.id for o in outcomes])
        outcomes = await self._without_stale(outcomes)
        await self._end_urls(outcomes, numbers)
        pages = [outcome for outcome in outcomes if outcome.page is not None]
        if pages:
            await self._write_pages(pages, numbers)
        for outcome in outcomes:
            if outcome.offered is not None:
                await write_offer(self._db, outcome.offered)
        touched |= await self._catch_up(outcomes, max_depth)
        return touched

    async def _without_stale(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Without the URLs that were left out as what they were when claimed: too deep, but known to be nearer by now;
        not of a wanted type, but named as a sitemap since."""
        claimed = {o.queued.id: o.queued for o in outcomes if o.reason.code in (ReasonCode.DEPTH, ReasonCode.TYPE)}
        if not claimed:
            return outcomes
        rows = await every(self._db, self._sql["depths"], (json.dumps(list(claimed)),))
        stale = {n for n, depth, kind in rows if depth < claimed[n].depth or kind != claimed[n].kind}
        return [o for o in outcomes if o.queued.id not in stale]

    async def _end_urls(self, outcomes: list[Outcome], numbers: Mapping[str, int]) -> None:
        await self._db.executemany(self._sql["dequeue"], [(o.queued.id,) for o in outcomes])
        await self._db.executemany(
            self._sql["end_url"],
            [
                (
                    o.state,
                    o.reason.code,
                    o.reason.sentence,
                    o.queued.attempts + (o.retry_at is not None or o.state is State.FAILED),
                    None if o.target is None else numbers.get(o.target),
                    o.retry_at or 0.0,
                    o.queued.kind,
                    o.queued.id,
                )
                for o in outcomes
                if not _goes_back(o)
            ],
        )
        await self._revisits.end([o for o in outcomes if o.again is not None])
        again = [(o.queued.id,) for o in outcomes if o.state is State.QUEUED]
        if again:
            await self._db.executemany(self._sql["enqueue"], again)

    async def _catch_up(self, outcomes: list[Outcome], max_depth: int | None) -> set[int]:
        """Pages that were found to be nearer to the seeds while they were being fetched."""
        claimed = {o.queued.id: o.queued.depth for o in outcomes if o.offers}
        rows = await every(self._db, self._sql["depths"], (json.dumps(list(claimed)),))
        nearer = [number for number, depth, _ in rows if depth < claimed[number]]
        if not nearer:
            return set()
        return await self._offers.settle(await self._offers.entailed(nearer, max_depth), max_depth)

    async def _write_pages(self, outcomes: list[Outcome], numbers: Mapping[str, int]) -> None:
        bodies, pages, links = {}, [], []
        for outcome in outcomes:
            page, number = outcome.page, outcome.queued.id
            assert page is not None
            facts, sha256 = page.facts, None
            if page.body is not None:
                sha256 = page.body.sha256
                bodies[sha256] = page.body
            pages.append(
                (
                    number, page.status, page.content_type, facts.charset, page.fetched_at,
                    facts.title, facts.description, facts.keywords,
                    facts.canonical_url, facts.meta_url, facts.document_state, not facts.index, not facts.follow,
                    sha256, page.body_bytes, page.etag, page.last_modified,
                    json.dumps(facts.other_schemes) if facts.other_schemes else None,
                    json.dumps(facts.directives) if facts.directives else None, facts.note, facts.text_sha256,
                    1 if outcome.queued.seen is None else outcome.queued.seen.version + 1,
                )
            )  # fmt: skip
            links += [(number, numbers[link.url], link.anchor, link.rel, link.follow) for link in outcome.links]
        await self._insert_bodies(list(bodies.values()))
        await self._insert_pages(pages)
        await self._insert_links(links)
        new = [o.queued for o in outcomes if o.queued.seen is None or not o.queued.seen.version]
        fetched = Counter(queued.site_id for queued in new if queued.kind is Kind.PAGE)
        await self._db.executemany(self._sql["count_fetched"], [(n, site) for site, n in fetched.items()])

    async def _insert_links(self, rows: list[LinkRow]) -> None:
        """Of rows with the same source and target, the last stays."""
        await self._db.executemany(self._sql["insert_link"], rows)

    async def _insert_pages(self, rows: list[tuple[Any, ...]]) -> None:
        await self._db.executemany(self._sql["insert_page"], rows)

    async def _insert_bodies(self, bodies: Sequence[Body]) -> None:
        await self._db.executemany(
            self._sql["insert_body"], [(body.sha256, body.gzipped, body.plain) for body in bodies]
        )

    async def _log(self, batch: CommitBatch) -> None:
        await self._db.executemany(
            self._sql["insert_request"],
            [
                (
                    self._run_id, r.site_id, r.path, r.purpose, r.started_at, r.finished_at, r.status,
                    *((None, None) if r.error is None else (r.error.kind, r.error.sentence)), r.bytes,
                    r.retry_after_s, r.robots_id, r.verdict_line, r.for_site_id, r.location,
                )
                for r in batch.requests
            ],
        )  # fmt: skip

    async def _take_robots(self, news: RobotsNews, now: float) -> int:
        """Put a robots copy in force; the one before it ends where this one begins. Returns its number."""
        copy, site = news.copy, news.site_id
        kept = copy.action is RobotsAction.PARSE
        if kept:
            await self._db.execute(self._sql["insert_robots_text"], (copy.sha256, copy.body))
        await self._db.execute(self._sql["close_robots_copy"], (copy.fetched_at, site))
        (number,) = await one(
            self._db,
            self._sql["insert_robots_copy"],
            (
                site, copy.sha256 if kept else None, copy.action, copy.status, copy.fetched_at, copy.fetched_at,
                copy.expires_at, copy.etag, copy.last_modified, copy.failures, copy.failing_since, copy.retry_at,
                copy.note, self._run_id, news.answered_by, json.dumps(news.headers),
            ),
        )  # fmt: skip
        wait_until = copy.retry_at if copy.action is RobotsAction.DEFER and copy.retry_at else 0.0
        await self._db.execute(
            self._sql["set_site_robots"], (number, wait_until, news.crawl_delay_s, news.main_site, site)
        )
        if news.main_site is None:
            await self._db.execute(self._sql["drop_mirror"], (news.site,))
        else:
            await self._db.execute(self._sql["set_mirror"], (news.site, news.main_site, now))
        if copy.action is not RobotsAction.DEFER:  # until then, the last word counts
            await self._db.execute(self._sql["drop_agent_servers"], (site,))
            rows = [(site, line.number, line.path, line.url) for line in news.agent_servers]
            await self._db.executemany(self._sql["insert_agent_server"], rows)
        return int(number)

    async def _has_moved(self, news: RobotsNews) -> bool:
        """Whether a site names another main site than before, or none any more."""
        row = await one(self._db, self._sql["main_site"], (news.site_id,))
        return row is not None and row[0] != news.main_site

    async def _ask_mirrors_again(self, sites: list[str], max_depth: int | None) -> set[int]:
        """What ended as a mirror's is decided on anew where its site, or one on the way, has changed its mind.

        It was in the frame of a sample that stands: what was not drawn of it is still not asked for, nor what only it
        leads to, unless such a crawl asks for everything (without ``max_depth``).
        """
        numbers = [row[0] for row in await every(self._db, self._sql["urls_behind_mirrors"], (json.dumps(sites),))]
        if max_depth is not None and await one(self._db, "SELECT 1 FROM sample_draw WHERE stands = 1"):
            given = json.dumps(numbers)
            await self._db.execute(self._sql["leave_not_drawn"], (ReasonCode.SAMPLE.sentence, given))
            numbers = [row[0] for row in await every(self._db, self._sql["drawn_of"], (given,))]
        await self._db.executemany(self._sql["requeue"], [(n,) for n in numbers])
        await self._db.executemany(self._sql["enqueue"], [(n,) for n in numbers])
        return await self._offers.groups(numbers)

    async def _claim(self, now: float, limits: ClaimLimits) -> list[Claim]:
        if limits.groups <= 0:
            return []
        me, horizon = self._workers.id, now + limits.horizon_s
        groups = await every(self._db, self._sql["claimable_groups"], (horizon, me, limits.groups))
        claims = {row[0]: Claim(row[0], row[1], Pace(*row[2:6]), {}, [], alone=row[6] > 1) for row in groups}
        if not claims:
            return []
        ids = json.dumps(list(claims))
        await self._db.execute(self._sql["claim_groups"], (me, ids))
        batches: dict[int, list[list[Queued]]] = {group: [] for group in claims}
        most = _UNLIMITED if limits.pages_per_site is None else limits.pages_per_site
        below = _UNLIMITED if limits.below_depth is None else limits.below_depth
        terms = (horizon, limits.urls_per_group, ids, most, below)
        for row in await every(self._db, self._sql["claimed_sites"], terms):
            site_id, name, group, fetched, robots_id, crawl_delay_s, urls, *copy = row
            claim = claims[group]
            claim.sites[site_id] = ClaimedSite(site_id, name, robots_copy(copy), robots_id, crawl_delay_s)
            batch = [
                Queued(
                    number, name + path, site_id, depth, attempts, hops, bool(seed), due_at, Kind(kind), seen_from(seen)
                )
                for number, path, depth, attempts, hops, seed, due_at, kind, seen in json.loads(urls)
            ]
            batches[group].append(_within(batch, most - fetched))
        for group, claim in claims.items():
            claim.urls = _in_turn(batches[group])[: 1 if claim.alone else limits.urls_per_group]
        return list(claims.values())


def _goes_back(outcome: Outcome) -> bool:
    """Whether a revisit leaves the URL as it was, and what it leads to."""
    return outcome.again is not None and outcome.again.found in BACK


def _within(batch: list[Queued], pages: int) -> list[Queued]:
    """So many pages that are new, and all that are visited again: limits on pages are not about these."""
    if len(batch) <= pages:
        return batch
    new = [queued for queued in batch if queued.seen is None][: max(0, pages)]
    return [queued for queued in batch if queued.seen is not None or queued in new]


def allowed(pages_per_site: int | None) -> int:
    return _UNLIMITED if pages_per_site is None else pages_per_site


def _in_turn(batches: list[list[Queued]]) -> list[Queued]:
    """The URLs of a group's sites, one of each after the other."""
    return [queued for urls in zip_longest(*batches) for queued in urls if queued is not None]


def robots_copy(row: list[Any]) -> RobotsCopy | None:
    if row[0] is None:
        return None
    action, status, fetched_at, expires_at, body, sha256, *rest = row
    return RobotsCopy(RobotsAction(action), status, fetched_at, expires_at, body or b"", sha256 or b"", *rest)
