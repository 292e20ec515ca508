"""What servers report, as hints in the store; a later crawl decides what to do about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crawler.frontier import hints
from crawler.frontier.hints import HintKind
from crawler.frontier.revisit import RevisitSettings
from crawler.rup.report import Kind
from crawler.rup.robot import Hint
from crawler.store.interface import Store

#: A page seen this shortly after its change, in seconds, may have been seen before it by the server's clock.
_CLOCKS_DIFFER_S = 60.0

_KINDS = {Kind.NEW: HintKind.NEW, Kind.CHANGE: HintKind.CHANGED, Kind.DELETE: HintKind.GONE}
_PAGES = "SELECT url FROM urls WHERE site = ? AND kind <> 'rup' AND state IN ('fetched', 'redirected')"


class StoreHints:
    """Gives hints to a store. ``refusal(url, depth)`` is the scope's, for URLs that are new."""

    def __init__(self, store: Store, settings: RevisitSettings, refusal: Callable[[str, int], str | None]) -> None:
        self._store = store
        self._settings = settings
        self._refusal = refusal

    async def heed(self, told: Sequence[Hint], now: float) -> None:
        """Take reports' hints."""
        await self._take(
            [
                hints.Hint(hint.url, _KINDS[hint.kind], now if hint.at is None else hint.at + _CLOCKS_DIFFER_S, "rup")
                for hint in told
            ],
            now,
        )

    async def whole_site(self, site: str, now: float) -> int:
        """Have every page of a site looked at again; how many. A source of its own: most of them will be as before."""
        rows = await self._store.query(_PAGES, (site,))
        await self._take([hints.Hint(row["url"], HintKind.CHANGED, now, "rup, all of the site") for row in rows], now)
        return len(rows)

    async def _take(self, found: list[hints.Hint], now: float) -> None:
        if found:
            await self._store.take_hints(found, self._settings, now, self._refusal)
