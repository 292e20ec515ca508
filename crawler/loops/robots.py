"""robots.txt first, always: brings the copy in force, asking the site where there is none or it has run out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from crawler.clock import Clock
from crawler.frontier.politeness import GroupBy, group_name
from crawler.loops.gate import Gate, Warrant
from crawler.model import FetchResult, Purpose, Reading, Request, RobotsAction, RobotsCopy
from crawler.robots.readings import SiteRules, read
from crawler.robots.response import Follow, RobotsSettings, interpret
from crawler.robots.text import parse
from crawler.store.interface import ClaimedSite, RobotsNews, Store
from crawler.url import split

_RULES_KEPT = 1000


@dataclass(frozen=True, slots=True)
class RobotsNeeds:
    """What asking for robots.txt takes."""

    settings: RobotsSettings
    token: str
    group_by: GroupBy
    knows_host: Callable[[str], bool]


class RobotsKeeper:
    """Robots copies and their rules for the sites being worked on."""

    def __init__(
        self,
        needs: RobotsNeeds,
        gate: Gate,
        store: Store,
        clock: Clock,
        commit: Callable[[RobotsNews], Awaitable[int | None]],
    ) -> None:
        self._needs = needs
        self._gate = gate
        self._store = store
        self._clock = clock
        self._commit = commit
        self._rules: OrderedDict[tuple[str, bytes], SiteRules] = OrderedDict()

    @property
    def reading(self) -> Reading:
        return self._needs.settings.reading

    async def in_force(self, site: ClaimedSite, group: str) -> RobotsCopy:
        """The copy that applies to ``site`` now; it is committed before any page is asked for under it."""
        copy = site.copy
        if copy is not None and not self._must_ask(copy):
            return copy
        copy, answer = await self._ask(site)
        rules = self.rules(site.name, copy)
        delay_s = None if rules is None else rules.crawl_delay_s
        self._gate.heed_crawl_delay(group, answer, delay_s)
        main_site = None if rules is None else rules.main_site
        site.copy = copy
        site.robots_id = await self._commit(RobotsNews(site.id, site.name, copy, delay_s, main_site))
        return copy

    def rules(self, site: str, copy: RobotsCopy) -> SiteRules | None:
        """The reading of a copy that is a file; ``None`` where the answer alone decides."""
        if copy.action is not RobotsAction.PARSE:
            return None
        key = (site, copy.sha256)
        rules = self._rules.get(key)
        if rules is None:
            file = parse(copy.body, max_bytes=self._needs.settings.max_bytes)
            rules = read(
                file, token=self._needs.token, reading=self.reading, site=site, knows_host=self._needs.knows_host
            )
            self._rules[key] = rules
            if len(self._rules) > _RULES_KEPT:
                self._rules.popitem(last=False)
        return rules

    def _must_ask(self, copy: RobotsCopy) -> bool:
        now = self._clock.now()
        if copy.action is RobotsAction.DEFER:
            return copy.retry_at is None or now >= copy.retry_at
        return now >= copy.expires_at

    async def _ask(self, site: ClaimedSite) -> tuple[RobotsCopy, FetchResult]:
        """Fetch /robots.txt, redirects followed over any host, each at its own host's pace."""
        url, seen = f"{site.name}/robots.txt", [f"{site.name}/robots.txt"]
        while True:
            answer = await self._send(url, site, first=len(seen) == 1)
            now = self._clock.now()
            meaning = interpret(
                answer, settings=self._needs.settings, previous=site.copy, hops=len(seen) - 1, seen=tuple(seen), now=now
            )
            if isinstance(meaning, RobotsCopy):
                return meaning, answer
            assert isinstance(meaning, Follow)
            url = meaning.url
            seen.append(url)

    async def _send(self, url: str, site: ClaimedSite, *, first: bool) -> FetchResult:
        previous = site.copy if first else None
        request = Request(
            url,
            Purpose.ROBOTS,
            max_bytes=self._needs.settings.max_bytes,
            truncate=True,
            any_type=True,
            etag=previous.etag if previous else None,
            last_modified=previous.last_modified if previous else None,
        )
        host_site = split(url).site
        host_group = group_name(host_site, self._needs.group_by)
        number = site.id if host_site == site.name else await self._store.site_id(host_site)
        self._gate.enter(host_group, await self._store.group_pace(host_group))
        try:
            answer = await self._gate.send(request, Warrant(number, host_group))
        finally:
            self._gate.leave(host_group)
        assert answer is not None, "a warrant for robots.txt does not run out"
        return answer
