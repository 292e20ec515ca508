"""Helpers that drive a store as the engine does: claims, visits and commits."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from crawler.frontier.decide import FetchedPage, Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import Pace
from crawler.model import Body, Link, PageFacts, Purpose, RobotsAction, RobotsCopy, State
from crawler.reasons import EndCode, Reason, ReasonCode, RunEnd
from crawler.store.rows import Claim, ClaimLimits, CommitBatch, CommitResult, RequestRow, RobotsNews, UrlLimits
from tests.reasons import reason, refusal

if TYPE_CHECKING:
    from crawler.store.sections import Store

NOW = 1_800_000_000.0


def link(url: str, *, follow: bool = True) -> Link:
    return Link(url, "anchor", "" if follow else "nofollow", follow)


def fetched(
    queued: Queued,
    links: Iterable[Link | str] = (),
    *,
    body: bytes | None = b"<p>body",
    max_depth: int | None = None,
    refusals: dict[str, str] | None = None,
    **facts: Any,
) -> Outcome:
    """The visit of a page with these links, as ``decide.after_fetch`` would end it."""
    each = [link(item) if isinstance(item, str) else item for item in links]
    found = tuple({item.url: item for item in each}.values())  # one for each target, as crawler/page/targets.py has it
    depth = queued.depth + 1
    offers = tuple(Offer(item.url, depth, refusal(_refusal(item, depth, max_depth, refusals or {}))) for item in found)
    kept = None if body is None else Body(hashlib.sha256(body).digest(), body)
    page = FetchedPage(200, "text/html", NOW, PageFacts(**facts), kept, len(body or b""), None, None)
    return Outcome(queued, State.FETCHED, reason("200"), page=page, links=found, offers=offers)


def _refusal(item: Link, depth: int, max_depth: int | None, refusals: dict[str, str]) -> str | None:
    if item.url in refusals:
        return refusals[item.url]
    if max_depth is not None and depth > max_depth:
        return f"depth: {depth} links from a seed, limits.max_depth is {max_depth}"
    return None if item.follow else "nofollow: linked only with rel=nofollow"


def redirected(queued: Queued, target: str) -> Outcome:
    offer = Offer(target, queued.depth, hops=queued.hops + 1, seed=queued.seed)
    return Outcome(queued, State.REDIRECTED, reason(f"302 to {target}"), offers=(offer,), target=target)


def failed(queued: Queued, why: str = "gone") -> Outcome:
    return Outcome(queued, State.FAILED, reason(why))


def excluded(queued: Queued, why: str) -> Outcome:
    return Outcome(queued, State.EXCLUDED, reason(why))


def retried(queued: Queued, at: float) -> Outcome:
    return Outcome(queued, State.QUEUED, Reason(ReasonCode.RETRY, "again"), retry_at=at)


def robots(body: bytes = b"User-agent: *\n", *, at: float = NOW, until: float = NOW + 1000, **more: Any) -> RobotsCopy:
    return RobotsCopy(RobotsAction.PARSE, "200", at, until, body, hashlib.sha256(body).digest(), **more)


def deferred(at: float, retry_at: float) -> RobotsCopy:
    return RobotsCopy(RobotsAction.DEFER, "503", at, retry_at, failures=1, failing_since=at, retry_at=retry_at)


def request(site_id: int, path: str, started_at: float = NOW, **more: Any) -> RequestRow:
    row: dict[str, Any] = {
        "purpose": Purpose.PAGE,
        "finished_at": started_at + 0.5,
        "status": 200,
        "error": None,
        "bytes": 100,
        "retry_after_s": None,
        "robots_id": None,
        "verdict_line": None,
    }
    return RequestRow(site_id, path, started_at=started_at, **(row | more))


class Harness:
    """One store, kept open, with the claims that are out."""

    store: Store

    def __init__(self, opener: Callable[[], Awaitable[Store]]) -> None:
        self._opener = opener
        self._is_open = False
        self.now = NOW
        self.max_depth: int | None = None
        self.pages_per_site: int | None = None

    async def reopen(self, *, settings: dict[str, Any] | None = None) -> None:
        """Close without a word, as a crash does, and begin another run."""
        await self.close()
        self.store = await self._opener()
        self._is_open = True
        for row in await self.store.query("SELECT worker FROM workers WHERE ended_at IS NULL"):
            await self.store.end_worker(row["worker"], RunEnd(EndCode.KILLED), self.now)  # as whoever started it would
        await self.store.start_run(settings or {}, self.now)
        await self.store.prepare(self.pages_per_site)

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            await self.store.close()

    async def seed(self, *urls: str) -> None:
        await self.store.add_seeds([(url, None) for url in urls])
        await self.store.prepare(self.pages_per_site)

    async def commit(self, *outcomes: Outcome, groups: int = 0, per_group: int = 50, **more: Any) -> CommitResult:
        limits, claims = UrlLimits(self.max_depth, self.pages_per_site), ClaimLimits(groups, per_group)
        batch = CommitBatch(self.now, limits, claim_limits=claims, outcomes=list(outcomes), **more)
        return await self.store.commit(batch)

    async def claim(self, groups: int = 100, per_group: int = 50) -> list[Claim]:
        return (await self.commit(groups=groups, per_group=per_group)).claims

    async def finish(self, claim: Claim, *outcomes: Outcome, pace: Pace | None = None) -> None:
        """Hand in outcomes and give the group back."""
        paces = {} if pace is None else {claim.group: pace}
        await self.commit(*outcomes, released=[claim.group_id], paces=paces)

    async def crawl(self, pages: dict[str, list[str | Link]], choose: Callable[[list[Queued]], Queued]) -> None:
        """Visit all that is queued, one URL a turn, in the order that ``choose`` likes; unknown pages have no links."""
        while claims := await self.claim():
            queued = choose([queued for claim in claims for queued in claim.urls])
            outcome = fetched(queued, pages.get(queued.url, []), max_depth=self.max_depth)
            await self.commit(outcome, released=[claim.group_id for claim in claims])

    async def urls(self, columns: str = "state") -> dict[str, Any]:
        rows = await self.store.query(f"SELECT url, {columns} FROM urls")
        return {row.pop("url"): next(iter(row.values())) if len(row) == 1 else tuple(row.values()) for row in rows}

    async def site_number(self, name: str) -> int:
        """The number of a site, which the store then knows."""
        group = await self.store.claim_group(name)
        assert group is not None
        await self.commit(released=[group])
        site = await self.store.site(name)
        assert site is not None
        return site.id

    async def news(self, site_id: int, site: str, copy: RobotsCopy, **more: Any) -> int:
        """Hand in a robots copy of a site."""
        news = RobotsNews(site_id, site, copy, more.get("crawl_delay_s"), more.get("main_site"))
        return (await self.commit(robots=[news])).robots_ids[site_id]


def queued_urls(claims: Iterable[Claim]) -> list[str]:
    return [queued.url for claim in claims for queued in claim.urls]
