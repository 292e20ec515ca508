"""The rows that are stored and read, and the arguments and the result of a commit.

Times are in seconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from crawler.formatting import instant, many
from crawler.frontier.refusals import NO_REFUSALS, Refusals
from crawler.frontier.sample_design import Design, amount_of
from crawler.reasons import UNSENT_KINDS, ErrorKind
from crawler.url import path_of

if TYPE_CHECKING:
    from crawler.frontier.decide import Outcome, Queued
    from crawler.frontier.offers import Offer
    from crawler.frontier.politeness import Pace
    from crawler.frontier.refusals import RefusalNews
    from crawler.model import Failed, Fetched, Headers, Purpose, RobotsCopy, SiteFile, State, TlsFacts
    from crawler.reasons import RequestError
    from crawler.robots.mirrors import Contradiction


class RequestRow(NamedTuple):
    """One request, for the log."""

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

    @property
    def is_sent(self) -> bool:
        """Whether there was an address to connect to: other requests are in the log, and were not sent."""
        return self.error is None or self.error.kind not in UNSENT_KINDS

    @property
    def price(self) -> str | None:
        """The price that the answer asks for, if it asks for money."""
        return self.error.detail if self.error is not None and self.error.kind is ErrorKind.PAYMENT else None


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


class Heard(NamedTuple):
    """What answers have told about main sites and seeds, whichever worker got them."""

    mirrors: list[tuple[str, str]]  # (mirror, main site), by the Host lines that are obeyed
    refuted: list[Refuted]  # the mirrors whose main sites are none
    adopted_hosts: list[str]  # the hosts that take the place of seeds


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

    ``seen`` are the URLs that redirected there, with the target. It is empty if the target is a licence, or if the copy
    of the target's site decides only whether the ``Host`` line of the site is obeyed.
    """

    site_id: int
    site: str
    target: RobotsTarget
    seen: tuple[str, ...]
    until: float = 0.0


class SiteHold(NamedTuple):
    """A site whose pages are not due before ``until`` (epoch seconds), because of ``why`` in its robots.txt."""

    site_id: int
    until: float
    why: str


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


class UrlLimits(NamedTuple):
    """The bounds on the URLs that are admitted, and on those that make a group ready."""

    max_depth: int | None = None
    pages_per_site: int | None = None
    below_depth: int | None = None  # URLs at this depth or deeper are held back


class SkippedSeed(NamedTuple):
    """A line of a list of seeds that was no URL. ``meant`` has URLs that were perhaps meant, with blanks between."""

    line: int
    text: str
    reason: str
    meant: str = ""


class ClaimLimits(NamedTuple):
    """The bounds of the claims of a commit."""

    groups: int
    urls_per_group: int = 50
    horizon_s: float = HORIZON_S
    held: int = 0  # groups that this worker holds: they count towards its share
    pages: PageRequest | None = None  # None: no limit on pages


class BrokenBody(NamedTuple):
    """An answer in the log whose body a parser process could not decode. The first three fields name its row."""

    site_id: int
    path: str
    started_at: float
    error: RequestError

    @classmethod
    def of(cls, site_id: int, answer: Failed) -> BrokenBody:
        """That of the ``answer`` of a site."""
        return cls(site_id, path_of(answer.url), answer.started_at, answer.error)


@dataclass(slots=True)
class SiteNews:
    """What answers have told about sites and their groups, with the log of the requests.

    It holds whether or not its worker still has a claim: a log row is stored whatever happens, and what the answer
    forbids goes with the row.
    """

    now: float = 0.0
    limits: UrlLimits = field(default_factory=UrlLimits)
    requests: list[RequestRow] = field(default_factory=list)
    broken_bodies: list[BrokenBody] = field(default_factory=list)  # of these requests, or of earlier ones
    unread: dict[int, Fetched] = field(default_factory=dict)  # answers among the requests without an outcome, by URL
    paces: dict[str, Pace] = field(default_factory=dict)  # by group name
    robots: list[RobotsNews] = field(default_factory=list)
    files: dict[tuple[int, str], SiteFile] = field(default_factory=dict)  # the last answers, by site number and path
    refusals: list[RefusalNews] = field(default_factory=list)

    def prepend(self, earlier: SiteNews) -> None:
        """Add news that came before these. The unread answers are left out: the caller knows which are still unread."""
        self.requests[:0] = earlier.requests
        self.broken_bodies[:0] = earlier.broken_bodies
        self.robots[:0] = earlier.robots
        self.refusals[:0] = earlier.refusals
        self.paces = earlier.paces | self.paces
        self.files = earlier.files | self.files


@dataclass(slots=True)
class CommitBatch(SiteNews):
    """The work that one commit stores, and the bounds of what it claims. All but the news needs the claims."""

    claim_limits: ClaimLimits = field(default_factory=lambda: ClaimLimits(0))
    outcomes: list[Outcome] = field(default_factory=list)
    released: list[int] = field(default_factory=list)  # group numbers
    robots_waits: list[RobotsWait] = field(default_factory=list)  # they begin after ``robots`` are stored
    holds: list[SiteHold] = field(default_factory=list)
    targets_answered: list[RobotsTarget] = field(default_factory=list)  # after these; sites that still wait are woken
    worst_lag_s: float = 0.0  # the longest delay of the event loop in this run
    refuted: list[Refuted] = field(default_factory=list)  # Host lines that an answer has contradicted
    # Main sites that may be none: they are judged after the outcomes are stored.
    suspected_mains: dict[str, Contradiction] = field(default_factory=dict)


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
    fetched: int = 0  # number of pages fetched
    refusals: Refusals = NO_REFUSALS
    rests_until: float = 0.0  # a site may be claimed a little before its rest is over

    def obey(self, copy: RobotsCopy, robots_id: int | None, crawl_delay_s: float | None) -> None:
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
    # URLs that other sites wait for: the /robots.txt of its sites, or one other path.
    targets: list[RobotsTarget] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit.

    ``robots_ids`` are the numbers of the stored robots copies by site number. ``heard`` is what any worker has stored
    since the last commit, or shortly before; if no other worker is possible, what this commit has refuted.
    """

    claims: list[Claim]
    robots_ids: dict[int, int]
    grant: PageGrant | None
    share: int | None  # this worker's share of the groups; None if it is the only worker
    heard: Heard


class Waiting(NamedTuple):
    """A group that gets no request before ``until``, and the constraint.

    ``site`` is the site of the group that waits the shortest; it is empty if the group has no queued URL.
    If it waits for a robots.txt, ``robots_status`` is its last answer, as :class:`crawler.model.RobotsCopy` has it, and
    ``failing_since`` the time of the first failure.
    """

    group: str
    until: float
    reason: str
    robots_status: str | None = None
    failing_since: float | None = None
    site: str = ""


class Counts(NamedTuple):
    """The number of URLs in each state, and of pages, links, requests that were sent, and sites."""

    states: dict[State, int]
    pages: int
    links: int
    requests: int
    sites: int


class Beat(NamedTuple):
    """A heartbeat of a process that crawls.

    ``lag_s`` is the longest delay of its event loop since the heartbeat before. ``low_disk`` says which disk has too
    little free space, for which the process pauses. ``look_ups`` has the number of its look-ups of names and their
    seconds by outcome, as JSON: ``{"cached": [5, 0.0], "found": [2, 0.031]}``. ``vain_claims`` is the number of its
    claims that were given back and brought neither a request nor the address of a host.
    """

    run_id: int
    pid: int
    seen_at: float
    memory_bytes: int | None
    lag_s: float
    low_disk: str | None = None
    look_ups: str = "{}"
    vain_claims: int = 0


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
    """How a sample was drawn; see the table ``sample_draw``. ``number`` is 0 until the draw is stored."""

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
    design: str = "{}"
    design_sha256: str = ""
    number: int = 0
    discarded_at: float | None = None

    @property
    def description(self) -> str:
        """The draw in one line: its number and time, how it was drawn, and whether it was discarded."""
        gone = "" if self.discarded_at is None else f"; discarded on {instant(self.discarded_at)}"
        how = f"{self.method}, {amount_of(self)}, seed {self.seed}, from {many(self.frame, 'URL')}"
        return f"draw {self.number} on {instant(self.drawn_at)}: {how}, design {self.design_sha256}{gone}"

    def is_registered_as(self, digest: str) -> bool:
        """Whether ``digest`` is that of the design, or of the design without its list of seeds."""
        return digest in (self.design_sha256, Design.of(self.design)._replace(seeds=None).sha256)


class Swept(NamedTuple):
    """The bodies outside the database after a sweep: how many are left, and were deleted; and unfinished objects."""

    left: int
    deleted: int
    unfinished: int


class Content(NamedTuple):
    """How much the store holds of some URLs: newest versions of pages, earlier versions, and links on the pages."""

    pages: int = 0
    versions: int = 0
    links: int = 0
