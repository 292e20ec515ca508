"""Watches a crawl from outside: each request when it is sent, each answer, each commit. It knows nothing of the engine.

The rules are those of ``docs/protocols.md``, written a second time. A process that is killed may lose the answers that
it has not committed; the witness then knows less, and asks only for what still holds.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from crawler.frontier.politeness import PolitenessSettings
from crawler.model import Answer as Received
from crawler.model import Failed, Fetched, NotModified, Purpose, Reading, Redirected, Request
from crawler.reasons import ErrorKind
from crawler.store.rows import RequestRow
from crawler.url import host_of, registered_domain, split
from tests.world.plan import Plan
from tests.world.rules import Rules, rules_of
from tests.world.web import ROBOTS, Answer, Web

_TOLERANCE_S = 1e-6
PAUSE = "the pause"
#: An order of the operator holds so long after it was given, beside the time until the crawl looks for it.
_ORDER_S = 2.0
#: Answered work is committed within this time, unless the store fails.
_COMMITTED_WITHIN_S = 15.0
#: How many answers of a page a witness remembers.
_ANSWERS_KEPT = 4
#: How many committed copies of a robots.txt a witness remembers, beside those that are not committed yet.
_COPIES_KEPT = 2
_DAY_S = 86_400.0
#: After so many requests, the witness forgets the hosts that cannot matter any more.
_FORGETS_EVERY = 1 << 16
_TROUBLE = frozenset({ErrorKind.DNS, ErrorKind.CONNECT, ErrorKind.TLS, ErrorKind.TIMEOUT, ErrorKind.TRUNCATED})
_NO_FILE_YET = frozenset({408, 425, 429})


@dataclass(slots=True)
class Life:
    """One process of the crawl. ``lost_at`` is set if it ended without a last commit, in true seconds."""

    number: int
    began_at: float
    lost_at: float | None = None
    awake_at: float = 0.0  # the end of the last time in which the process did nothing
    lost_lease: bool = False  # then it drops what it had not committed, but the log of its requests


@dataclass(slots=True)
class Seen:
    """One request. Times in seconds since the world began; those with ``wall`` are of the clock of the process."""

    life: Life
    url: str
    host: str
    path: str
    began_at: float
    wall_began: float
    wall_decided: float
    ended_at: float = math.inf
    wall_ended: float = math.inf
    status: int | None = None
    committed_at: float = math.inf

    @property
    def is_committed(self) -> bool:
        return self.committed_at < math.inf

    @property
    def is_known(self) -> bool:
        """Whether the processes that follow know of this request."""
        return self.is_committed or self.life.lost_at is None

    def __str__(self) -> str:
        return f"{self.url} at {self.began_at:.3f} s (process {self.life.number})"


@dataclass(slots=True)
class _Group:
    """A politeness group: the requests whose pauses may still run, oldest first."""

    in_flight: Seen | None = None
    acquired: tuple[Life, float] | None = None  # the last process that got it from the store, and when it asked
    recent: list[Seen] = field(default_factory=list)
    until: list[tuple[Seen, float, str]] = field(default_factory=list)  # (request, wall time, rule)
    backoffs: int = 0  # answers of a server in trouble, in a row
    most_backoff_s: float = 0.0  # at most: other answers halve the back-off


@dataclass(slots=True)
class _Copy:
    """What an answer for a robots.txt means. Times of the clock of the process that got it."""

    seen: Seen
    rules: Rules | None  # None: nothing may be fetched
    expires: float
    leads_to: str | None = None
    is_closed: bool = False  # by a status that forbids the whole site, so no file asks for a delay any more
    paused_until: float = 0.0  # at the latest; a copy that expires before is kept for a while after the pause

    @property
    def is_useful(self) -> bool:
        """Whether the answer says what may be fetched, or where that stands."""
        return self.rules is not None or self.leads_to is not None


_MIRROR = "the host is a mirror"


class Witness:
    """Judges what it sees; ``violations`` has the sentences.

    It remembers no more than a few numbers for each page, and what is still in force for each host.
    """

    def __init__(self, plan: Plan, web: Web, now: Callable[[], float]) -> None:
        self.violations: list[str] = []
        self.on_mirrors: dict[str, Seen] = {}  # the first page requested of each host whose Host line names another
        self.wrong = asyncio.Event()  # set at the first violation: the rest of the world is not worth the time
        self.requests = 0
        self.pages = 0
        self.logged = 0  # requests in commits that have landed
        self.bodies: dict[str, tuple[str, ...]] = {}  # digests of the last bodies of each page that was answered
        self.unread: dict[str, Seen] = {}  # the last answer with a page, by URL, until the page is committed
        self.seen: list[Seen] = []  # all requests of a small world
        self.most_in_batch = 0
        self._keeps_all = plan.hosts <= 100
        self._plan = plan
        self._web = web
        self._now = now
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._copies: dict[str, list[_Copy]] = {}  # by host, newest last
        self._uncommitted: dict[tuple[int, str, str, float], Seen] = {}
        self._done: set[str] = set()  # URLs whose answer is committed
        self._domains: Counter[tuple[int, str]] = Counter()  # requests in flight, by process
        self._paused_since: float | None = None
        self._blocked: dict[str, float] = {}

    def complain(self, sentence: str) -> None:
        """Note a violation."""
        self.violations.append(f"{self._now():.3f} s: {sentence}")
        self.wrong.set()

    # --- what the witness sees ----------------------------------------------------------------

    def sent(self, life: Life, request: Request, wall: float, decided: float) -> Seen:
        """A request leaves the process ``life``, whose clock shows ``wall``. At ``decided`` it began to connect."""
        host, path = host_of(request.url), split(request.url).path
        seen = Seen(life, request.url, host, path, self._now(), wall, decided)
        group = self._groups[self._web.group_of(host)]
        self.requests += 1
        if self.requests % _FORGETS_EVERY == 0:
            self._forget(wall)
        self._check_alone(seen, group)
        self._check_pauses(seen, group)
        self._check_slots(seen)
        self._check_orders(seen)
        if path != ROBOTS:
            self._check_robots(seen)
            self._check_once(request)
        group.in_flight = seen
        self._domains[life.number, registered_domain(host)] += 1
        if self._keeps_all:
            self.seen.append(seen)
        return seen

    def ended(self, seen: Seen, wall: float, answer: Answer | None, received: Received | None) -> None:
        """The request is over: answered, or cancelled by the crawl, or cut off by the death of its process."""
        seen.ended_at, seen.wall_ended = self._now(), wall
        seen.status = None if received is None else received.status
        group = self._groups[self._web.group_of(seen.host)]
        if group.in_flight is seen:
            group.in_flight = None
        self._domains[seen.life.number, registered_domain(seen.host)] -= 1
        self._uncommitted[seen.life.number, seen.host, seen.path, seen.wall_began] = seen
        if seen.path == ROBOTS:
            self._take_copy(seen, answer, received)
        elif isinstance(received, Fetched):
            self.pages += 1
            before, digest = self.bodies.get(seen.url, ()), digest_of(received.body)
            if digest not in before:
                self.bodies[seen.url] = (*before[1 - _ANSWERS_KEPT :], digest)
            self.unread[seen.url] = seen
        self._add_pauses(seen, group, answer, received)
        if seen.path == ROBOTS and received is not None:
            latest = max(until for _, until, _ in group.until)
            self._copies[seen.host][-1].paused_until = max(latest, wall + group.most_backoff_s)

    def heard(self, seen: Seen, wall: float) -> None:
        """A process that did nothing for a while takes the answer: a robots.txt holds from then on."""
        copy = self._copies[seen.host][-1] if seen.path == ROBOTS else None
        if copy is not None and copy.seen is seen:
            copy.expires += wall - seen.wall_ended
            copy.paused_until = max(copy.paused_until, wall + self._plan.politeness.slow_cap_s)

    def committed(self, life: Life, rows: list[tuple[str, RequestRow]], pages: list[str], outcomes: int) -> None:
        """A commit has landed, with the log of ``rows``, each with its host, and these pages."""
        self.most_in_batch = max(self.most_in_batch, outcomes)
        for host, row in rows:
            seen = self._uncommitted.pop((life.number, host, row.path, row.started_at), None)
            if seen is None:
                self.complain(f"a request was logged that was not sent, or twice: {host}{row.path}")
            else:
                self._log(seen)
                if max(seen.ended_at, life.awake_at) + _COMMITTED_WITHIN_S < self._now():
                    self.complain(f"committed {self._now() - seen.ended_at:.1f} s after its answer: {seen}")
        for url in pages:
            if url not in self.bodies:
                self.complain(f"a page was committed that was not served: {url}")
            self.unread.pop(url, None)
            if not self._plan.days:
                self._done.add(url)

    def _log(self, seen: Seen) -> None:
        """The request is in the log. Its answer is kept with it, so the only worker never asks for it again."""
        seen.committed_at = self._now()
        self.logged += 1
        if self.unread.get(seen.url) is seen and not self._plan.days and self._plan.workers == 1:
            self._done.add(seen.url)

    def acquired(self, life: Life, group: str, asked_at: float) -> None:
        """A process got a group from the store, in a transaction that it asked for at ``asked_at``."""
        self._groups[group].acquired = life, asked_at

    def ordered(self, command: str, host: str = "") -> None:
        """An order of the operator is in the store."""
        match command:
            case "pause":
                self._paused_since = self._now()
            case "resume":
                self._paused_since = None
            case "block":
                self._blocked[host] = self._now()
            case "unblock":
                self._blocked.pop(host, None)

    def lost(self, life: Life, logged: Collection[tuple[str, str, float]]) -> None:
        """The process was killed, or its store failed: what it had not committed is lost.

        ``logged`` are the host, path and start of the last requests in the log: a commit may have landed without its
        process knowing.
        """
        life.lost_at = self._now()
        for host, path, started_at in logged:
            landed = self._uncommitted.pop((life.number, host, path, started_at), None)
            if landed is not None:
                self._log(landed)
        for seen in self._forget_uncommitted(life):
            group = self._groups[self._web.group_of(seen.host)]
            group.backoffs = 0
            group.most_backoff_s *= 2  # the next process does not know of the answer that halved it

    def finished(self, life: Life) -> None:
        """The process has ended in order. It must have committed all it did."""
        for seen in self._forget_uncommitted(life):
            self.complain(f"never logged: {seen}")

    def _forget_uncommitted(self, life: Life) -> list[Seen]:
        return [self._uncommitted.pop(key) for key in [key for key in self._uncommitted if key[0] == life.number]]

    # --- politeness ---------------------------------------------------------------------------

    def _check_alone(self, seen: Seen, group: _Group) -> None:
        if group.in_flight is not None:
            self.complain(f"two requests at once: {seen}, during {group.in_flight}")

    def _check_pauses(self, seen: Seen, group: _Group) -> None:
        held = [
            entry
            for entry in group.until
            if entry[1] > seen.wall_began
            and (self._holds(entry[0], seen) or (entry[2] == PAUSE and self._is_early(entry[0], seen)))
        ]
        for before, until, rule in held:
            # A new process whose clock is behind the stored times begins the pause anew.
            anew = before.ended_at + (until - before.wall_ended)
            rest_s = min(until - seen.wall_began, anew - seen.began_at)
            if rest_s > _TOLERANCE_S:
                self.complain(f"{rule} cut short by {rest_s:.3f} s: {seen}, after {before}")
        group.until = [entry for entry in group.until if entry[1] > seen.wall_began]
        lost = [before for before in group.recent if not before.is_known]
        for before in lost:
            assert before.life.lost_at is not None
            rest_s = before.life.lost_at + self._plan.politeness.delay_s - seen.began_at
            if rest_s > _TOLERANCE_S and before.life is not seen.life:
                self.complain(f"{rest_s:.3f} s of the pause after a crash cut short: {seen}, after {before}")
        group.recent = group.recent[-2:]

    def _is_early(self, before: Seen, seen: Seen) -> bool:
        """Whether a worker took a group over before the last pause could be over, by a clock that never jumps."""
        return self._plan.workers > 1 and seen.began_at < before.ended_at + self._plan.politeness.delay_s

    def _holds(self, before: Seen, seen: Seen) -> bool:
        """Whether the process that sends ``seen`` knows for sure of ``before``, a request to the same group."""
        if before.life is seen.life:
            return True
        if self._plan.workers == 1:
            return before.is_known
        acquired = self._groups[self._web.group_of(seen.host)].acquired
        return acquired is not None and acquired[0] is seen.life and before.committed_at < acquired[1]

    def _add_pauses(self, seen: Seen, group: _Group, answer: Answer | None, received: Received | None) -> None:
        settings, end = self._plan.politeness, seen.wall_ended
        group.recent.append(seen)
        group.until.append((seen, end + settings.delay_s, PAUSE))
        if received is None or answer is None:
            return
        took_s = received.finished_at - received.started_at
        slow_s = min(settings.slow_factor * took_s, settings.slow_cap_s)
        group.until.append((seen, end + slow_s, "the pause after a slow answer"))
        delay_s = _capped(self._crawl_delay_s(seen), settings)
        group.until.append((seen, end + delay_s, "Crawl-delay"))
        if answer.retry_after_s is not None:
            group.until.append((seen, end + answer.retry_after_s, "Retry-After"))
        failed = isinstance(received, Failed)
        if answer.status in (429, 503) or (failed and answer.error in _TROUBLE):
            backoff_s = min(settings.backoff_first_s * 2.0**group.backoffs, settings.backoff_max_s)
            group.until.append((seen, end + backoff_s, "back-off"))
            group.backoffs = min(group.backoffs + 1, 40)
            group.most_backoff_s = min(max(settings.backoff_first_s, 2 * group.most_backoff_s), settings.backoff_max_s)
        else:
            group.backoffs = 0
            if self._plan.workers == 1:  # another worker may not know of this answer
                group.most_backoff_s /= 2

    def _crawl_delay_s(self, seen: Seen) -> float:
        """The delay that the last file of the site asks for, if it came straight from there and counts for sure."""
        copies = self._copies.get(seen.host, [])
        useful = [copy for copy in copies if copy.is_useful or copy.is_closed]
        sure = [copy for copy in useful if self._holds(copy.seen, seen)]
        return sure[-1].rules.crawl_delay_s if sure and sure[-1].rules is not None else 0.0

    def _check_slots(self, seen: Seen) -> None:
        domain, most = registered_domain(seen.host), self._plan.concurrency
        held = self._domains[seen.life.number, domain]
        if held >= max(1, most // 4):
            self.complain(f"{domain} holds {held} of {most} slots, and gets another one: {seen}")

    def _check_orders(self, seen: Seen) -> None:
        holds_after_s = self._plan.look_every_s + _ORDER_S
        awake_at = seen.life.awake_at
        if self._paused_since is not None and max(self._paused_since, awake_at) + holds_after_s < seen.began_at:
            self.complain(f"sent while the operator paused the crawl: {seen}")
        if max(self._blocked.get(seen.host, math.inf), awake_at) + holds_after_s < seen.began_at:
            self.complain(f"sent while the operator blocked the host: {seen}")

    # --- robots.txt ---------------------------------------------------------------------------

    def _take_copy(self, seen: Seen, answer: Answer | None, received: Received | None) -> None:
        if received is None:
            return
        settings = self._plan.robots
        rules: Rules | None = None
        leads_to = None
        closed = {401, 403} if settings.reading is not Reading.RFC9309 else set()
        match received:
            case Fetched():
                rules = rules_of(received.body.decode())
            case NotModified():
                rules = rules_of(self._web.host(self._number(seen.host)).robots_at(seen.began_at).text)
            case Redirected():
                target = host_of(received.location)
                leads_to = target if target != seen.host else None
            case Failed(status=status, kind=ErrorKind.HTTP) if status is not None:
                if 400 <= status < 500 and status not in closed | _NO_FILE_YET:
                    rules = Rules()
        fresh_s = _DAY_S if settings.reading is Reading.RFC9309 else 7 * _DAY_S
        if answer is not None and answer.max_age_s is not None:
            fresh_s = min(answer.max_age_s, fresh_s) if settings.reading is Reading.RFC9309 else answer.max_age_s
        expires = received.finished_at + max(settings.min_fresh_s, fresh_s)
        self._copies[seen.host] = [
            *_worth_keeping(self._copies.get(seen.host, [])),
            _Copy(seen, rules, expires, leads_to, is_closed=received.status in closed),
        ]

    def _forget(self, wall: float) -> None:
        """Forget pauses and robots copies that were over a day ago: no jump of the clock brings them back."""
        for name, group in list(self._groups.items()):
            if (
                group.in_flight is None
                and not group.most_backoff_s
                and all(u < wall - _DAY_S for _, u, _ in group.until)
            ):
                del self._groups[name]
        for host, copies in list(self._copies.items()):
            if all(max(copy.expires, copy.paused_until) < wall - _DAY_S for copy in copies):
                del self._copies[host]

    def _number(self, host: str) -> int:
        number = self._web.number_of(host)
        assert number is not None
        return number

    def _check_robots(self, seen: Seen) -> None:
        copies = self._in_question(seen.host, seen)
        if not copies:
            self.complain(f"no robots.txt was asked for: {seen}")
            return
        faults = [self._fault(copy, seen) for copy in copies]
        if _MIRROR in faults and all(faults):
            self.on_mirrors.setdefault(seen.host, seen)  # right if its main site turned out to be none
        elif all(faults):
            self.complain(f"{faults[-1]}: {seen}")

    def _in_question(self, host: str, seen: Seen) -> list[_Copy]:
        """The copies of which one is in force: the newest, and older ones if the newer ones may have been lost."""
        found: list[_Copy] = []
        for copy in reversed(self._copies.get(host, [])):
            found.append(copy)
            if self._holds(copy.seen, seen):
                break
        return found

    def _fault(self, copy: _Copy, seen: Seen, way: tuple[_Copy, ...] = ()) -> str | None:
        """Why a copy does not permit a request; ``None`` if it does.

        ``way`` has the redirects that led to this copy, the last one first.
        """
        if copy.leads_to is not None:
            is_followed = len(way) < self._plan.robots.max_redirects
            targets = self._copies.get(copy.leads_to, []) if is_followed else []
            faults = [self._fault(target, seen, (copy, *way)) for target in targets[-2:]]
            return None if None in faults else f"redirected to {copy.leads_to}: {(faults or ['not asked'])[-1]}"
        if copy.rules is None:
            return "the last answer for robots.txt permits nothing"
        expires = self._expires(copy, copy.rules, way)
        if seen.wall_decided >= expires + _TOLERANCE_S:
            return f"robots.txt had expired {seen.wall_decided - expires:.3f} s before"
        rules, reading = copy.rules, self._plan.robots.reading
        if not rules.allow(seen.path, reading):
            return "robots.txt forbids this"
        if rules.main_host not in (None, seen.host) and reading is not Reading.RFC9309:
            return _MIRROR
        return None

    def _expires(self, copy: _Copy, rules: Rules, way: tuple[_Copy, ...]) -> float:
        """The end of a copy for the site whose redirects, the last one first, led to it.

        If the pause after an answer is longer than the copy holds, a copy that came after that answer is kept for a
        while after the pause.
        """
        expires = copy.expires
        delay_s = _capped(rules.crawl_delay_s, self._plan.politeness)
        for answered in (copy, *way):
            paused_until = max(answered.paused_until, answered.seen.wall_ended + delay_s)
            if paused_until >= expires and copy.seen.ended_at >= answered.seen.ended_at:
                expires = paused_until + self._plan.robots.min_fresh_s
        return expires

    # --- once ---------------------------------------------------------------------------------

    def _check_once(self, request: Request) -> None:
        if request.url in self._done and request.purpose is Purpose.PAGE:
            self.complain(f"requested again although its answer is committed: {request.url}")


def digest_of(body: bytes) -> str:
    """The digest by which a witness remembers a body: the first half of the SHA-256, in hex."""
    return hashlib.sha256(body).hexdigest()[:32]


def _worth_keeping(copies: list[_Copy]) -> list[_Copy]:
    """The copies of a host that may still count when a new one is added, newest last."""
    committed = [n for n, copy in enumerate(copies) if copy.seen.is_committed]
    useful = [n for n in committed if copies[n].is_useful]
    first = min((*committed[-_COPIES_KEPT:][:1], *useful[-1:]), default=0)
    return copies[first:]


def _capped(delay_s: float, settings: PolitenessSettings) -> float:
    return delay_s if settings.crawl_delay_cap_s is None else min(delay_s, settings.crawl_delay_cap_s)
