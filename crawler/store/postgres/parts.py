"""A commit batch divided by the nodes that hold its groups: its parts are independent of each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from crawler.store.postgres.groups import GroupedPostgres
from crawler.store.protocols import CommitBatch


async def parts_of(batch: CommitBatch, db: GroupedPostgres) -> list[CommitBatch]:
    """The batch in parts, one for the groups of each node. The last part claims, on all nodes."""
    if not db.is_spread:
        return [batch]
    sites = list(
        {o.queued.site_id for o in batch.outcomes}
        | {row.site_id for row in batch.requests}
        | {news.site_id for news in batch.robots}
        | batch.tdmrep.keys()
    )
    names = list({*batch.paces, *batch.unreserved})
    of_site = dict(zip(sites, await db.groups_of(sites), strict=True))
    of_name = dict(zip(names, await db.groups_named(names), strict=True))
    groups = {*of_site.values(), *of_name.values(), *batch.released}
    nodes = await db.nodes_of(group for group in groups if group is not None)
    limits = replace(batch.limits, groups=0, max_pages=None)
    parts: dict[int | None, CommitBatch] = defaultdict(lambda: CommitBatch(batch.now, limits))

    def of(group: int | None) -> CommitBatch:
        return parts[None if group is None else nodes[group]]

    for outcome in batch.outcomes:
        of(of_site[outcome.queued.site_id]).outcomes.append(outcome)
    for row in batch.requests:
        of(of_site[row.site_id]).requests.append(row)
    for news in batch.robots:
        of(of_site[news.site_id]).robots.append(news)
    for site, file in batch.tdmrep.items():
        of(of_site[site]).tdmrep[site] = file
    for name, pace in batch.paces.items():
        of(of_name[name]).paces[name] = pace
    for group in batch.released:
        of(group).released.append(group)
    for name in batch.unreserved:
        of(of_name[name]).unreserved.append(name)
    last = CommitBatch(batch.now, batch.limits, worst_lag_s=batch.worst_lag_s)
    last.refuted, last.doubted = batch.refuted, batch.doubted  # after the outcomes
    return [*parts.values(), last]
