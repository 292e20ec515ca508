"""Stored times that only a wrong clock can have written, set right at the beginning of a run.

If the clock of an earlier run was ahead, everything that it stored waits until that clock's time. A worker stores its
time with each commit, so a worker that was seen in the future proves such a clock. Then each stored wait is compared
with the longest one that its own reason allows. What is longer begins anew now, so no pause that a site asked for gets
shorter.
"""

from __future__ import annotations

import logging

from crawler.formatting import duration, many
from crawler.frontier.politeness import CLOCKS_DIFFER_S, within_reason
from crawler.store.sql.offers import Offers
from crawler.store.sql.tables import StoreStatements
from crawler.store.sql.workers import pace_of

_LOG = logging.getLogger("crawler.store")

#: The longest pause before a URL is retried, in seconds, apart from the pause of its group.
_LONGEST_RETRY_S = 7 * 86400.0


async def set_right(sql: StoreStatements, offers: Offers, now: float, name: str) -> None:
    """Set the times of the store ``name`` right if an earlier clock was ahead, and warn. Within a transaction."""
    terms = {"now": now, "differ": CLOCKS_DIFFER_S}
    workers = await sql.fetch("workers_ahead", **terms)
    if not workers:
        return
    await sql.execute("set_workers_right", **terms)
    paces = {
        row.id: (pace_of(row), within_reason(pace_of(row), now)) for row in await sql.fetch("paces_ahead", **terms)
    }
    late = {number: right for number, (stored, right) in paces.items() if right is not stored}
    await sql.update("politeness_group", [{"id": number, "next_at": pace.next_at} for number, pace in late.items()])
    sites = await sql.fetch("set_robots_right", **terms)
    urls = [row.id for row in await sql.fetch("retries_ahead", latest=now + _LONGEST_RETRY_S)]
    await offers.dequeue(urls)
    await sql.update("url", [{"id": number, "due_at": now} for number in urls])
    await offers.enqueue(urls)
    revisits = await sql.fetch("set_revisits_right", **terms)
    await offers.refresh({*late, *(row.group_id for row in sites), *await offers.groups(urls)})
    _LOG.warning(
        "%s: the clock of an earlier run was %s ahead of the clock of this machine; the waits of %s, %s, %s and %s "
        "begin anew now",
        name,
        duration(max(row.seen_at for row in workers) - now),
        many(len(late), "host"),
        many(len(sites), "robots.txt file"),
        many(len(urls), "URL"),
        many(len(revisits), "revisit"),
    )
