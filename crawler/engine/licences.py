"""The licences of RSL that robots.txt names, for a crawl that declares purposes.

A licence is requested once for all sites that name its URL. On another site it is a URL that these sites wait for, as a
site waits for a robots.txt that redirects (:mod:`crawler.engine.robots_cache`). It is as fresh as a robots.txt is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from crawler.engine import operator_log
from crawler.engine.gate import FetchPermit
from crawler.engine.permission import Closed, permission
from crawler.frontier.operator import BLOCKED
from crawler.model import Preference, Purpose, Request, SiteFile
from crawler.robots.readings import SiteRules
from crawler.robots.rsl import MAX_BYTES, NO_LICENCE, Licence, licence_file, licence_of, licence_unasked, unavailable
from crawler.store.rows import HORIZON_S, ClaimedSite, RobotsTarget
from crawler.url import ROBOTS_PATH, split

if TYPE_CHECKING:
    from crawler.engine.crawl import Crawl

_KEPT = 1_000
_MOST_HOPS = 5
#: The licences of one robots.txt that are requested. The others count as licences that cannot be had.
_MOST = 5


class _Known(NamedTuple):
    file: SiteFile
    licence: Licence


class Postponed(NamedTuple):
    """What depends on a licence that fails for now is decided at ``until`` (epoch seconds). ``why`` is the failure."""

    until: float
    why: str


class Licences:
    """What the licences that a robots.txt names say of pages.

    Invariants:

    1. A licence is requested at a claim of the group of its site, if the robots.txt of that site allows it.
    2. A licence that holds is not requested again, by whichever site it is named.
    3. No page is requested before each licence that its robots.txt names was read, or cannot be had for good. A licence
       that cannot be had for good refuses every use; a temporary failure postpones the pages.
    4. A site waits for a licence as long as for a robots.txt at most; then the licence has failed for now. The store
       knows that it has waited, so it does not matter which worker claims it next.
    """

    def __init__(self, context: Crawl) -> None:
        self._context = context
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def of(
        self, site: ClaimedSite, group: str, rules: SiteRules | None, urls: Iterable[str], path: str
    ) -> tuple[Preference, ...] | Postponed | None:
        """What the licences at ``urls`` say of a path of ``site``, whose robots.txt in force has the ``rules``.

        ``None`` if the page must wait: the site waits for a licence on another site from now on, the robots copy has
        run out, or the pause after the request for a licence is long. Raises :class:`crawler.engine.gate.Unsent` and
        :class:`crawler.errors.StoreError`.
        """
        said: list[Preference] = []
        for number, url in enumerate(urls):
            if number == _MOST:
                return (*said, *unavailable(url, f"more than {_MOST} licences"))
            found = await self._found(site, group, rules, url)
            if found is None:
                return None
            if found.file.failing_since is not None and found.file.valid_until is not None:
                return Postponed(found.file.valid_until, f"licence {url}: {found.file.note}")
            if found.file.note:
                said += unavailable(url, found.file.note)
            else:
                said += found.licence.of(site.name, path, url)
        return tuple(said)

    async def is_awaited(self, target: RobotsTarget) -> bool:
        """Whether sites wait for a URL as a licence. Those that wait for a robots.txt have seen other URLs before."""
        waits = () if target.path == ROBOTS_PATH else await self._context.store.robots_waits(target)
        return any(not wait.seen for wait in waits)

    async def answer(self, target: RobotsTarget, site: ClaimedSite, group: str) -> None:
        """Get the licence that other sites wait for, on the claimed ``site``. Raises as :meth:`of`.

        They wait on if it must be requested at another claim: the site waits itself, or its pause is long.
        """
        url = f"{target.site}{target.path}"
        copy = await self._context.robots_cache.permitted(target, site, group)
        if isinstance(copy, RobotsTarget):
            return
        if isinstance(copy, Closed):
            self._keep(site.id, url, self._unasked(url, copy.why, is_lasting=True))
        elif await self._valid(url) is None:
            rules = await self._context.robots_cache.rules_cache.rules(site.name, copy)
            if not await self._requested(site, group, rules, url):
                return
        self._context.outbox.add_target_answered(target)

    async def _found(self, site: ClaimedSite, group: str, rules: SiteRules | None, url: str) -> _Known | None:
        """The licence at ``url``, behind redirects; ``None`` as :meth:`of`."""
        for _ in range(_MOST_HOPS + 1):
            known = await self._valid(url)
            if known is None:
                place = split(url)
                if place.site != site.name:
                    if await self._waits(site, url):
                        return None
                elif not await self._requested(site, group, rules, url) or self._context.gate.pauses_long(group):
                    return None
                known = self._known[url]
            if not known.file.moved_to:
                return known
            url = known.file.moved_to
        return _Known(self._unasked(url, f"more than {_MOST_HOPS} redirects", is_lasting=True), NO_LICENCE)

    async def _valid(self, url: str) -> _Known | None:
        """The licence at ``url`` if nothing has to be asked: it holds, or is not to be asked for again yet."""
        known = self._known.get(url)
        now = self._context.clock.now()
        if known is None or (known.file.valid_until or 0.0) <= now:
            place = split(url)
            there = await self._context.store.site(place.site)
            file = None if there is None else await self._context.store.site_file(there.id, place.path)
            if file is None or file.purpose is not Purpose.LICENSE or (file.valid_until or 0.0) <= now:
                return None
            known = self._remember(url, file)
        until = known.file.valid_until or 0.0
        if known.file.failing_since is not None and until - now < 2 * HORIZON_S:  # the site was claimed a little early
            await self._context.gate.wait_until(until)
            return None
        return known

    async def _waits(self, site: ClaimedSite, url: str) -> bool:
        """Let the site wait for a licence on another site. False if it has waited in vain, or must not wait."""
        place = split(url)
        target, is_lasting, why = RobotsTarget(place.site, place.path), True, ""
        if self._context.gate.is_blocked(url):
            why = f"{place.site} is {BLOCKED}"
        elif place.path == ROBOTS_PATH:
            why = "it is no URL that this crawl may request"
        elif any(wait.site_id == site.id for wait in await self._context.store.robots_waits(target)):
            is_lasting, why = False, "it was not requested in time"
        if not why:
            self._context.robots_cache.wait_for(site, url)
            return True
        there = await self._context.store.site(place.site)
        file = self._unasked(url, why, is_lasting=is_lasting)
        if there is None:
            self._remember(url, file)
        else:
            self._keep(there.id, url, file)
            self._context.outbox.add_target_answered(target)
        return False

    async def _requested(self, site: ClaimedSite, group: str, rules: SiteRules | None, url: str) -> bool:
        """Request a licence on the claimed ``site``. False if it must be requested at another claim."""
        assert site.copy is not None, "in_force has set it"
        place = split(url)
        allowed = permission(site.name, site.copy, rules, place.path)
        if isinstance(allowed, Closed):
            is_lasting = site.copy.retry_at is None
            self._keep(site.id, url, self._unasked(url, allowed.why, is_lasting=is_lasting))
            return True
        if self._context.gate.pauses_long(group):
            return False
        previous = await self._context.store.site_file(site.id, place.path)
        permit = FetchPermit.under(site, group, site.copy, rules, allowed)
        request = Request(url, Purpose.LICENSE, max_bytes=MAX_BYTES, any_type=True)
        answer = await self._context.gate.send(request, permit)
        if answer is None:
            return False
        settings = self._context.policy.robots.settings
        self._keep(site.id, url, licence_file(answer, url, settings=settings, previous=previous))
        return True

    def _unasked(self, url: str, why: str, *, is_lasting: bool) -> SiteFile:
        """The row of a licence that was not requested, for the reason ``why``."""
        now, settings = self._context.clock.now(), self._context.policy.robots.settings
        if not is_lasting:
            previous = self._known[url].file if url in self._known else None
            return licence_unasked(url, why, settings=settings, previous=previous, now=now)
        until = now + settings.retry_max_s
        return SiteFile(split(url).path, Purpose.LICENSE, now, "not requested", note=why, valid_until=until)

    def _keep(self, site_id: int, url: str, file: SiteFile) -> None:
        if file.note and not file.moved_to:
            operator_log.licence_unread(url, file.note)
        self._remember(url, file)
        self._context.outbox.add_file(site_id, file)

    def _remember(self, url: str, file: SiteFile) -> _Known:
        file, licence = licence_of(file)
        known = self._known[url] = _Known(file, licence)
        self._known.move_to_end(url)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return known
