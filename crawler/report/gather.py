"""Gathers the report's figures from a store: sums made by SQL, so that memory does not grow with the crawl."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING

from crawler.audit.log_reader import snapshot
from crawler.audit.run_audit import AuditResult, run_audit
from crawler.audit.totals import read_totals
from crawler.errors import UsageError
from crawler.model import State
from crawler.page.directives import asked_of
from crawler.reasons import ErrorKind, ReasonCode
from crawler.report import queries
from crawler.report.facts import (
    ANSWERS,
    QUANTILES,
    BrokenLinks,
    BrokenTarget,
    Distribution,
    DoubtfulSite,
    Facts,
    MirrorRow,
    PageRow,
    ReasonGroup,
    RunRow,
    SiteGraph,
    SiteRow,
    Slot,
    Timeline,
)
from crawler.robots.doubts import Doubts, doubts_about
from crawler.sampling import load
from crawler.store.protocols import Store

if TYPE_CHECKING:
    from crawler.sampling.survey import Survey

SITES_SHOWN = 200
MIRRORS_SHOWN = 100
DOUBTFUL_SHOWN = 50
PAGES_SHOWN = 15
BROKEN_SHOWN = 100
_LINKING_SHOWN = 3
SITES_DRAWN = 60
SEEDS_SHOWN = 10
_GROUPS_SHOWN = 12
_SLOTS = 72

_SPANS_S = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
    *(86400 * days for days in (1, 2, 7, 14, 28, 91, 365, 3650)),
)
_SIZES = (0, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6)
_TIMES_S = (0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)


async def gather(store: Store, name: str, now: float) -> Facts:
    """Everything the report tells of a store called ``name``; but for the audit all of one moment, though a crawl
    may go on."""
    audited = await _audit(store, now)
    async with snapshot(store):
        (totals,) = await store.query(queries.TOTALS)
        doubtful, all_doubtful = await _doubtful(store)
        return Facts(
            at=now,
            store=name,
            counts=await store.counts(),
            totals=await read_totals(store),
            runs=[RunRow(*row.values()) for row in await store.query(queries.RUNS)],
            seeds=totals["seeds"],
            first_seeds=[row["url"] for row in await store.query(queries.SEEDS, (SEEDS_SHOWN,))],
            audit=audited,
            timeline=await _timeline(store),
            depths=await _depths(store),
            answers=await _answers(store),
            types=await _counted(store, queries.TYPES),
            page_bytes=totals["page_bytes"],
            noindex=totals["noindex"],
            sizes=await _distribution(store, "body_bytes", "page", _SIZES),
            answer_times=await _distribution(store, *queries.ANSWER_TIME, _TIMES_S),
            excluded=await _reasons(store, State.EXCLUDED),
            failed=await _reasons(store, State.FAILED),
            broken=await _broken(store),
            robots=await _counted(store, queries.ROBOTS),
            doubtful=doubtful,
            all_doubtful=all_doubtful,
            sites=await _sites(store),
            mirrors=[MirrorRow(*row.values()) for row in await store.query(queries.MIRRORS, (MIRRORS_SHOWN,))],
            all_mirrors=totals["mirrors"],
            graph=await _graph(store),
            most_linked=await _pages(store, queries.MOST_LINKED, now),
            largest=await _pages(store, queries.LARGEST, now),
            slowest=await _pages(store, queries.SLOWEST, now),
            survey=await _survey(store),
        )


async def _audit(store: Store, now: float) -> AuditResult | str:
    try:
        return await run_audit(store, now)
    except UsageError as error:  # a run without readable settings: the rest can be told all the same
        return str(error)


async def _survey(store: Store) -> Survey | str | None:
    if await store.sample_draw() is None:
        return None
    try:
        made: Survey = await load("survey").survey(store)
    except UsageError as error:  # what estimates need is not installed
        return str(error)
    return made


async def _counted(store: Store, sql: str) -> list[tuple[str, int]]:
    return [(row["what"], row["n"]) for row in await store.query(sql, (_GROUPS_SHOWN,))]


async def _answers(store: Store) -> list[tuple[str, int]]:
    """How many requests for pages were answered with each status, or failed with each kind of error."""
    kinds = {kind.value: kind.meaning for kind in ErrorKind}
    return [(kinds.get(what, what), n) for what, n in await _counted(store, queries.ANSWERS)]


async def _reasons(store: Store, state: State) -> list[ReasonGroup]:
    rows = await store.query(queries.REASONS, (state, _GROUPS_SHOWN))
    return [ReasonGroup(ReasonCode(row["code"]), row["n"], row["url"], row["reason"]) for row in rows]


async def _broken(store: Store) -> BrokenLinks:
    rows = await store.query(queries.BROKEN, (_LINKING_SHOWN, BROKEN_SHOWN * _LINKING_SHOWN))
    targets: defaultdict[tuple[str, str, int], list[str]] = defaultdict(list)
    for row in rows:
        targets[row["url"], row["reason"], row["pages"]].append(row["page"])
    first = [BrokenTarget(*target, pages) for target, pages in targets.items()]
    return BrokenLinks(rows[0]["links"], rows[0]["targets"], first[:BROKEN_SHOWN]) if rows else BrokenLinks(0, 0, [])


async def _pages(store: Store, sql: str, now: float) -> list[PageRow]:
    """Without the titles of those that may not be shown any more."""
    rows = await store.query(sql, (PAGES_SHOWN,))
    shown = [row["title"] if asked_of(row["directives"]).until > now else None for row in rows]
    return [PageRow(row["url"], title, row["figure"]) for row, title in zip(rows, shown, strict=True)]


async def _depths(store: Store) -> Mapping[int, Mapping[State, int]]:
    depths: defaultdict[int, dict[State, int]] = defaultdict(dict)
    for row in await store.query(queries.DEPTHS):
        depths[row["depth"]][State(row["state"])] = row["n"]
    return depths


async def _timeline(store: Store) -> Timeline:
    """Slots as narrow as leaves no more than _SLOTS of them filled."""
    (active,) = await store.query(queries.ACTIVE_S)
    for width_s in _SPANS_S:
        (filled,) = await store.query(queries.FILLED, (width_s, _SLOTS + 1))
        if filled["n"] <= _SLOTS:
            break
    pages = {row["slot"]: row["n"] for row in await store.query(queries.SLOT_PAGES, (width_s,))}
    requests: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for row in await store.query(queries.SLOT_REQUESTS, (width_s,)):
        requests[row["slot"]][row["answer"]] = row["n"]
    slots = [
        Slot(number, pages.get(number, 0), [requests[number].get(answer, 0) for answer in ANSWERS])
        for number in sorted({*pages, *requests})
    ]
    return Timeline(active["s"], width_s, slots)


async def _distribution(store: Store, expression: str, source: str, bounds: Sequence[float]) -> Distribution:
    """Counts between ``bounds`` and exact quantiles; empty classes at both ends are left out."""
    below = ", ".join(f"count(*) FILTER (WHERE x < {bound}) AS b{n}" for n, bound in enumerate(bounds))
    values = f"(SELECT {expression} AS x FROM {source}) AS v"
    (row,) = await store.query(f"SELECT {below}, count(*) AS n, max(x) AS most FROM {values}")
    *cumulated, total, most = row.values()
    if not total:
        return Distribution((), (), (), 0)
    ranks = [max(1, math.ceil(share * total)) for share in QUANTILES]
    ranked = f"SELECT x, row_number() OVER (ORDER BY x) AS n FROM {values}"
    rows = await store.query(
        f"SELECT n, x FROM ({ranked}) AS r WHERE n IN ({','.join('?' * len(ranks))}) ORDER BY n", ranks
    )
    by_rank = {row["n"]: row["x"] for row in rows}
    counts = [above - under for under, above in zip(cumulated, [*cumulated[1:], total], strict=True)]
    filled = [n for n, count in enumerate(counts) if count]
    shown = slice(filled[0], filled[-1] + 1)
    return Distribution(bounds[shown], counts[shown], [by_rank[rank] for rank in ranks], most)


async def _sites(store: Store) -> list[SiteRow]:
    states = ", ".join(f"count(*) FILTER (WHERE u.state = '{state}') AS {state}" for state in State)
    names = ", ".join(f"coalesce(e.{state}, 0) AS {state}" for state in State)
    sites = []
    for row in await store.query(queries.SITES.format(states=states, names=names), (SITES_SHOWN,)):
        number, site, *rest = row.values()
        ended = {state: row[state] for state in State}
        sites.append(SiteRow(number, site, ended, *rest[len(State) :]))
    return sorted(sites, key=lambda site: (-site.states[State.FETCHED], -site.requests, site.number))


async def _doubtful(store: Store) -> tuple[list[DoubtfulSite], int]:
    """The first sites whose robots.txt has lines in doubt, and how many there are.

    Sites come by their text, which is judged once, however many have it.
    """
    first: list[tuple[int, int, DoubtfulSite]] = []  # a heap, the last to be shown on top
    count, judged, found = 0, None, Doubts()
    async with aclosing(store.rows(queries.ROBOTS_FILES)) as sites:
        async for number, site, fetched, text in sites:
            if text != judged:
                (row,) = await store.query(queries.ROBOTS_TEXT, (text,))
                judged, found = text, doubts_about(row["body"])
            if found.count:
                count += 1
                put = heappush if len(first) < DOUBTFUL_SHOWN else heappushpop
                put(first, (fetched, -number, DoubtfulSite(site, fetched, found)))
    return [site for *_, site in sorted(first, reverse=True)], count


async def _graph(store: Store) -> SiteGraph:
    drawn = await store.query(queries.DRAWN, (SITES_DRAWN,))
    places = {row["id"]: place for place, row in enumerate(drawn)}
    wanted = ", ".join("?" * len(places)) or "NULL"
    rows = await store.query(queries.EDGES.format(places=wanted), [*places, *places])
    links = {(places[row["a"]], places[row["b"]]): row["n"] for row in rows}
    (fetched,) = await store.query(queries.FETCHED_SITES)
    return SiteGraph([(row["name"], row["fetched"]) for row in drawn], links, fetched["n"])
