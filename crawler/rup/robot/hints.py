"""What servers report, as hints in the store, which a later crawl visits at its own pace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from crawler.frontier import hints
from crawler.frontier.hints import Heeded, HintKind, last_moment
from crawler.frontier.revisit import RevisitSettings
from crawler.rup.protocol.report import ChangeKind
from crawler.rup.protocol.robot import PageHint
from crawler.store.protocols import Store
from crawler.url import split

#: A page seen this shortly after its change, in seconds, may have been seen before it by the server's clock.
_CLOCKS_DIFFER_S = 60.0

#: New pages that the mail read at one time may name of a site, or as many as it is known to have: anybody can write it.
_MOST_NEW = 100

_KINDS = {ChangeKind.NEW: HintKind.NEW, ChangeKind.CHANGE: HintKind.CHANGED, ChangeKind.DELETE: HintKind.GONE}
_PAGES = "SELECT url FROM urls WHERE site = ? AND kind <> 'rup' AND state IN ('fetched', 'redirected')"
_COUNT = "SELECT count(*) AS pages FROM urls WHERE site = ? AND kind = 'page' AND state = 'fetched'"


class StoreHints:
    """Gives hints to a store. ``refusal(url, depth)`` is the scope's, for URLs that are new."""

    def __init__(
        self,
        store: Store,
        settings: RevisitSettings,
        per_site: int | None,
        refusal: Callable[[str, int], str | None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._per_site = per_site
        self._refusal = refusal
        self._left: dict[str, int] = {}  # new pages that mail may still name, by site

    async def take_mail_hints(self, told: Sequence[PageHint], now: float) -> tuple[Heeded, set[str]]:
        """Take what mails name. Its dates do not count: what is new in a report changed since the one before it, and
        some servers date it as the file is dated. Returns also the sites of which more was named than is taken."""
        total, beyond = Heeded(), set[str]()
        for site, named in groupby(sorted(told, key=lambda hint: split(hint.url).site), lambda h: split(h.url).site):
            if site not in self._left:
                rows = await self._store.query(_COUNT, (site,))
                self._left[site] = max(_MOST_NEW, rows[0]["pages"])
            heeded = await self._take([_hint(hint, now) for hint in named], now, self._left[site])
            self._left[site] -= heeded.new
            total = total.plus(heeded)
            if heeded.over:
                beyond.add(site)
        return total, beyond

    async def take_index_hints(self, told: Sequence[PageHint], since: float, now: float) -> Heeded:
        """Take an index of what changed ``since`` then. What was seen after its date is no news; a date before that
        time is not that of the change."""
        return await self._take([_hint(hint, _changed_at(hint.at, since, now)) for hint in told], now)

    async def revisit_site(self, site: str, now: float) -> Heeded:
        """Have every page of a site looked at again. A source of its own: most of them will be as before."""
        rows = await self._store.query(_PAGES, (site,))
        found = [hints.Hint(row["url"], HintKind.CHANGED, now, "rup, all of the site") for row in rows]
        return await self._take(found, now)

    async def queue(self, now: float) -> int:
        """Put what hints name into the frontier, for any crawl to fetch, as far as its budget goes; how many."""
        return await self._store.queue_due(self._settings, now, now, self._per_site, hinted_only=True)

    async def _take(self, found: list[hints.Hint], now: float, most_new: int | None = None) -> Heeded:
        if not found:
            return Heeded()
        return await self._store.take_hints(found, self._settings, now, self._refusal, most_new=most_new)


def _hint(told: PageHint, at: float) -> hints.Hint:
    return hints.Hint(told.url, _KINDS[told.kind], at, "rup")


def _changed_at(at: float | None, since: float, now: float) -> float:
    """When a change was at the latest that an index of ``since`` dates so."""
    if at is None:
        return now
    latest_s = last_moment(at) + _CLOCKS_DIFFER_S
    return now if latest_s < since else min(now, latest_s)
