"""The facts of the report, gathered from a store. SQL makes the sums, so memory does not grow with the crawl."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.audit.log_reader import snapshot
from crawler.audit.run_audit import AuditResult, run_audit
from crawler.audit.totals import LogTotals, read_totals
from crawler.errors import UsageError
from crawler.inspect.seeds import Outcome, in_order
from crawler.model import State
from crawler.reasons import ErrorKind
from crawler.robots.doubts import Doubts, doubts_about
from crawler.sampling import load
from crawler.store.named_rows import by_column
from crawler.store.rows import Counts
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.sampling import Survey
    from crawler.sampling.variables import Variable
    from crawler.store.sections import Store

#: How many rows a table of the report has at most.
MAX_SITES = 200
MAX_MIRRORS = 100
MAX_DOUBTFUL_SITES = 50
MAX_BROKEN_TARGETS = 100
MAX_SEEDS = 10
_MAX_LINKING_PAGES = 3
_MAX_GROUPS = 12
_OTHERS = "all others"
_MAX_SLOTS = 72

#: The widths of slots, in seconds.
_WIDTHS_S = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
    *(86400 * days for days in (1, 2, 7, 14, 28, 91, 365, 3650)),
)

_SQL = load_statements("crawler.report")


#: The classes of answers to a request, in the order of :attr:`Slot.requests`.
ANSWERS = ("2xx", "3xx", "4xx", "5xx", "no answer")

#: The quantiles of a :class:`Distribution`, in its order.
QUANTILES = (0.5, 0.9, 0.99)


class Slot(NamedTuple):
    """One of the equal spans that the report divides the time into. It starts at ``number`` times their width."""

    number: int
    pages: int
    requests: Sequence[int]  # by ANSWERS


class Timeline(NamedTuple):
    """The slots of ``width_s`` that contain a request or a page. ``active_s`` is how long the runs sent requests."""

    active_s: float
    width_s: float
    slots: Sequence[Slot]


class Distribution(NamedTuple):
    """How many values are in each class; ``counts[i]`` of them lie in [``bounds[i]``, ``bounds[i + 1]``).

    The last class has no upper bound, so there are as many counts as bounds. Empty classes at both ends are left out.
    """

    bounds: Sequence[float]
    counts: Sequence[int]
    quantiles: Sequence[float]  # by QUANTILES; empty if there are no values
    maximum: float

    @property
    def total(self) -> int:
        return sum(self.counts)


class BrokenTarget(NamedTuple):
    """A linked URL that failed or redirects to one that failed: how many pages link to it, and some of these pages."""

    url: str
    reason: str
    pages: int
    linked_from: Sequence[str]


class BrokenLinks(NamedTuple):
    """The number of broken links, the number of their targets, and the most linked targets."""

    links: int
    targets: int
    first: Sequence[BrokenTarget]


class DoubtfulSite(NamedTuple):
    """A site whose robots.txt in force has lines in doubt, and the number of pages fetched there."""

    site: str
    fetched: int
    doubts: Doubts


@dataclass(frozen=True, slots=True)
class Facts:
    """All data of the report. A sequence of any type has rows of a statement in ``queries.sql``, with its columns.

    Times are seconds since the epoch (UTC), spans seconds, sizes bytes.
    ``audit`` is a sentence if the audit is impossible. ``survey`` describes a sample: ``None`` if none was drawn, a
    sentence if the estimates are impossible.
    """

    at: float
    store: str
    counts: Counts
    totals: LogTotals
    runs: Sequence[Any]
    first_seeds: Sequence[tuple[str, Outcome]]
    seed_outcomes: Mapping[Outcome, int]  # lines that were skipped included
    audit: AuditResult | str
    timeline: Timeline
    depths: Mapping[int, Mapping[State, int]]
    answers: Sequence[tuple[str, int]]  # to requests for pages: (status or error, how many)
    types: Sequence[tuple[str, int]]
    page_bytes: int
    noindex: int
    withheld: int  # pages that refuse a declared purpose
    sizes: Distribution
    answer_times: Distribution
    excluded: Sequence[Any]  # reasons: code, urls, example_url, example
    failed: Sequence[Any]
    broken: BrokenLinks
    robots: Sequence[tuple[str, int]]  # (meaning of the robots.txt in force, sites)
    disallowed: Sequence[tuple[str, int]]  # (site, URLs that its robots.txt disallows), of all sites
    doubtful: Sequence[DoubtfulSite]
    all_doubtful: int  # ``doubtful`` has the first of these
    sites: Sequence[Any]
    mirrors: Sequence[Any]
    all_mirrors: int  # ``mirrors`` has the first of these
    fetched_sites: int  # sites with pages, all of them
    survey: Survey | str | None = None


async def gather(
    store: Store,
    name: str,
    now: float,
    variables: Mapping[str, Variable] | None = None,
    by: str | None = None,
    audit: Callable[[Store, float], Awaitable[AuditResult]] = run_audit,
) -> Facts:
    """The facts about a store called ``name``; ``now`` in seconds since the epoch.

    ``variables`` and ``by`` are for the estimates from a sample, see :func:`crawler.sampling.survey.survey`. Raises
    :class:`UsageError` if these are given and there is no estimate of them.

    All facts but the audit are of one moment, even if a crawl writes to the store.
    """
    audited = await _audit(store, now, audit)
    async with snapshot(store):
        (totals,) = await store.query(_SQL["totals"])
        doubtful, all_doubtful = await _doubtful_sites(store)
        return Facts(
            at=now,
            store=name,
            counts=await store.counts(),
            totals=await read_totals(store),
            runs=await _rows(store, "runs"),
            first_seeds=[
                (row["url"], Outcome(row["outcome"])) for row in await store.query(_SQL["seeds"], {"limit": MAX_SEEDS})
            ],
            seed_outcomes=in_order(
                {Outcome(row["outcome"]): row["seeds"] for row in await store.query(_SQL["seed_outcomes"])}
            ),
            audit=audited,
            timeline=await _timeline(store),
            depths=await _depths(store),
            answers=await _answers(store),
            types=[(what or "not stated", n) for what, n in await _counted(store, "content_types")],
            page_bytes=totals["page_bytes"],
            noindex=totals["not_kept"] - totals["withheld"] - totals["unread"] - totals["unwanted"],
            withheld=totals["withheld"],
            sizes=await _distribution(store, "page_size"),
            answer_times=await _distribution(store, "response_time"),
            excluded=await _rows(store, "reasons", state=State.EXCLUDED),
            failed=await _rows(store, "reasons", state=State.FAILED),
            broken=await _broken_links(store),
            robots=await _counted(store, "robots_actions"),
            disallowed=await _counted(store, "disallowed"),
            doubtful=doubtful,
            all_doubtful=all_doubtful,
            sites=await _rows(store, "sites", limit=MAX_SITES),
            mirrors=await _rows(store, "mirrors", limit=MAX_MIRRORS),
            all_mirrors=totals["mirrors"],
            fetched_sites=totals["fetched_sites"],
            survey=await _survey(store, now, variables, by),
        )


async def _rows(store: Store, statement: str, **parameters: object) -> list[Any]:
    return by_column(await store.query(_SQL[statement], parameters))


async def _audit(
    store: Store, now: float, audit: Callable[[Store, float], Awaitable[AuditResult]]
) -> AuditResult | str:
    try:
        return await audit(store, now)
    except UsageError as error:  # the settings of a run are unreadable; the rest of the report is possible
        return str(error)


async def _survey(
    store: Store, now: float, variables: Mapping[str, Variable] | None, by: str | None
) -> Survey | str | None:
    is_asked = bool(variables) or by is not None
    if not is_asked and await store.samples.drawn() is None:
        return None
    try:
        made: Survey = await load("survey").survey(store, now, variables, by)
    except UsageError as error:  # the extra for estimates is not installed
        if is_asked:
            raise
        return str(error)
    return made


async def _counted(store: Store, statement: str) -> list[tuple[str, int]]:
    """The largest groups, and the sum of the others, so that a share of the list is a share of all."""
    rows = await store.query(_SQL[statement], {"limit": _MAX_GROUPS})
    counted = [(row["what"], row["n"]) for row in rows]
    others = rows[0]["total"] - sum(n for _, n in counted) if rows else 0
    return [*counted, (_OTHERS, others)] if others else counted


async def _answers(store: Store) -> list[tuple[str, int]]:
    """Requests for pages by status, or by the meaning of their error."""
    meanings = {kind.value: kind.meaning for kind in ErrorKind}
    return [(meanings.get(what, what) or "no answer", n) for what, n in await _counted(store, "answers")]


async def _broken_links(store: Store) -> BrokenLinks:
    limits = {"pages_of_each": _MAX_LINKING_PAGES, "limit": MAX_BROKEN_TARGETS * _MAX_LINKING_PAGES}
    rows = await store.query(_SQL["broken_links"], limits)
    if not rows:
        return BrokenLinks(0, 0, [])
    targets: defaultdict[tuple[str, str, int], list[str]] = defaultdict(list)
    for row in rows:
        targets[row["url"], row["reason"], row["pages"]].append(row["page"])
    first = [BrokenTarget(*target, pages) for target, pages in targets.items()]
    return BrokenLinks(rows[0]["links"], rows[0]["targets"], first[:MAX_BROKEN_TARGETS])


async def _depths(store: Store) -> Mapping[int, Mapping[State, int]]:
    depths: defaultdict[int, dict[State, int]] = defaultdict(dict)
    for row in await store.query(_SQL["urls_by_depth"]):
        depths[row["depth"]][State(row["state"])] = row["urls"]
    return depths


async def _timeline(store: Store) -> Timeline:
    """The timeline with the narrowest slots of which at most ``_MAX_SLOTS`` contain a request."""
    (active,) = await store.query(_SQL["active_time"])
    for width_s in _WIDTHS_S:
        (filled,) = await store.query(_SQL["filled_slots"], {"width_s": width_s, "limit": _MAX_SLOTS + 1})
        if filled["slots"] <= _MAX_SLOTS:
            break
    width = {"width_s": width_s}
    pages = {row["slot"]: row["pages"] for row in await store.query(_SQL["pages_by_slot"], width)}
    requests: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for row in await store.query(_SQL["requests_by_slot"], width):
        requests[row["slot"]][row["answer"]] = row["requests"]
    slots = [
        Slot(number, pages.get(number, 0), [requests[number].get(answer, 0) for answer in ANSWERS])
        for number in sorted({*pages, *requests})
    ]
    return Timeline(active["active_s"], width_s, slots)


async def _distribution(store: Store, quantity: str) -> Distribution:
    """Counts by class and exact quantiles. Empty classes at both ends are left out."""
    classes = await store.query(_SQL[f"{quantity}_classes"])
    total = sum(row["n"] for row in classes)
    if not total:
        return Distribution((), (), (), 0)
    places = [max(1, math.ceil(share * total)) for share in QUANTILES]
    parameters = dict(zip(("half", "most", "nearly_all", "all"), [*places, total], strict=True))
    at_place = {row["place"]: row["x"] for row in await store.query(_SQL[f"{quantity}_ranks"], parameters)}
    filled = [n for n, row in enumerate(classes) if row["n"]]
    shown = classes[filled[0] : filled[-1] + 1]
    return Distribution(
        [float(row["low"]) for row in shown],
        [row["n"] for row in shown],
        [at_place[place] for place in places],
        at_place[total],
    )


async def _doubtful_sites(store: Store) -> tuple[list[DoubtfulSite], int]:
    """The first sites whose robots.txt has lines in doubt, and their number. Each text is read once."""
    first: list[tuple[int, int, DoubtfulSite]] = []  # a heap; its least element is the last to be shown
    number, text, found = 0, None, Doubts()
    async with aclosing(store.rows(_SQL["robots_files"])) as sites:
        async for site in sites:
            if site.text_id != text:
                (row,) = await store.query(_SQL["robots_text"], {"text_id": site.text_id})
                text, found = site.text_id, doubts_about(row["body"])
            if found.count:
                number += 1
                put = heappush if len(first) < MAX_DOUBTFUL_SITES else heappushpop
                put(first, (site.fetched, -site.site_id, DoubtfulSite(site.site, site.fetched, found)))
    return [site for *_, site in sorted(first, reverse=True)], number
