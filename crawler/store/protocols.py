"""The contracts between the store and its clients: one protocol for each kind of client.

Every client has the :class:`Overview`. :class:`StoreReader` adds SQL on the views; :class:`Runs` and :class:`Frontier`
are for the engine, which together with the revisits are the :class:`EngineStore`. What one kind of client needs is a
section of its own: ``control``, ``samples``, ``bodies``, ``revisits``, ``results``, ``maintenance``, ``rup``. The code
that opens a store has all of it (:class:`CrawlStore`).

A crawl commits in batches. A commit is one transaction: it stores what the workers have finished (outcomes,
requests, robots copies), releases the groups that they are done with, and claims the next groups. A claim is a
politeness group with a batch of its URLs. No other worker gets the group before it is released. A crash releases it,
with its pause still to be kept.

Times are in seconds since the epoch. Every method raises :class:`crawler.errors.StoreError` if the store fails, and
:class:`crawler.errors.ConnectionLost` if its database does not come back in time.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from crawler.clock import Clock
    from crawler.frontier.decide import Outcome, Queued
    from crawler.frontier.hints import Heeded, Hint, Refusal
    from crawler.frontier.offers import Offer
    from crawler.frontier.operator import Command, Order
    from crawler.frontier.parts import PartLook, Parts, PartTraffic
    from crawler.frontier.politeness import Pace
    from crawler.frontier.revisit import RevisitSettings
    from crawler.model import Fetched, Headers, Purpose, RobotsCopy, State, TlsFacts
    from crawler.reasons import Reason, ReasonCode, RequestError, RunEnd
    from crawler.robots.mirrors import Contradiction
    from crawler.robots.tdmrep import TdmrepFile
    from crawler.store.computed import Computed
    from crawler.store.rows import Parameters
    from crawler.store.subscriptions import SubscriptionStore


class RequestRow(NamedTuple):
    """One request that was sent, for the log."""

    site_id: int
    path: str
    purpose: Purpose
    started_at: float
    finished_at: float
    status: int | None
    error: RequestError | None
    bytes: int
    retry_after_s: float | None
    robots_id: int | None  # the copy in force; None for robots.txt itself
    verdict_line: int | None
    for_site_id: int | None = None  # of a robots.txt requested behind a redirect: its site
    location: str | None = None  # of a redirect, as received
    lag_s: float = 0.0  # of the own event loop, between started_at and finished_at
    tls: TlsFacts | None = None  # of the connection
    address: str | None = None  # of the server; None: no connection, or only a proxy knows it


class AgentLine(NamedTuple):
    """A ``Mobile-agent-server`` line in force: the URL of the agent server for ``path``; ``None``: none."""

    number: int
    path: str
    url: str | None


class Refuted(NamedTuple):
    """A site whose ``Host`` line names a main site that is none, and why."""

    site: str
    main_site: str
    contradiction: Contradiction


class RobotsNews(NamedTuple):
    """A new or renewed robots copy of a site, and its lines about the site as a whole."""

    site_id: int
    site: str
    copy: RobotsCopy
    crawl_delay_s: float | None
    main_site: str | None
    agent_servers: tuple[AgentLine, ...] = ()
    answered_by: str = ""  # the URL that answered, behind redirects
    headers: Headers = ()  # the headers that decide how long the answer is valid, and if it is complete
    sitemaps: tuple[Offer, ...] = ()
    refuted: Refuted | None = None  # the Host line that is contradicted; ``main_site`` is None then
    # For a site that waited for the copy, and not if it waits no longer: no request before this time (epoch seconds).
    not_before: float | None = None


class RobotsTarget(NamedTuple):
    """A URL that the robots.txt of other sites waits for: the path ``path`` of a site, ``hops`` sites on their way."""

    site: str
    path: str
    hops: int = 1


class RobotsWait(NamedTuple):
    """A site whose robots.txt waits for ``target``, until the time ``until`` (epoch seconds) at most.

    A site in a circle of waits does not wait: the commit that closes the circle makes it ready at once.

    ``seen`` are the URLs that redirected there, with the target. It is empty if the copy of the target's site decides
    only whether the ``Host`` line of the site is heeded.
    """

    site_id: int
    site: str
    target: RobotsTarget
    seen: tuple[str, ...]
    until: float = 0.0


#: A worker may claim a group this many seconds before it is ready, and waits.
HORIZON_S = 1.0


class PageRequest(NamedTuple):
    """The pages that a worker asks for in a commit, under the ``limit`` of all workers and all runs together."""

    limit: int
    kept: int  # pages reserved for this worker that it keeps: it may use them before it hears of the others
    wanted: int  # pages that it can use at once, those in use included

    def granted(self, left: int, others: int, workers: int, *, has_groups: bool) -> int:
        """How many pages are reserved for this worker: what it can use at once, and with groups an equal share.

        The limit leaves ``left`` pages, of which ``others`` are reserved for other workers.
        """
        share = left // workers if has_groups else 0
        return max(self.kept, min(left - others, max(self.wanted, share)))


class PageGrant(NamedTuple):
    """The pages that are reserved for a worker, and those that the limit leaves to all workers, these included."""

    pages: int
    left: int


class ClaimLimits(NamedTuple):
    """The bounds of the claims of a commit."""

    groups: int
    urls_per_group: int = 50
    pages_per_site: int | None = None
    max_depth: int | None = None
    horizon_s: float = HORIZON_S
    held: int = 0  # groups that this worker holds: they count towards its share
    pages: PageRequest | None = None  # None: no limit on pages
    below_depth: int | None = None  # URLs at this depth or deeper are held back


@dataclass(slots=True)
class CommitBatch:
    """The work that one commit stores, and the bounds of what it claims."""

    now: float = 0.0
    limits: ClaimLimits = field(default_factory=lambda: ClaimLimits(0))
    outcomes: list[Outcome] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    robots: list[RobotsNews] = field(default_factory=list)
    paces: dict[str, Pace] = field(default_factory=dict)  # by group name
    released: list[int] = field(default_factory=list)  # group numbers
    robots_waits: list[RobotsWait] = field(default_factory=list)  # they begin after ``robots`` are stored
    targets_answered: list[RobotsTarget] = field(default_factory=list)  # after these; sites that still wait are woken
    worst_lag_s: float = 0.0  # the longest delay of the event loop in this run
    refuted: list[Refuted] = field(default_factory=list)  # Host lines that an answer has contradicted
    # Main sites that may be none: they are judged after the outcomes are stored.
    suspected_mains: dict[str, Contradiction] = field(default_factory=dict)
    tdmrep: dict[int, TdmrepFile] = field(default_factory=dict)  # the last answers, by site number
    unread: dict[int, Fetched] = field(default_factory=dict)  # answers among the requests without an outcome, by URL


@dataclass(slots=True)
class ClaimedSite:
    """A site within a claim."""

    id: int
    name: str
    copy: RobotsCopy | None
    robots_id: int | None
    crawl_delay_s: float | None = None  # from the last robots.txt that was received
    is_waiting: bool = False  # its robots.txt waited for another site in vain
    target: RobotsTarget | None = None  # the URL that its robots.txt waits for since it was claimed

    def heed(self, copy: RobotsCopy, robots_id: int | None, crawl_delay_s: float | None) -> None:
        """``copy`` is committed as number ``robots_id``: from now on it is in force."""
        self.copy, self.robots_id, self.crawl_delay_s, self.is_waiting = copy, robots_id, crawl_delay_s, False


@dataclass(slots=True)
class Claim:
    """A politeness group to work on, with a batch of its URLs and their sites."""

    group_id: int
    group: str
    pace: Pace
    sites: dict[int, ClaimedSite]
    urls: list[Queued]
    # URLs that other sites wait for: the /robots.txt of its sites, or one other path if it has no URLs.
    targets: list[RobotsTarget] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit.

    ``robots_ids`` are the numbers of the stored robots copies by site number. ``mirrors`` are (mirror, main site) that
    any worker has stored since the last commit. ``refuted`` are the mirrors of this commit, or that any worker has
    stored since the last one, whose main sites are none.
    """

    claims: list[Claim]
    robots_ids: dict[int, int]
    grant: PageGrant | None = None
    mirrors: list[tuple[str, str]] = field(default_factory=list)
    share: int | None = None  # this worker's share of the groups; None if it is the only worker
    refuted: list[Refuted] = field(default_factory=list)


class Waiting(NamedTuple):
    """A group that gets no request before ``until``, and the constraint.

    If it waits for a robots.txt, ``robots_status`` is its last answer, as :class:`crawler.model.RobotsCopy` has it, and
    ``failing_since`` the time of the first failure.
    """

    group: str
    until: float
    reason: str
    robots_status: str | None = None
    failing_since: float | None = None


class Counts(NamedTuple):
    """The number of URLs in each state, and of pages, links, requests and sites."""

    states: dict[State, int]
    pages: int
    links: int
    requests: int
    sites: int


class Beat(NamedTuple):
    """A heartbeat of a process that crawls.

    ``lag_s`` is the longest delay of its event loop since the heartbeat before. ``low_disk`` says which disk has too
    little free space, for which the process pauses. ``look_ups`` has the number of its look-ups of names and their
    seconds by outcome, as JSON: ``{"cached": [5, 0.0], "found": [2, 0.031]}``.
    """

    run_id: int
    pid: int
    seen_at: float
    memory_bytes: int | None
    lag_s: float
    low_disk: str | None = None
    look_ups: str = "{}"


class PageRank(NamedTuple):
    """A row of the table ``rank``. ``in_links`` counts linking pages, ``in_sites`` their sites."""

    url_id: int
    site_id: int
    pagerank: float
    in_links: int
    in_sites: int


class SiteRank(NamedTuple):
    """A row of the table ``site_rank``. ``in_links`` counts linking pages of other sites, ``in_sites`` their sites."""

    site_id: int
    pagerank: float
    pages: int
    in_links: int
    in_sites: int


class TextSignature(NamedTuple):
    """A row of the table ``text_signature``: the keys under which texts that are like that of a page are found."""

    url_id: int
    digest: int
    keys: bytes


class KeptText(NamedTuple):
    """A row of the table ``main_text``: the text of a body, packed, and how it was read."""

    body_id: int
    read_as: str
    data: bytes


class SiteTemplate(NamedTuple):
    """A row of the table ``site_template``: what the texts of a site have in common."""

    site_id: int
    shingles: bytes


class NearDuplicate(NamedTuple):
    """A row of the table ``near_duplicate``: a page of the cluster that the page ``cluster_id`` represents."""

    url_id: int
    cluster_id: int
    similarity: float


class SampleRow(NamedTuple):
    """A row of the table ``sample``: one draw."""

    url_id: int
    stratum: str
    walk: int | None
    probability: float
    site_probability: float = 1.0


class SampleDraw(NamedTuple):
    """How a sample was drawn; see the table ``sample_draw``."""

    method: str
    per: str
    size: int
    seed: int
    drawn_at: float
    frame: int
    cut_sites: int
    follows: bool
    held_from: int | None
    missed: int = 0
    missed_sites: int = 0
    stands: bool = True
    share: float = 1.0
    sites: int | None = None
    sites_by: str = "equal"


class Swept(NamedTuple):
    """The bodies outside the database after a sweep: how many are left, and were deleted; and unfinished objects."""

    left: int
    deleted: int
    unfinished: int


class Reconnecting(Protocol):
    """A database, with or without an object store beside it, that may be away."""

    @property
    def away_s(self) -> float | None:
        """For how long the database or the object store has been away, in seconds; ``None`` if both answer."""
        ...

    def give_up(self) -> None:
        """Wait no longer: all calls that wait for the database or the object store fail at once."""
        ...


class Control(Protocol):
    """The orders of the operator. ``name`` is as :func:`crawler.frontier.operator.blockable` returns it."""

    async def orders(self, after: int = 0) -> list[Order]:
        """The orders after the one with this number, in sequence."""
        ...

    async def give(self, command: Command, name: str, clock: Clock, because: str = "") -> Order:
        """Give an order, dated with the time of its transaction. ``because`` is why, in the operator's words.

        Raises :class:`crawler.errors.UsageError` if there is no run to stop, or no such block to lift.
        """
        ...

    async def done(self, order: Order, now: float) -> None:
        """Note that an order was carried out."""
        ...

    async def queued_on(self, name: str, limit: int) -> list[int]:
        """The numbers of queued URLs on the sites that are blocked under ``name``."""
        ...

    async def blocked_on(self, name: str, limit: int, after: int = 0) -> list[int]:
        """The numbers beyond ``after`` of URLs excluded because ``name`` was blocked, in ascending order."""
        ...

    async def beat(self, beat: Beat) -> None:
        """Store a heartbeat; those of earlier runs are deleted."""
        ...

    async def beats(self) -> list[Beat]: ...


class Samples(Protocol):
    """The sample of the crawl."""

    async def drawn(self) -> SampleDraw | None:
        """How the sample in the store was drawn."""
        ...

    async def replace(
        self, draw: SampleDraw, rows: Sequence[SampleRow], pages_per_site: int | None, frame: Sequence[int] = ()
    ) -> None:
        """Replace the sample, in one transaction. ``frame`` has the numbers of the URLs that it was drawn from.

        URLs queued at the depth ``draw.held_from`` or deeper that are not drawn are excluded; the others are held back
        no longer. URLs nearer than that were not reached, and are excluded too. While the sample stands, no page is
        queued that it leaves out: see ``Offers.enqueue``.
        """
        ...

    async def reopen(self) -> None:
        """Note that the sample in the store does not stand any more and must be drawn anew."""
        ...


class Bodies(Protocol):
    """The bodies of pages, in the database or at a place outside of it."""

    async def of_page(self, url: str, version: int | None = None) -> bytes | None:
        """The decompressed body of a page, by default of its newest version; ``None`` if there is none."""
        ...

    async def get(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The decompressed bodies with these numbers (``pages_by_id.body_id``). A number without a body is left out."""
        ...

    @property
    def place(self) -> str | None:
        """The place of the bodies outside the database, a folder or ``s3://bucket/prefix``; ``None``: there is none."""
        ...

    async def keep_in(self, place: str) -> None:
        """From now on keep bodies at ``place``, a folder or ``s3://bucket/prefix``; "" leaves the place as it is.

        Bodies that are in the database stay there. Raises :class:`crawler.errors.UsageError` if this store has another
        place, and :class:`crawler.errors.StoreError` if the place cannot be used or is not the one that it was.
        """
        ...

    async def sweep(self) -> Swept:
        """Delete the bodies at the place that no page names, such as those of a commit that a crash prevented.

        :meth:`Runs.recover` goes before it. Raises :class:`crawler.errors.UsageError` if there is no such place, if
        another store keeps bodies there, and if a crawl is at work.
        """
        ...


class Revisits(Protocol):
    """The planning of revisits, and hints."""

    async def queue_due(
        self, settings: RevisitSettings, now: float, since: float, per_site: int | None, *, hinted_only: bool = False
    ) -> int:
        """Queue the URLs that are due for a revisit and were not visited since the time ``since``, within the budget.

        ``hinted_only``: only URLs that hints name. Returns how many URLs were queued.
        """
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
        """Bring the revisits of known URLs forward, and store unknown URLs: at most ``most_new``.

        ``refusal(url, depth)`` is the refusal of the scope. Queues no revisit: :meth:`queue_due` does, within the
        budget.
        """
        ...


class Results(Protocol):
    """Results that are computed from the whole crawl. Each method is one transaction."""

    async def replace_ranks(self, pages: Iterable[PageRank], sites: Iterable[SiteRank], last_request: int) -> None:
        """Replace all ranks. They cover the crawl up to the request ``last_request``."""
        ...

    async def keep_texts(self, texts: Sequence[KeptText]) -> None:
        """Insert or replace the texts of bodies. Texts of bodies that were deleted meanwhile are left out."""
        ...

    async def drop_old_texts(self) -> None:
        """Delete the texts of bodies that no page has now."""
        ...

    async def keep_signatures(self, signatures: Sequence[TextSignature], templates: Sequence[SiteTemplate]) -> None:
        """Insert or replace the signatures of pages, and the templates of sites."""
        ...

    async def drop_signatures(self, numbers: Sequence[int]) -> None:
        """Delete the signatures of pages, and the templates of sites without any."""
        ...

    async def replace_near_duplicates(self, pages: Iterable[NearDuplicate], last_request: int) -> None:
        """Replace all clusters of near-duplicates. They cover the crawl up to the request ``last_request``."""
        ...


class Content(NamedTuple):
    """How much the store holds of some URLs: newest versions of pages, earlier versions, and links on the pages."""

    pages: int = 0
    versions: int = 0
    links: int = 0


class Maintenance(Protocol):
    """Takes content out of the store. No worker may be at work meanwhile.

    ``numbers`` are numbers of URLs (``urls.url_id``), at most some thousands at a time. Each method is one transaction.
    """

    async def content_of(self, numbers: Sequence[int]) -> Content: ...

    async def forget(self, numbers: Sequence[int], reason: Reason) -> Content:
        """Take out the pages, versions, links and ranks of URLs, and exclude the URLs with ``reason``.

        The bodies are deleted by :meth:`sweep_forgotten`. The request log and the addresses stay.
        """
        ...

    async def redact(self, numbers: Sequence[int]) -> None:
        """Reduce the addresses of these URLs in the request log to their sites, and clear locations that name them.

        Requests for robots.txt keep theirs.
        """
        ...

    async def sweep_forgotten(self) -> None:
        """Delete the bodies and preferences that no page names any more."""
        ...

    async def prune(self, before: float, kept: int) -> int:
        """Delete earlier versions of pages: those last seen before a time, and all but the ``kept`` newest of a page.

        The newest version of a page counts as one of these, and stays. Returns how many versions were deleted.
        """
        ...

    async def compact(self) -> tuple[int, int]:
        """Return the space of deleted rows to the disk; returns the sizes of the store before and after, in bytes."""
        ...

    async def empty_log(self) -> bool:
        """Empty SQLite's write-ahead log, which holds earlier contents; ``False`` if a reader prevents it for 10 s.

        No-op on PostgreSQL, whose log is the server's.
        """
        ...


class Overview(Reconnecting, Protocol):
    """For every client: the facts about the crawl as a whole."""

    @property
    def name(self) -> str:
        """The path or URL of the store, without a password."""
        ...

    @property
    def lease_s(self) -> float | None:
        """The length of a lease in seconds; ``None`` if no other worker is possible."""
        ...

    async def last_run(self) -> dict[str, Any] | None:
        """The row of the last run, as in the view ``runs``; auxiliary runs are skipped."""
        ...

    async def last_settings(self) -> dict[str, Any] | None:
        """The settings of the run before this one; empty after :meth:`unsettle`."""
        ...

    async def seeds(self) -> list[str]: ...

    async def domains(self) -> list[str]:
        """The seeds that stand for a domain (:mod:`crawler.frontier.domain_addresses`)."""
        ...

    async def places(self) -> list[str]:
        """What the scope is made from: the seeds, and the other addresses of the domains among them."""
        ...

    async def counts(self) -> Counts: ...

    async def fetched_count(self) -> int: ...

    async def queued_count(self) -> int: ...

    async def excluded_count(self) -> int: ...

    async def waiting(self, now: float, limit: int) -> list[Waiting]:
        """The unclaimed groups with the longest wait."""
        ...

    async def way_to(self, number: int) -> list[str]:
        """The URLs from a seed to this one, as it was first found; at most 30 of them."""
        ...

    async def main_sites(self) -> list[tuple[str, str]]:
        """Every (mirror, main site) known from a Host line."""
        ...

    async def refuted_mirrors(self) -> list[Refuted]:
        """Every site whose Host line was contradicted."""
        ...

    @property
    def parts(self) -> Parts | None:
        """The parts of the crawl; ``None`` if the store has the whole crawl."""
        ...

    async def part_look(self) -> PartLook:
        """What other parts need to know of this one."""
        ...

    @property
    def control(self) -> Control: ...

    @property
    def samples(self) -> Samples: ...

    @property
    def bodies(self) -> Bodies: ...


class StoreReader(Overview, Protocol):
    """For clients that only read: reports, exports, search, the dashboard."""

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgres``."""
        ...

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        """The rows of a query on the views (docs/store.md), whole.

        Parameters are given by name (``:site``), or by position (``?``). Raises
        :class:`crawler.errors.StatementError` for SQL that the database rejects, and
        :class:`crawler.errors.UsageError` for a statement that does not only read. Text of the user is in a
        :class:`crawler.store.statements.UserSql` only.
        """
        ...

    def deadline(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Interrupt the query under way when this time is over, or when the task inside is cancelled.

        The query raises :class:`crawler.errors.QueryInterrupted`, and so does each further one inside.
        """
        ...

    def rows(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[Any, None]:
        """The rows of a query one after the other, as named tuples, in bounded memory.

        The caller must close the generator if it stops early.
        """
        ...

    async def find(self, url: str) -> int | None:
        """The number of a URL (``urls.url_id``), or ``None`` if the store does not know it."""
        ...

    async def computed(self) -> dict[Computed, bool]:
        """What was computed from the crawl, and whether a page has been requested since, without 304, or forgotten."""
        ...

    async def last_request(self) -> int:
        """The number of the last request (``requests_by_id.request_id``); 0 if there is none."""
        ...

    async def begin_snapshot(self) -> None:
        """From now on read one state of the store, without later writes."""
        ...

    async def begin_notes(self) -> None:
        """From now on read one state of the store. The caller may make and write temporary tables."""
        ...

    async def end_notes(self) -> None:
        """Drop the temporary tables, and read the newest state of the store again."""
        ...

    async def part_traffic(self) -> list[PartTraffic]:
        """The exchange of this part with each other part."""
        ...

    def is_held(self) -> bool:
        """Whether a process may be writing to the store; False if certainly none is."""
        ...

    async def known_dead(self) -> set[int]:
        """The workers that are not marked as ended and whose processes have certainly ended."""
        ...


class Runs(Overview, Protocol):
    """For the processes of a crawl: runs, workers and their leases."""

    @property
    def run_id(self) -> int:
        """The number of the run that this process began or joined; 0 before."""
        ...

    @property
    def worker_id(self) -> int:
        """The number of this process among the workers."""
        ...

    async def fetched_by_run(self) -> int:
        """How many pages the store has more than before the run, whichever worker fetched them."""
        ...

    def beginning(self) -> AbstractAsyncContextManager[None]:
        """A context in which one process at a time begins or joins a run."""
        ...

    async def start_run(self, settings: dict[str, Any], now: float, *, at_work: bool = True) -> int:
        """Begin a run, after :meth:`recover`. A minimum pause longer than before holds from its first request on.

        A process that is ``at_work`` joins the run as a worker; otherwise workers are about to start. A run whose
        settings name an ``auxiliary_run`` is no crawl: :meth:`last_settings` skips it. Returns the number of the run.
        """
        ...

    async def take_part(self, run_id: int, now: float, *, at_work: bool) -> None:
        """Register for a run, as a worker or as a supervisor of workers that are about to start."""
        ...

    async def join_run(self, run_id: int, now: float) -> None:
        """Register as a worker of a run. Releases the groups that this process had claimed as another worker."""
        ...

    async def rejoin(self, now: float) -> bool:
        """Join our run once more after our lease was lost; False if another run has begun since."""
        ...

    async def run_under_way(self, now: float) -> tuple[int, dict[str, Any]] | None:
        """Number and settings of the run that other workers are at work on; auxiliary runs are skipped."""
        ...

    async def renew(self, now: float) -> None:
        """Renew the lease of this worker, and release the groups of workers whose lease has ended.

        Raises :class:`crawler.errors.LeaseLost` if another worker has ended this one.
        """
        ...

    async def bury(self, worker: int, end: RunEnd, now: float) -> None:
        """End a worker that is known to be dead, and release its groups at once."""
        ...

    async def others_at_work(self) -> bool:
        """Whether other workers may still find URLs for this one.

        That is so if they hold groups or have just released one, or if offers between groups are under way.
        """
        ...

    def wait_for_room(self, waits: Callable[[], bool]) -> None:
        """Try again what the disk of the store has no room for, as long as ``waits`` returns true."""
        ...

    def on_news(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` when another worker may have stored work for this one."""
        ...

    async def recover(self, now: float) -> None:
        """Release the groups that a crashed run had claimed or reserved, with pauses counted from ``now``."""
        ...

    async def unsettle(self, now: float) -> None:
        """Note that the store is being adapted to changed options.

        Until :meth:`start_run` the store conforms to no options, and :meth:`last_settings` is empty.
        """
        ...

    async def end_run(self, end: RunEnd, now: float) -> None:
        """End this worker. The last worker of a run ends the run."""
        ...

    async def leave(self, now: float) -> None:
        """End this worker's part in a run that stopped or failed before its crawl began.

        Waits for nothing: if the database is away, the lease runs out.
        """
        ...

    async def require_whole(self) -> None:
        """Raise :class:`crawler.errors.UsageError` for a copy that is not complete."""
        ...

    def lock_fds(self) -> tuple[int, ...]:
        """Open files that a child process must inherit for the store to stay locked while the child lives."""
        ...


class Frontier(Overview, Protocol):
    """For the engine: the URLs to fetch, and their outcomes."""

    async def commit(self, batch: CommitBatch) -> CommitResult:
        """Store a batch, release its groups and claim others, in one transaction; renews the lease.

        All or nothing of the batch is stored. If the call is cancelled, the transaction is rolled back, unless it was
        already being committed. After a lost connection the commit is retried, and takes effect once. Raises
        :class:`crawler.errors.LeaseLost` if another worker has ended this one; its ``committed`` says whether the
        batch was stored.
        """
        ...

    async def unread_answer(self, url_id: int) -> Fetched | None:
        """The answer for a queued URL that was logged, and not read before its worker ended."""
        ...

    async def commit_late(self, batch: CommitBatch) -> None:
        """Log the requests of a worker that has lost its lease, and store its paces and unread answers; nothing else.

        If another worker has sent requests to a group since, the longer wait holds.
        """
        ...

    async def add_seeds(
        self, urls: Sequence[tuple[str, Reason | None]], domains: Collection[str] = frozenset()
    ) -> None:
        """Store seeds, each with the reason to exclude it or ``None``. Those in ``domains`` stand for a domain."""
        ...

    async def unfetched_seed(self) -> str | None:
        """A seed that was not fetched, if possible on a site that this run has asked; ``None`` if there is none."""
        ...

    async def seed_states(self) -> list[tuple[State, str]]:
        """The states of the seeds with the sentences of their reasons, each once, most frequent first."""
        ...

    async def seed_causes(self) -> list[tuple[State, ReasonCode, str, int]]:
        """What became of the seeds without a page, at the end of their redirects: (state, code, sentence, URLs)."""
        ...

    async def excluded(self, after: int, limit: int) -> list[tuple[int, str, ReasonCode, int, bool]]:
        """Excluded and failed URLs by number: (number, URL, reason code, depth, is a seed or named by a sitemap)."""
        ...

    async def queued(self, after: int, limit: int) -> list[tuple[int, str, int, bool]]:
        """Queued URLs by number: (number, URL, depth, is a seed or named by a sitemap)."""
        ...

    async def exclude(self, numbers: Sequence[tuple[int, Reason]]) -> None:
        """Take queued URLs out of the frontier, each with its reason."""
        ...

    async def requeue(self, numbers: Sequence[int]) -> None:
        """Put excluded URLs back into the frontier."""
        ...

    async def prepare(self, pages_per_site: int | None) -> None:
        """Recompute when each group is ready, under limits and pauses that may have changed since the last run."""
        ...

    async def regroup(self) -> None:
        """Put every site into its politeness group under another rule than before; pauses are kept."""
        ...

    async def claim_group(self, site: str) -> int | None:
        """Claim the group of a site, which the store then knows, whether it has a URL to request or not.

        Returns the number of the group; ``None`` while another worker holds it. :meth:`commit` releases it.
        """
        ...

    async def robots_waits(self, target: RobotsTarget) -> list[RobotsWait]:
        """The sites that wait for ``target``."""
        ...

    async def robots_copy_from(self, url: str, now: float) -> RobotsCopy | None:
        """The copy that came from ``url``, behind a redirect to a path of another site, if it has not run out."""
        ...

    async def fail_circles(self) -> None:
        """Fail the redirects that are in a circle or lead into one, once all of them have been seen."""
        ...

    async def sent_last_request(self) -> bool:
        """Whether this run sent the last request in the log; True also if another of its workers sent the request."""
        ...

    async def group_pace(self, name: str) -> Pace: ...

    async def tdmrep_file(self, site_id: int) -> TdmrepFile | None:
        """The last answer for the tdmrep.json of a site; ``None`` if it was never requested."""
        ...

    async def next_ready(self, now: float = math.inf) -> Waiting | None:
        """The unclaimed group that is ready first. Its robots.txt is named if that is waited for at ``now``."""
        ...

    async def site(self, name: str) -> ClaimedSite | None:
        """A site with the robots copy of its last answer, whether still valid or not; ``None`` for an unknown one.

        Here and in a claim, a copy has no ``body`` if that is larger than 32 KiB: see :meth:`robots_text`.
        """
        ...

    async def keep_robots_text(self, sha256: bytes, text: bytes) -> None:
        """Store the text of a robots.txt before the copy that it belongs to, by its SHA-256. No-op if it is there."""
        ...

    async def robots_text(self, sha256: bytes) -> bytes:
        """The text of a robots.txt that is stored."""
        ...

    async def expire_robots(self, now: float, *, unreached: bool = False) -> None:
        """Expire every robots copy: it was judged under another reading or token.

        ``unreached``: only those of sites to which no connection was made, because no address was permitted or the
        certificate was not valid, and those of sites that were given up.
        """
        ...

    async def expire_robots_of(self, sites: Sequence[str], now: float) -> None:
        """Expire the robots copies of ``sites``. The pause of a site that gives no usable answer stands."""
        ...

    async def find_content_mirrors(self, now: float) -> int:
        """Find sites with the same pages at the same paths, and store them with the evidence ``content``; how many."""
        ...


class OutgoingOffer(NamedTuple):
    """An offer to another part of the crawl, with its number in the store that it comes from."""

    id: int
    offer: Offer


class PartStore(Overview, Protocol):
    """For the parts of a crawl on several databases: each store is that of one part."""

    async def keep_parts(self, parts: Parts | None) -> None:
        """Become the store of a part, before the first run.

        Raises :class:`crawler.errors.UsageError` if the store has another part, or a run without parts.
        """
        ...

    async def outgoing(self, part: int, limit: int) -> list[OutgoingOffer]:
        """The oldest offers to another part that were not taken in yet."""
        ...

    async def outgoing_taken(self, part: int, numbers: Sequence[int]) -> None:
        """Delete offers that the other part has taken in."""
        ...

    async def take_in(
        self, part: int, offers: Sequence[Offer], max_depth: int | None, pages_per_site: int | None
    ) -> None:
        """Store offers of another part, in one transaction. Those that are known already change nothing."""
        ...


class EngineStore(Runs, Frontier, PartStore, Protocol):
    """For the engine as a whole. It reads no view."""

    @property
    def revisits(self) -> Revisits: ...


class Copying(StoreReader, Protocol):
    """For the copying of whole stores, table by table."""

    async def columns_of(self, table: str) -> list[str]: ...

    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None: ...

    async def complete_urls(self, rows: Sequence[tuple[int, int | None, int | None]]) -> None:
        """Set the page on which URLs were found, and their targets: (URL, page or ``None``, target or ``None``)."""
        ...

    async def begin_settled_snapshot(self) -> None:
        """Like :meth:`begin_snapshot`, of a state in which no offer between groups is under way."""
        ...

    async def begin_copy(self, sources: Sequence[str]) -> None:
        """Note that this store becomes a copy of another store, or the merger of several."""
        ...

    async def empty(self, tables: Iterable[str]) -> None:
        """Delete all rows of ``tables``."""
        ...

    async def finish_copy(self, now: float) -> None:
        """Note that this store is a complete copy."""
        ...


class CrawlStore(EngineStore, Copying, Protocol):
    """All sections of an open store."""

    @property
    def results(self) -> Results: ...

    @property
    def maintenance(self) -> Maintenance: ...

    @property
    def rup(self) -> SubscriptionStore:
        """The registrations with servers of the Remote Update Protocol."""
        ...

    async def close(self) -> None: ...
