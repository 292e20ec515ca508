"""A turn cut up by the nodes that have its groups: what it brings of one group asks nothing of another."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from crawler.store.postgres.groups import GroupedPostgres
from crawler.store.protocols import Turn


async def parts_of(turn: Turn, db: GroupedPostgres) -> list[Turn]:
    """The turn in parts, each of them for the groups of one node. The last one claims, for all."""
    if not db.is_spread:
        return [turn]
    sites = list(
        {o.queued.site_id for o in turn.outcomes}
        | {row.site_id for row in turn.requests}
        | {news.site_id for news in turn.robots}
    )
    names = list({*turn.paces, *turn.visited})
    of_site = dict(zip(sites, await db.groups_of(sites), strict=True))
    of_name = dict(zip(names, await db.groups_named(names), strict=True))
    groups = {*of_site.values(), *of_name.values(), *turn.released}
    nodes = await db.nodes_of(group for group in groups if group is not None)
    limits = replace(turn.limits, groups=0, max_pages=None)
    parts: dict[int | None, Turn] = defaultdict(lambda: Turn(turn.now, limits))

    def of(group: int | None) -> Turn:
        return parts[None if group is None else nodes[group]]

    for outcome in turn.outcomes:
        of(of_site[outcome.queued.site_id]).outcomes.append(outcome)
    for row in turn.requests:
        of(of_site[row.site_id]).requests.append(row)
    for news in turn.robots:
        of(of_site[news.site_id]).robots.append(news)
    for name, pace in turn.paces.items():
        of(of_name[name]).paces[name] = pace
    for group in turn.released:
        of(group).released.append(group)
    for name in turn.visited:
        of(of_name[name]).visited.append(name)
    return [*parts.values(), Turn(turn.now, turn.limits, worst_lag_s=turn.worst_lag_s)]
