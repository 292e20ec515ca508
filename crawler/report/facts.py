"""The data of the report. Times are seconds since the epoch (UTC), spans seconds, sizes bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawler.audit.run_audit import AuditResult
from crawler.audit.totals import LogTotals
from crawler.model import State
from crawler.reasons import ReasonCode
from crawler.robots.doubts import Doubts
from crawler.robots.mirrors import Contradiction
from crawler.store.rows import Counts

if TYPE_CHECKING:
    from crawler.sampling import Survey

#: The classes of answers to a request, in the order of :attr:`Slot.requests`.
ANSWERS = ("2xx", "3xx", "4xx", "5xx", "no answer")

#: The quantiles of a :class:`Distribution`, in its order.
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One ``crawler run``. ``settings`` is the JSON text of the settings in force."""

    number: int
    started_at: float
    finished_at: float | None  # None: the run is under way, or was killed
    ended_by: str | None
    crawler_version: str
    settings: str


@dataclass(frozen=True, slots=True)
class Slot:
    """One of the equal spans that the report divides the time of the crawl into.

    The slot starts at ``number`` times the width of the slots.
    """

    number: int
    pages: int
    requests: Sequence[int]  # by ANSWERS


@dataclass(frozen=True, slots=True)
class Timeline:
    """The slots that contain a request or a page, in order.

    ``width_s`` is the width of each slot. ``active_s`` is how long the runs sent requests: the time between runs does
    not count.
    """

    active_s: float
    width_s: float
    slots: Sequence[Slot]


@dataclass(frozen=True, slots=True)
class Distribution:
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


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """The URLs whose reason has the same code: their number, and one of them with the sentence of its reason."""

    code: ReasonCode
    urls: int
    example_url: str
    example: str


@dataclass(frozen=True, slots=True)
class BrokenTarget:
    """A linked URL that failed or redirects to one that failed: how many pages link to it, and some of these pages."""

    url: str
    reason: str
    pages: int
    linked_from: Sequence[str]


@dataclass(frozen=True, slots=True)
class BrokenLinks:
    """The number of broken links, the number of their targets, and the most linked targets."""

    links: int
    targets: int
    first: Sequence[BrokenTarget]


@dataclass(frozen=True, slots=True)
class SiteRow:
    """One site. ``robots_action`` is ``None`` if the crawler never asked for its robots.txt."""

    number: int  # in the store
    site: str
    states: Mapping[State, int]  # URLs by state
    requests: int
    bytes: int
    mean_s: float | None  # mean time of a response to a request for a page
    robots_action: str | None
    robots_status: str | None
    disallowed: int
    crawl_delay_s: float | None
    pause_s: float | None  # None if the crawler sent no request there
    links_in: int  # from other sites


@dataclass(frozen=True, slots=True)
class PageRow:
    """A page in a list of extremes, with the ``figure`` that puts it there."""

    url: str
    title: str | None
    figure: float


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """A mirror and its main site.

    ``sample`` and ``confidence`` belong to the evidence ``content``, ``contradiction`` to ``refuted``.
    """

    site: str
    main_site: str
    evidence: str
    sample: int | None
    confidence: float | None
    leads_to: str | None
    contradiction: str | None = None

    @property
    def contradicted(self) -> str:
        """Why the named site is no main site; empty if it is one."""
        return "" if self.contradiction is None else Contradiction(self.contradiction).meaning


@dataclass(frozen=True, slots=True)
class DoubtfulSite:
    """A site whose robots.txt in force has lines in doubt, and the number of pages fetched there."""

    site: str
    fetched: int
    doubts: Doubts


@dataclass(frozen=True, slots=True)
class Facts:
    """All data of the report.

    ``audit`` is a sentence if the audit is impossible. ``survey`` describes a sample: ``None`` if none was drawn, a
    sentence if the estimates are impossible.
    """

    at: float
    store: str
    counts: Counts
    totals: LogTotals
    runs: Sequence[RunRow]
    seeds: int
    first_seeds: Sequence[str]
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
    excluded: Sequence[ReasonGroup]
    failed: Sequence[ReasonGroup]
    broken: BrokenLinks
    robots: Sequence[tuple[str, int]]  # (meaning of the robots.txt in force, sites)
    disallowed: Sequence[tuple[str, int]]  # (site, URLs that its robots.txt disallows), of all sites
    doubtful: Sequence[DoubtfulSite]
    all_doubtful: int  # ``doubtful`` has the first of these
    sites: Sequence[SiteRow]
    mirrors: Sequence[MirrorRow]
    all_mirrors: int  # ``mirrors`` has the first of these
    fetched_sites: int  # sites with pages, all of them
    most_linked: Sequence[PageRow]
    largest: Sequence[PageRow]
    slowest: Sequence[PageRow]
    survey: Survey | str | None = None
