"""Taking content out of a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawler.model import State
from crawler.reasons import Reason
from crawler.store.rows import Content
from crawler.store.sql.section import StoreSection, in_transaction

if TYPE_CHECKING:
    from crawler.store.sql.store import Store

#: The tables with rows of a URL that go with it. Bodies go when no page names them.
_OF_A_URL = ("page", "page_version", "revisit", "rank", "text_signature")


class Maintenance(StoreSection):
    """Takes content out of the store. No worker may be at work meanwhile.

    ``numbers`` are numbers of URLs (``urls.url_id``), at most some thousands at a time. Each method is one transaction.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._bodies = store.bodies

    async def content_of(self, numbers: Sequence[int]) -> Content:
        row = await self._read.fetch_one("forgettable", numbers=json.dumps(list(numbers)))
        return Content(*row)

    @in_transaction
    async def forget(self, numbers: Sequence[int], reason: Reason) -> Content:
        """Delete the pages, versions, links and ranks of URLs, and exclude the URLs with ``reason``.

        The bodies are deleted by :meth:`sweep_forgotten`. The request log and the addresses stay.
        """
        listed = json.dumps(list(numbers))
        row = await self._sql.fetch_one("forgettable", numbers=listed)
        await self._sql.execute("erase_deleted")
        await self._sql.execute("drop_unread", numbers=listed)
        for statement in ("bodies_of", "uncount_page", "drop_links", "forget_near_duplicate"):
            await self._sql.execute(statement, numbers=listed)
        for table in _OF_A_URL:
            await self._sql.delete(table, "url_id", numbers)
        await self._offers.dequeue(numbers)
        # The row of the URL stays: it keeps the page from coming back.
        ended = {"state": State.EXCLUDED, "reason_code": reason.code, "reason": reason.sentence}
        await self._sql.update("url", [dict(id=n, target=None, due_at=0.0, attempts=0, **ended) for n in numbers])
        await self._sql.execute("computations_behind")
        await self._offers.refresh(await self._offers.groups(numbers))
        self._offers.forget()
        return Content(*row)

    @in_transaction
    async def redact(self, numbers: Sequence[int]) -> None:
        """Reduce the addresses of these URLs in the request log to their sites, and clear locations that name them.

        Requests for robots.txt keep theirs.
        """
        await self._sql.execute("erase_deleted")
        await self._sql.execute("redact_requests", numbers=json.dumps(list(numbers)))
        await self._sql.execute("redact_locations", numbers=json.dumps(list(numbers)))

    async def sweep_forgotten(self) -> None:
        """Delete the bodies and preferences that no page names any more."""
        await self._drop_unused()
        await self._bodies.require_dropped_deleted()

    @in_transaction
    async def _drop_unused(self) -> None:
        await self._sql.execute("erase_deleted")
        await self._revisits.sweep()
        await self._sql.execute("drop_unused_preferences")
        await self._sql.execute("drop_unused_answers")
        await self._sql.execute("drop_ranks_of_empty_sites")
        await self._sql.execute("drop_templates_of_empty_sites")
        await self._sql.execute("drop_clusters_of_one")

    async def prune(self, before: float, kept: int) -> int:
        """Delete earlier versions of pages: those last seen before a time, and all but the ``kept`` newest of a page.

        The newest version of a page counts as one of these, and stays. Returns how many versions were deleted.
        """
        deleted = await self._prune(before, kept)
        await self._bodies.delete_dropped()
        return deleted

    @in_transaction
    async def _prune(self, before: float, kept: int) -> int:
        await self._sql.execute("erase_deleted")
        outdated = await self._sql.fetch_one("outdated", before=before, kept=kept)
        await self._sql.execute("outdated_bodies", before=before, kept=kept)
        await self._sql.execute("prune_versions", before=before, kept=kept)
        await self._revisits.sweep()
        return int(outdated.n)

    async def compact(self) -> tuple[int, int]:
        """Return the space of deleted rows to the disk; returns the sizes of the store before and after, in bytes."""
        before = await self._read.fetch_one("store_bytes")
        await self._sql.execute("compact")
        after = await self._read.fetch_one("store_bytes")
        return int(before.n), int(after.n)

    async def empty_log(self) -> bool:
        """Empty SQLite's write-ahead log, which holds earlier contents; ``False`` if a reader prevents it for 10 s.

        No-op on PostgreSQL, whose log is the server's.
        """
        row = await self._sql.fetch_one("empty_log")
        return not row.busy
