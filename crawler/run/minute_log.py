"""A log record each minute of a running crawl: how far it is, and what it waits for."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from crawler.clock import Clock
from crawler.engine.progress import Progress
from crawler.errors import StoreError
from crawler.formatting import duration, instant, many
from crawler.run.live_display import Watched
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

EVERY_S = 60.0
_LOG = logging.getLogger("crawler.run")
_SQL = load_statements("crawler.run")


async def log_minutes(crawl: Watched, store: Store, clock: Clock) -> None:
    """Write a record of the level ``info`` each minute, until it is cancelled.

    Its facts: ``pages``, ``requests``, ``bytes`` of this run, ``queued`` URLs, ``waits`` (groups that may not be asked
    yet), ``worst_lag_s`` of the event loop, and the ``group`` that waits longest with ``until`` and ``reason``.
    """
    while True:
        await clock.sleep(EVERY_S)
        if _LOG.isEnabledFor(logging.INFO):
            with suppress(StoreError):  # the crawl waits for the database, and reports if it is lost
                await _write_one(crawl.progress, store, clock.now())


async def _write_one(progress: Progress, store: Store, now: float) -> None:
    longest = next(iter(await store.waiting(now, 1)), None)
    (waits,) = await store.query(_SQL["count_waiting"], {"now": now})
    facts: dict[str, object] = {
        "pages": progress.pages,
        "requests": progress.sent_requests,
        "bytes": progress.wire_bytes,
        "queued": await store.queued_count(),
        "waits": waits["n"],
        "worst_lag_s": round(progress.worst_lag_s, 3),
    }
    text = f"{many(progress.pages, 'page')}, {many(progress.sent_requests, 'request')}, {facts['queued']:,} queued"
    if longest is not None and longest.until > now:
        facts |= {"group": longest.group, "until": instant(longest.until), "reason": longest.reason}
        text += f"; {longest.group} waits longest, for {duration(longest.until - now)}: {longest.reason}"
    _LOG.info("%s", text, extra=facts)
