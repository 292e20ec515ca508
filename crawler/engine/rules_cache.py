"""The rules of robots copies, kept in memory. Parser processes read large files."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.gate import Gate
from crawler.engine.main_sites import MainSites
from crawler.engine.parser_pool import PageReader
from crawler.engine.robots_messages import MAX_CPU_S, RobotsQuestion
from crawler.engine.robots_reading import read_robots
from crawler.model import RobotsAction, RobotsCopy
from crawler.robots.readings import SiteRules
from crawler.robots.text import SMALL_BYTES
from crawler.url import ROBOTS_PATH

if TYPE_CHECKING:
    from crawler.store.sections import Store

_RULES_KEPT = 10_000  # with many sites, each is claimed anew for every request
_RULES_KEPT_BYTES = 64 << 20  # of memory, estimated: within a fifth for large files
_BYTES_PER_FILE, _BYTES_PER_RULE, _BYTES_PER_OCTET = 2000, 256, 8
_READ_AT_ONCE = 2  # large files


class RulesCache:
    """The rules of the robots copies that are worked on, by the product token and the reading of the crawl.

    Invariants:

    1. The rules leave out a ``Host`` line that ``main_sites`` ignores.
    2. Of large files (``SMALL_BYTES``), memory holds only the texts of the two that a parser process reads now.
    """

    def __init__(
        self,
        policy: RobotsPolicy,
        gate: Gate,
        store: Store,
        main_sites: MainSites,
        reader: PageReader,
    ) -> None:
        self._policy = policy
        self._gate = gate
        self._store = store
        self._main_sites = main_sites
        self._reader = reader
        self._readings = asyncio.Semaphore(_READ_AT_ONCE)
        self._bytes = 0
        # With their size in bytes, by site, file, and the site whose Host line is ignored.
        self._rules: OrderedDict[tuple[str, bytes, str | None], tuple[SiteRules, int]] = OrderedDict()

    async def rules(self, site: str, copy: RobotsCopy) -> SiteRules | None:
        """The rules of a copy that is a file; ``None`` if the answer alone decides.

        Raises :class:`crawler.errors.StoreError`.
        """
        if copy.action is not RobotsAction.PARSE:
            return None
        key = self._key(site, copy)
        if key in self._rules:
            self._rules.move_to_end(key)
            return self._rules[key][0]
        ignored = key[2]
        if copy.body is not None and len(copy.body) <= SMALL_BYTES:
            rules = read_robots(self._question(site, copy.body, ignored))
            self._keep(key, rules, len(copy.body))
            return rules
        async with self._readings:
            if key in self._rules:  # another task read it meanwhile
                return self._rules[key][0]
            text = await self._store.robots_text(copy.sha256) if copy.body is None else copy.body
            rules = await self._reader.ask(self._question(site, text, ignored))
        if key not in self._rules:
            self._keep(key, rules, 0 if rules.unread else len(text))
        return rules

    def require_reader(self, site: str, copy: RobotsCopy, group: str) -> None:
        """Raise :class:`crawler.engine.gate.GivenBack` if a large copy must be read, and others are being read.

        ``group`` is the group of ``site``. The next claim of the group comes when its turn is likely to come.
        """
        is_small = copy.body is not None and len(copy.body) <= SMALL_BYTES
        if copy.action is not RobotsAction.PARSE or is_small or self._key(site, copy) in self._rules:
            return
        if self._readings.locked():
            self._gate.give_way_to_readings(group)

    async def sitemaps_of(self, site: str) -> tuple[str, ...] | None:
        """The sitemaps that a site's robots.txt names; ``None`` if that file is not known.

        Raises :class:`crawler.errors.StoreError`.
        """
        known = await self._store.site(site)
        copy = None if known is None else known.copy
        rules = None if copy is None else await self.rules(site, copy)
        return None if rules is None else rules.sitemaps

    def _keep(self, key: tuple[str, bytes, str | None], rules: SiteRules, octets: int) -> None:
        size = _BYTES_PER_FILE + _BYTES_PER_RULE * rules.size + _BYTES_PER_OCTET * octets
        self._rules[key] = (rules, size)
        self._bytes += size
        while len(self._rules) > _RULES_KEPT or (self._bytes > _RULES_KEPT_BYTES and len(self._rules) > 1):
            _, (_, size) = self._rules.popitem(last=False)
            self._bytes -= size

    def _key(self, site: str, copy: RobotsCopy) -> tuple[str, bytes, str | None]:
        return site, copy.sha256, self._main_sites.ignored(site)

    def _question(self, site: str, text: bytes, ignored: str | None) -> RobotsQuestion:
        policy = self._policy
        return RobotsQuestion(
            MAX_CPU_S,
            f"{site}{ROBOTS_PATH}",
            text,
            site,
            policy.token,
            policy.settings.reading.value,
            policy.known_hosts,
            ignored,
            policy.settings.max_bytes,
            policy.settings.policy_tokens,
        )
