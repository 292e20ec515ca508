"""What the report tells, as plain data. Times are seconds since the epoch (UTC), spans seconds, sizes bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawler.audit.run_audit import AuditResult
from crawler.audit.totals import LogTotals
from crawler.model import State
from crawler.robots.doubts import Doubts
from crawler.store.protocols import Counts

if TYPE_CHECKING:
    from crawler.sampling.survey import Survey

#: What became of a request, as the report tells them apart; the order of :attr:`Slot.requests`.
ANSWERS = ("2xx", "3xx", "4xx", "5xx", "no answer")

#: The quantiles that a :class:`Spread` has, in its order.
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Run:
    """One ``crawler run``. ``settings`` is the JSON text of what was in force."""

    number: int
    started_at: float
    finished_at: float | None  # None: it runs, or was killed
    ended_by: str | None
    crawler_version: str
    settings: str


@dataclass(frozen=True, slots=True)
class Slot:
    """One of the equal spans that the crawl's time is divided into; ``number`` times their width is its start."""

    number: int
    pages: int
    requests: Sequence[int]  # by ANSWERS


@dataclass(frozen=True, slots=True)
class Timeline:
    """The slots in which anything happened, in order. ``width_s`` is that of each; ``active_s`` is how long requests
    were sent, the time between runs left out."""

    active_s: float
    width_s: float
    slots: Sequence[Slot]


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity is distributed: ``counts[i]`` of them lie in [``bounds[i]``, ``bounds[i + 1]``).

    The first bound is 0, the last class is open above: there are as many counts as bounds.
    """

    bounds: Sequence[float]
    counts: Sequence[int]
    quantiles: Sequence[float]  # by QUANTILES; empty where there is nothing to count
    most: float

    @property
    def total(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why URLs ended as they did: the word that groups, how many, and one of them with its reason in full."""

    word: str
    urls: int
    example_url: str
    example: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A URL that links lead to and that failed, or redirects to one that did: how many pages link to it, and some."""

    url: str
    reason: str
    pages: int
    linked_from: Sequence[str]


@dataclass(frozen=True, slots=True)
class BrokenLinks:
    """How many links lead to such a URL, to how many of these, and the most linked of them."""

    links: int
    targets: int
    first: Sequence[Broken]


@dataclass(frozen=True, slots=True)
class SiteRow:
    """One site. ``robots_action`` is ``None`` where its robots.txt was never asked for."""

    number: int  # as in the store
    site: str
    states: Mapping[State, int]
    requests: int
    bytes: int
    mean_s: float | None  # of the answers for its pages
    robots_action: str | None
    robots_status: str | None
    disallowed: int
    crawl_delay_s: float | None
    pause_s: float
    links_in: int  # from other sites


@dataclass(frozen=True, slots=True)
class PageRow:
    """A page that stands out, and the ``figure`` that it stands out by."""

    url: str
    title: str | None
    figure: float


@dataclass(frozen=True, slots=True)
class Mirror:
    """A site that another stands for. ``confidence`` is that of the evidence ``content``."""

    site: str
    main_site: str
    evidence: str
    sample: int | None
    confidence: float | None
    leads_to: str | None


@dataclass(frozen=True, slots=True)
class DoubtfulSite:
    """A site whose robots.txt in force has lines in doubt, and the pages fetched there."""

    site: str
    fetched: int
    doubts: Doubts


@dataclass(frozen=True, slots=True)
class Graph:
    """Sites and the links between them: ``sites`` as (name, pages fetched), ``links`` by their places therein."""

    sites: Sequence[tuple[str, int]]
    links: Mapping[tuple[int, int], int]
    fetched_sites: int  # all that pages were fetched from, shown or not


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is told. ``audit`` and ``survey`` (of a sample, where there is one) are a sentence that says why where
    they could not be made."""

    at: float
    store: str
    counts: Counts
    history: LogTotals
    runs: Sequence[Run]
    seeds: int
    first_seeds: Sequence[str]
    audit: AuditResult | str
    timeline: Timeline
    depths: Mapping[int, Mapping[State, int]]
    answers: Sequence[tuple[str, int]]  # to requests for pages: status or fault
    types: Sequence[tuple[str, int]]
    page_bytes: int
    noindex: int
    sizes: Spread
    answer_times: Spread
    excluded: Sequence[Reason]
    failed: Sequence[Reason]
    broken: BrokenLinks
    robots: Sequence[tuple[str, int]]  # what the robots.txt in force means: sites
    doubtful: Sequence[DoubtfulSite]
    all_doubtful: int  # of which the first are listed
    sites: Sequence[SiteRow]
    mirrors: Sequence[Mirror]
    all_mirrors: int  # of which the first are listed
    graph: Graph
    most_linked: Sequence[PageRow]
    largest: Sequence[PageRow]
    slowest: Sequence[PageRow]
    survey: Survey | str | None = None
