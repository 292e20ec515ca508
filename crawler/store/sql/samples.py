"""The sample of a store; see :class:`crawler.store.protocols.Samples`."""

from __future__ import annotations

from collections.abc import Sequence

from crawler.reasons import ReasonCode
from crawler.store.protocols import SampleDraw, SampleRow
from crawler.store.retrying import retrying
from crawler.store.sql.offers import Offers
from crawler.store.sql.readiness import Readiness, unlimited
from crawler.store.sql.section import Access, StoreSection

_FRAME_AT_ONCE = 50_000


class SqlSamples(StoreSection):
    """See :class:`crawler.store.protocols.Samples`."""

    def __init__(self, access: Access, offers: Offers, readiness: Readiness) -> None:
        super().__init__(access)
        self._offers = offers
        self._readiness = readiness

    async def drawn(self) -> SampleDraw | None:
        row = await self._read.fetch_one("sample_draw")
        if row is None:
            return None
        return SampleDraw(**row._asdict() | {"follows": bool(row.follows), "stands": bool(row.stands)})

    @retrying
    async def replace(
        self, draw: SampleDraw, rows: Sequence[SampleRow], pages_per_site: int | None, frame: Sequence[int] = ()
    ) -> None:
        async with self._writing():
            await self._sql.execute("drop_sample_draw")
            await self._sql.execute("drop_sample")
            await self._sql.execute("insert_sample_draw", **draw._asdict())
            await self._sql.execute_many("insert_sample", (row._asdict() for row in rows))
            await self._sql.execute("drop_frame")
            for begin in range(0, len(frame), _FRAME_AT_ONCE):
                part = frame[begin : begin + _FRAME_AT_ONCE]
                await self._sql.execute_many("insert_frame_url", ({"url_id": number} for number in part))
            if draw.held_from is not None:
                terms = {"sentence": ReasonCode.SAMPLE.sentence, "follows": draw.follows}
                await self._sql.execute("exclude_not_drawn", held_from=draw.held_from, **terms)
                bounds = {"held_from": draw.held_from, "pages_per_site": unlimited(pages_per_site)}
                await self._sql.execute("exclude_not_reached", sentence=ReasonCode.FRAME.sentence, **bounds)
                await self._sql.execute("dequeue_not_drawn")
                self._offers.forget()
            await self._readiness.refresh_all(pages_per_site)

    @retrying
    async def reopen(self) -> None:
        async with self._writing():
            await self._sql.execute("reopen_sample")
