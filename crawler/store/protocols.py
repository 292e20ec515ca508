"""The whole contract between the crawl and its store.

The crawl talks to a store in *turns*. One turn is one transaction: it takes in what the workers have
finished (outcomes, requests, robots copies), gives back the groups they are done with, and claims
the next ones. (What pages say of other groups is carried over after it on PostgreSQL, by
:mod:`crawler.store.postgres.offers`.) A claim is a politeness group with a batch of its URLs; no other worker gets that
group until it is released, and a crash releases it with its pause still to be kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.hints import Heeded, Hint, Refusal
from crawler.frontier.offers import Offer
from crawler.frontier.operator import Order
from crawler.frontier.politeness import Pace
from crawler.frontier.revisit import RevisitSettings
from crawler.model import Headers, Purpose, RobotsCopy, State
from crawler.reasons import Reason, ReasonCode, RequestError, RunEnd
from crawler.store.coordination import PageGrant, Shared
from crawler.store.rows import Parameters
from crawler.store.subscriptions import SubscriptionStore


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request that was sent, for the log. Times in seconds since the epoch."""

    site_id: int
    path: str
    purpose: Purpose
    started_at: float
    finished_at: float
    status: int | None
    error: RequestError | None
    bytes: int
    retry_after_s: float | None
    robots_id: int | None  # the copy in force when it was sent; None for robots.txt itself
    verdict_line: int | None
    for_site_id: int | None = None  # of a robots.txt asked behind a redirect: the site that it is for
    location: str | None = None  # of a redirect, as received


@dataclass(frozen=True, slots=True)
class AgentLine:
    """A ``Mobile-agent-server`` line in force: where mobile agents are taken in for ``path``; ``None``: nowhere."""

    number: int
    path: str
    url: str | None


@dataclass(frozen=True, slots=True)
class RobotsNews:
    """A new or renewed robots copy of a site, and what its rules say of the site as a whole."""

    site_id: int
    site: str
    copy: RobotsCopy
    crawl_delay_s: float | None
    main_site: str | None
    agent_servers: tuple[AgentLine, ...] = ()
    answered_by: str = ""  # the URL that gave the answer, behind redirects
    headers: Headers = ()  # those of the answer that say how long it holds, and whether it is whole
    sitemaps: tuple[Offer, ...] = ()


#: Groups that are ready within this many seconds may be claimed already; their workers wait.
HORIZON_S = 1.0


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """Bounds on what a turn claims."""

    groups: int
    urls_per_group: int = 50
    pages_per_site: int | None = None
    max_depth: int | None = None
    horizon_s: float = HORIZON_S
    held: int = 0  # groups that this worker has: it takes no more than its share of those that there are
    max_pages: int | None = None  # of all workers, where there may be several
    pages_under_way: int = 0  # of these, those that it has taken already
    pages_kept: int = 0  # that were set aside for it and that it keeps, those under way included
    pages_per_group: int = 0  # to be set aside for each group that it has
    below_depth: int | None = None  # URLs as deep as this or deeper are held back


@dataclass(slots=True)
class CommitBatch:
    """What one turn takes in."""

    now: float
    limits: ClaimLimits
    outcomes: list[Outcome] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    robots: list[RobotsNews] = field(default_factory=list)
    paces: dict[str, Pace] = field(default_factory=dict)  # by group name
    released: list[int] = field(default_factory=list)  # group numbers
    visited: list[str] = field(default_factory=list)  # groups whose visits (see Store.visit) are over
    worst_lag_s: float = 0.0  # of the event loop in this run


@dataclass(slots=True)
class ClaimedSite:
    """A site within a claim."""

    id: int
    name: str
    copy: RobotsCopy | None
    robots_id: int | None
    crawl_delay_s: float | None = None  # of the last robots.txt that was had


@dataclass(slots=True)
class Claim:
    """A politeness group to work on, with a batch of its URLs and their sites."""

    group_id: int
    group: str
    pace: Pace
    sites: dict[int, ClaimedSite]
    urls: list[Queued]
    alone: bool = False  # workers died with this group: its one URL is tried by :meth:`Store.begin_trial`


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a turn gives back. ``robots_ids`` by site number, for the robots news it took in; ``mirrors`` are
    (mirror, main site) that other workers have learnt of since the last turn."""

    claims: list[Claim]
    robots_ids: dict[int, int]
    grant: PageGrant | None = None
    mirrors: list[tuple[str, str]] = field(default_factory=list)
    share: int | None = None  # of the groups, beyond which this worker keeps others from theirs


@dataclass(frozen=True, slots=True)
class Waiting:
    """A group that may not be asked before ``until``, and the constraint."""

    group: str
    until: float
    reason: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How many URLs are in each state, how many pages, links, bodies, requests and sites there are."""

    states: dict[State, int]
    pages: int
    links: int
    requests: int
    sites: int


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life of a process that crawls, at ``seen_at`` (seconds since the epoch).

    ``lag_s`` is by how much its event loop came late at worst since the beat before.
    """

    run_id: int
    pid: int
    seen_at: float
    memory_bytes: int | None
    lag_s: float


#: A row of ``rank``: URL and site number, PageRank, how many pages link to it, and from how many sites.
PageRank = tuple[int, int, float, int, int]
#: A row of ``site_rank``: site number, PageRank, its pages, how many pages of other sites link to it, and of how many.
SiteRank = tuple[int, float, int, int, int]


class Control(Protocol):
    """What the operator asks of a crawl. ``name`` is as :func:`crawler.frontier.operator.blockable` gives it."""

    async def orders(self, after: int = 0) -> list[Order]:
        """What was asked after the order of this number, in sequence."""
        ...

    async def done(self, order: Order, now: float) -> None:
        """Note that an order was carried out."""
        ...

    async def queued_on(self, name: str, limit: int) -> list[int]:
        """The numbers of so many queued URLs on what is blocked under ``name``."""
        ...

    async def blocked_on(self, name: str, limit: int, after: int = 0) -> list[int]:
        """So many of the URLs left out because ``name`` was blocked, by rising numbers, of those beyond ``after``."""
        ...

    async def beat(self, beat: Beat) -> None:
        """Give a sign of life; those of earlier runs are forgotten."""
        ...

    async def beats(self) -> list[Beat]: ...


#: A row of ``sample``: URL number, stratum, walk, probability.
SampleRow = tuple[int, str, int | None, float]


@dataclass(frozen=True, slots=True)
class SampleDraw:
    """How a sample was drawn; see the table ``sample_draw``. ``drawn_at`` in seconds since the epoch."""

    method: str
    per: str
    size: int
    seed: int
    drawn_at: float
    frame: int
    cut_sites: int
    follows: bool
    stands: bool = True


class Store(Shared, Protocol):
    """What the loops need. Every method raises :class:`crawler.errors.StoreError` where the store fails."""

    @property
    def rup(self) -> SubscriptionStore:
        """The part that is about the Remote Update Protocol."""
        ...

    @property
    def control(self) -> Control: ...

    async def start_run(self, settings: dict[str, Any], now: float, *, at_work: bool = True) -> int:
        """Begin a run, after :meth:`recover`; a least pause longer than before holds from its first request on.

        Who is ``at_work`` joins it as a worker; else others will. A run whose settings name an ``auxiliary_run`` is
        not a crawl: :meth:`last_settings` passes it over.
        """
        ...

    async def recover(self, now: float) -> None:
        """Release what a crashed run had claimed or was visiting, the pauses counted from ``now``."""
        ...

    async def unsettle(self, now: float) -> None:
        """Note that the store is being brought in line with changed options: until :meth:`start_run`, it is in line
        with none, and :meth:`last_settings` is empty."""
        ...

    async def end_run(self, end: RunEnd, now: float) -> None: ...

    async def last_settings(self) -> dict[str, Any] | None:
        """The settings of the run before this one."""
        ...

    async def add_seeds(self, urls: Sequence[tuple[str, Reason | None]]) -> None:
        """Take up seeds, each with the reason to exclude it or ``None``."""
        ...

    async def seeds(self) -> list[str]: ...

    async def robots_copy(self, site: str) -> RobotsCopy | None:
        """The robots copy of a site that was asked last, whether still in force or not."""
        ...

    async def main_sites(self) -> list[tuple[str, str]]:
        """Every (mirror, main site) known."""
        ...

    async def excluded(self, after: int, limit: int) -> list[tuple[int, str, ReasonCode, int, bool]]:
        """Excluded and failed URLs by number: (number, URL, reason code, depth, asked for by itself)."""
        ...

    async def queued(self, after: int, limit: int) -> list[tuple[int, str, int, bool]]:
        """Queued URLs by number: (number, URL, depth, asked for by itself: a seed or a sitemap)."""
        ...

    async def exclude(self, numbers: Sequence[tuple[int, Reason]]) -> None:
        """Take queued URLs out of the frontier, each with its reason."""
        ...

    async def requeue(self, numbers: Sequence[int]) -> None:
        """Put excluded URLs back into the frontier."""
        ...

    async def expire_robots(self, now: float, *, unreached: bool = False) -> None:
        """Every robots copy has run out: it was judged under another reading or token. ``unreached``: only those of
        sites that no connection was made to, for want of an address or a permitted one."""
        ...

    async def regroup(self) -> None:
        """Put every site into its politeness group, grouped by another rule than before; pauses are kept."""
        ...

    async def prepare(self, pages_per_site: int | None) -> None:
        """Recompute when each group is ready, under limits and pauses that may have changed since the last run."""
        ...

    async def commit(self, batch: CommitBatch) -> CommitResult: ...

    async def begin_trial(self, claim: Claim) -> None:
        """Commit that this worker tries the URL of a claim that is ``alone``, and no other such URL meanwhile.

        If the worker dies before the next commit that releases the group, the death counts against the URL. The third
        one fails the URL.
        """
        ...

    async def queue_due(
        self, settings: RevisitSettings, now: float, since: float, per_site: int | None, *, hinted_only: bool = False
    ) -> int:
        """Put into the frontier, as far as the budget goes, what is due for a revisit and was not visited ``since``
        then; how many. ``hinted_only``: no more than what hints name."""
        ...

    async def take_hints(
        self,
        hints: Iterable[Hint],
        settings: RevisitSettings,
        now: float,
        refusal: Refusal,
        *,
        most_new: int | None = None,
    ) -> Heeded:
        """Bring forward the visits of URLs that are known, take up those that are not: ``refusal(url, depth)`` is the
        scope's, and no more than ``most_new`` are. Nothing is queued for a revisit yet: :meth:`queue_due` does that,
        within the budget."""
        ...

    async def find_content_mirrors(self, now: float) -> int:
        """Look for sites with the same pages at the same paths, and note them as ``evidence = content``; how many."""
        ...

    async def fail_circles(self) -> None:
        """Have the redirects fail that are in a circle or lead into one, once all of them have been seen."""
        ...

    async def group_pace(self, name: str) -> Pace: ...

    async def visit(self, site: str) -> int | None:
        """Note that one request goes to a site that may not be claimed, so that a crash keeps its pause; its number.
        ``None`` while another worker is at it."""
        ...

    async def crawl_delay(self, site: str) -> float | None:
        """The ``Crawl-delay`` that a site asked for when its robots.txt was last had, in seconds."""
        ...

    async def next_ready(self) -> Waiting | None:
        """The unclaimed group whose turn comes first."""
        ...

    async def waiting(self, now: float, limit: int) -> list[Waiting]: ...

    async def fetched_count(self) -> int: ...

    async def queued_count(self) -> int: ...

    async def excluded_count(self) -> int: ...

    async def counts(self) -> Counts: ...

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        """All rows of a query over the views of the store; each row maps column names to values."""
        ...

    def rows(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[Any, None]:
        """The rows of a query over the views of the store, as named tuples, read in batches.

        Close the generator if you stop early.
        """
        ...

    async def replace_ranks(self, pages: Iterable[PageRank], sites: Iterable[SiteRank]) -> None:
        """Put new ranks in the place of the old, whole or not at all."""
        ...

    async def sample_draw(self) -> SampleDraw | None:
        """How the sample in the store was drawn."""
        ...

    async def replace_sample(
        self, draw: SampleDraw, rows: Sequence[SampleRow], held_from: int | None, pages_per_site: int | None
    ) -> None:
        """Put a sample in the place of the old, whole or not at all.

        Of the URLs queued as deep as ``held_from`` or deeper, those not drawn are excluded; the others are held back
        no longer.
        """
        ...

    async def reopen_sample(self) -> None:
        """The sample in the store does not stand any more: it is to be drawn anew."""
        ...

    async def find(self, url: str) -> int | None:
        """The number of a URL (``url.id``), or ``None`` where it is unknown."""
        ...

    async def way_to(self, number: int) -> list[str]:
        """How a URL was first found: the URLs from a seed to it, thirty of them at most."""
        ...

    async def body(self, url: str, version: int | None = None) -> bytes | None:
        """The decoded body of a fetched URL, as stored, the newest unless told; ``None`` where there is none."""
        ...

    async def close(self) -> None: ...
