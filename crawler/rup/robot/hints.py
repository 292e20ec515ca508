"""Puts the changes that servers report into the store as hints. A later crawl visits them at its own pace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from crawler.frontier import hints
from crawler.frontier.hints import HintCounts, HintKind, Refusal, last_moment
from crawler.frontier.revisit import RevisitSettings
from crawler.rup.protocol.report import ChangeKind
from crawler.rup.protocol.subscription import PageHint
from crawler.store.statements import load_statements
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: By the server's clock, a page seen this many seconds after its change may have been seen before the change.
_CLOCKS_DIFFER_S = 60.0

#: New pages of a site that the mails of one reading may name: this number, or the site's known pages if these are more.
_MOST_NEW = 100

_KINDS = {ChangeKind.NEW: HintKind.NEW, ChangeKind.CHANGE: HintKind.CHANGED, ChangeKind.DELETE: HintKind.GONE}
_SQL = load_statements("crawler.rup.robot")


class StoreHints:
    """Gives hints to a store. ``refusal(url, depth)`` is the scope's answer for a URL that is new."""

    def __init__(
        self,
        store: Store,
        settings: RevisitSettings,
        per_site: int | None,
        refusal: Refusal,
    ) -> None:
        self._store = store
        self._settings = settings
        self._per_site = per_site
        self._refusal = refusal
        self._left: dict[str, int] = {}  # new pages that mail may still name, by site
        self.counts = HintCounts()  # of all hints

    async def sites_of(self, host: str) -> set[str]:
        """The sites of a host that the crawl knows."""
        return {row["site"] for row in await self._store.query(_SQL["sites_of_host"], {"host": host})}

    async def apply_mail_hints(self, changes: Sequence[PageHint], now: float, source: str = "rup") -> set[str]:
        """Store the changes in mails as hints of a source; return the sites that name more new pages than it accepts.

        The dates in the mails do not count: a change in a report happened after the report before it, and some servers
        write the file's date instead.
        """
        beyond = set[str]()
        for site, named in groupby(sorted(changes, key=lambda hint: split(hint.url).site), lambda h: split(h.url).site):
            if site not in self._left:
                rows = await self._store.query(_SQL["count_pages"], {"site": site})
                self._left[site] = max(_MOST_NEW, rows[0]["pages"])
            counts = await self._apply([_hint(hint, now, source) for hint in named], now, self._left[site])
            self._left[site] -= counts.new
            if counts.over:
                beyond.add(site)
        return beyond

    async def apply_index_hints(self, changes: Sequence[PageHint], since: float, now: float) -> None:
        """Store as hints an index of the changes ``since`` a time.

        A page seen after the date of its change is not visited. A date before ``since`` is not the date of the change.
        """
        await self._apply([_hint(hint, _changed_at(hint.at, since, now)) for hint in changes], now)

    async def revisit_site(self, site: str, now: float) -> int:
        """Schedule a visit of every page of a site; return the number of visits brought forward.

        The hints have a source of their own, because most pages are unchanged.
        """
        rows = await self._store.query(_SQL["visited_urls"], {"site": site})
        found = [hints.Hint(row["url"], HintKind.CHANGED, now, "rup, all of the site") for row in rows]
        return (await self._apply(found, now)).moved

    async def queue(self, now: float) -> int:
        """Put the hinted URLs into the frontier, within the budget of the site, for any crawl; return their number."""
        return await self._store.revisits.queue_due(self._settings, now, now, self._per_site, hinted_only=True)

    async def _apply(self, found: list[hints.Hint], now: float, most_new: int | None = None) -> HintCounts:
        counts = await self._store.revisits.apply_hints(found, self._settings, now, self._refusal, most_new=most_new)
        self.counts = self.counts.plus(counts)
        return counts


def _hint(hint: PageHint, at: float, source: str = "rup") -> hints.Hint:
    return hints.Hint(hint.url, _KINDS[hint.kind], at, source)


def _changed_at(at: float | None, since: float, now: float) -> float:
    """The latest time of a change with the date ``at``, in an index of the changes ``since`` a time."""
    if at is None:
        return now
    latest_s = last_moment(at) + _CLOCKS_DIFFER_S
    return now if latest_s < since else min(now, latest_s)
