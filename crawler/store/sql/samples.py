"""The sample of a store."""

from __future__ import annotations

from collections.abc import Sequence

from crawler.reasons import ReasonCode
from crawler.store.retrying import retrying
from crawler.store.rows import SampleDraw, SampleRow
from crawler.store.sql.section import StoreSection, in_transaction
from crawler.store.statements import unlimited

_FRAME_AT_ONCE = 50_000


class Samples(StoreSection):
    """The sample of the crawl."""

    async def drawn(self) -> SampleDraw | None:
        """How the sample in the store was drawn."""
        return next((draw for draw in await self.draws() if draw.discarded_at is None), None)

    async def draws(self) -> list[SampleDraw]:
        """Every draw in their order, also those that a later one replaced."""
        return [
            SampleDraw(**row._asdict() | {"follows": bool(row.follows), "stands": bool(row.stands)})
            for row in await self._read.fetch("sample_draws")
        ]

    @retrying
    @in_transaction
    async def replace(
        self, draw: SampleDraw, rows: Sequence[SampleRow], pages_per_site: int | None, frame: Sequence[int] = ()
    ) -> None:
        """Replace the sample, in one transaction. ``frame`` has the numbers of the URLs that it was drawn from.

        The record of the earlier draw stays, and says when it was discarded.
        URLs queued at the depth ``draw.held_from`` or deeper that are not drawn are excluded; the others are held back
        no longer. URLs nearer than that were not reached, and are excluded too. While the sample stands, no page is
        queued that it leaves out: see ``Offers.enqueue``.
        """
        await self._sql.execute("discard_sample_draw", now=draw.drawn_at)
        await self._sql.clear("sample", "frame_url")
        earlier = await self._sql.fetch("sample_draws")
        await self._sql.insert("sample_draw", [draw._replace(number=len(earlier) + 1)])
        await self._sql.insert("sample", rows)
        for begin in range(0, len(frame), _FRAME_AT_ONCE):
            batch = frame[begin : begin + _FRAME_AT_ONCE]
            await self._sql.insert("frame_url", zip(batch, strict=True), columns=("url_id",))
        if draw.held_from is not None:
            terms = {"sentence": ReasonCode.SAMPLE.sentence, "follows": draw.follows}
            await self._sql.execute("exclude_not_drawn", held_from=draw.held_from, **terms)
            bounds = {"held_from": draw.held_from, "pages_per_site": unlimited(pages_per_site)}
            await self._sql.execute("exclude_not_reached", sentence=ReasonCode.FRAME.sentence, **bounds)
            await self._sql.execute("dequeue_not_drawn")
            self._offers.forget()
        await self._offers.refresh_all(pages_per_site)

    @retrying
    @in_transaction
    async def reopen(self) -> None:
        """Note that the sample in the store does not stand any more and must be drawn anew."""
        await self._sql.execute("reopen_sample")
