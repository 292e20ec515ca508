"""Results that are computed from a whole crawl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crawler.store.computed import Computed
from crawler.store.rows import KeptText, NearDuplicate, PageRank, SiteRank, SiteTemplate, TextSignature
from crawler.store.sql.section import StoreSection, in_transaction


class Results(StoreSection):
    """Results that are computed from the whole crawl. Each method is one transaction."""

    @in_transaction
    async def replace_ranks(self, pages: Iterable[PageRank], sites: Iterable[SiteRank], last_request: int) -> None:
        """Replace all ranks. They cover the crawl up to the request ``last_request``."""
        await self._sql.clear("rank", "site_rank")
        await self._sql.insert("rank", pages)
        await self._sql.insert("site_rank", sites)
        await self._cover(Computed.RANKS, last_request)
        await self._sql.execute("index_behind")

    @in_transaction
    async def cover(self, computed: Computed, last_request: int) -> None:
        """Note that a result that is kept elsewhere covers the crawl up to a request."""
        await self._cover(computed, last_request)

    async def _cover(self, computed: Computed, last_request: int) -> None:
        row = {"name": computed.value, "last_request": last_request}
        await self._sql.insert("computation", [row], known="replaced")

    @in_transaction
    async def keep_texts(self, texts: Sequence[KeptText]) -> None:
        """Insert or replace the texts of bodies. Texts of bodies that were deleted meanwhile are left out."""
        await self._sql.execute_many("insert_main_text", (row._asdict() for row in texts))

    @in_transaction
    async def drop_old_texts(self) -> None:
        """Delete the texts of bodies that no page has now."""
        await self._sql.execute("drop_old_main_texts")

    @in_transaction
    async def keep_signatures(self, signatures: Sequence[TextSignature], templates: Sequence[SiteTemplate]) -> None:
        """Insert or replace the signatures of pages, and the templates of sites."""
        await self._sql.insert("site_template", templates, known="replaced")
        await self._sql.insert("text_signature", signatures, known="replaced")

    @in_transaction
    async def drop_signatures(self, numbers: Sequence[int]) -> None:
        """Delete the signatures of pages, and the templates of sites without any."""
        await self._sql.delete("text_signature", "url_id", numbers)
        await self._sql.execute("drop_templates_of_empty_sites")

    @in_transaction
    async def replace_near_duplicates(self, pages: Iterable[NearDuplicate], last_request: int) -> None:
        """Replace all clusters of near-duplicates. They cover the crawl up to the request ``last_request``."""
        await self._sql.clear("near_duplicate")
        await self._sql.insert("near_duplicate", pages)
        await self._cover(Computed.NEAR_DUPLICATES, last_request)
        await self._sql.execute("index_behind")
