"""The web of a world. Each host and each page is drawn when it is asked for, from the seed and its numbers."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from hashlib import sha256

from crawler.frontier.politeness import GroupBy
from crawler.model import Failed, Fetched, FetchResult, Headers, NotModified, Redirected, Request
from crawler.reasons import ErrorKind
from crawler.url import host_of, split
from tests.world.plan import Plan

TIMEOUT_S = 60.0
ROBOTS = "/robots.txt"
#: Hosts with this remainder may be mirrors of the host before them, which is no mirror: so no chain of mirrors exists.
_MIRROR_REST = 1


class Kind(StrEnum):
    """What a page answers."""

    HTML = "html"
    NOINDEX = "noindex"
    SLOW = "slow"
    FLAKY = "flaky"  # 503 with Retry-After, once or twice, then HTML
    REDIRECT = "redirect"
    CIRCLE = "circle"  # two pages that redirect to each other
    TO_ITSELF = "to itself"
    MISSING = "missing"
    GONE = "gone"
    DENIED = "denied"
    BROKEN = "broken"  # 500, always
    BUSY = "busy"  # 429 with Retry-After, always
    TARPIT = "tarpit"
    CUT = "cut"
    JUNK = "junk"
    OTHER_TYPE = "other type"
    HUGE = "huge"
    EMPTY = "empty"


_KINDS = {
    Kind.HTML: 66.0, Kind.NOINDEX: 2, Kind.SLOW: 3, Kind.FLAKY: 4, Kind.REDIRECT: 8, Kind.CIRCLE: 1,
    Kind.TO_ITSELF: 0.5, Kind.MISSING: 4, Kind.GONE: 1, Kind.DENIED: 1, Kind.BROKEN: 1, Kind.BUSY: 1,
    Kind.TARPIT: 1, Kind.CUT: 1, Kind.JUNK: 1, Kind.OTHER_TYPE: 2, Kind.HUGE: 0.5, Kind.EMPTY: 1,
}  # fmt: skip
#: Pages that have links.
READABLE = frozenset({Kind.HTML, Kind.NOINDEX, Kind.SLOW, Kind.FLAKY})


class RobotsKind(StrEnum):
    """What /robots.txt answers."""

    FILE = "file"
    NONE = "none"
    DENIED = "denied"
    LATE = "late"  # 503 with Retry-After, once or twice, then a file
    BROKEN = "broken"
    SILENT = "silent"
    NO_ADDRESS = "no address"
    REFUSED = "refused"  # an address that the guard refuses
    REDIRECT = "redirect"  # to the /robots.txt of another host, which is a file
    LOOP = "loop"


_ROBOTS = {
    RobotsKind.FILE: 55.0, RobotsKind.NONE: 16, RobotsKind.DENIED: 4, RobotsKind.LATE: 6, RobotsKind.BROKEN: 2,
    RobotsKind.SILENT: 1, RobotsKind.NO_ADDRESS: 3, RobotsKind.REFUSED: 1, RobotsKind.REDIRECT: 10, RobotsKind.LOOP: 2,
}  # fmt: skip


class Trouble(StrEnum):
    """What a whole host does for a while."""

    REFUSES = "refuses connections"
    SILENT = "answers nothing"
    NO_ADDRESS = "has no address"
    BUSY = "429 with Retry-After"
    BROKEN = "503"


@dataclass(frozen=True, slots=True)
class Robots:
    """The robots.txt of a host from a time on, in seconds since the world began."""

    from_s: float
    kind: RobotsKind
    text: str = ""
    target: int = 0  # the host that a redirect leads to
    max_age_s: int | None = None
    failures: int = 0  # of a late one


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the web."""

    number: int
    name: str
    pages: int
    latency_s: float
    robots: tuple[Robots, ...]
    troubles: tuple[tuple[float, float, Trouble], ...] = ()

    @property
    def url(self) -> str:
        return f"http://{self.name}"

    def robots_at(self, at_s: float) -> Robots:
        """The robots.txt at a time."""
        return next(robots for robots in reversed(self.robots) if robots.from_s <= at_s)

    def trouble_at(self, at_s: float) -> Trouble | None:
        return next((trouble for start, end, trouble in self.troubles if start <= at_s < end), None)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the web. ``links`` are (URL, may be followed?)."""

    url: str
    kind: Kind
    links: tuple[tuple[str, bool], ...] = ()
    target: str = ""
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer on its way: how long it takes, and what arrives. ``retry_after_s`` is what it asks for."""

    delay_s: float
    kind: type[FetchResult] = Failed
    status: int | None = None
    error: ErrorKind = ErrorKind.HTTP
    body: bytes = b""
    content_type: str = "text/html"
    location: str = ""
    etag: str | None = None
    max_age_s: int | None = None
    retry_after_s: int | None = None

    def received(self, request: Request, started_at: float, finished_at: float) -> FetchResult:
        """The answer as a fetcher returns it. Times of the crawler's clock."""
        made = partial(self.kind, request.url, started_at, finished_at, self._headers(), len(self.body))
        if self.kind is Fetched:
            return made(status=self.status, content_type=self.content_type, plain=self.body)
        if self.kind is Redirected:
            return made(status=self.status, location=self.location)
        if self.kind is NotModified:
            return made()
        return made(kind=self.error, status=self.status, detail=str(self.status or self.error))

    def _headers(self) -> Headers:
        headers = [("ETag", self.etag)] if self.etag else []
        if self.max_age_s is not None:
            headers.append(("Cache-Control", f"max-age={self.max_age_s}"))
        if self.retry_after_s is not None:
            headers.append(("Retry-After", str(self.retry_after_s)))
        return tuple(headers)


class Web:
    """A web of ``plan.hosts`` hosts. It answers; it does not know who asks."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._tries: dict[str, int] = {}  # of URLs that answer differently after some tries
        self.host = lru_cache(20_000)(self._draw_host)
        self.page = lru_cache(20_000)(self._draw_page)

    def _chance(self, *what: object) -> random.Random:
        return random.Random(f"{self.plan.seed} {what}")

    # --- drawing ------------------------------------------------------------------------------

    def seeds(self) -> list[str]:
        """The roots of every third host; the others are found by links."""
        return [f"{self.host(number).url}/" for number in range(0, self.plan.hosts, 3)]

    def group_of(self, name: str) -> str:
        """The politeness group of a host."""
        return name if self.plan.politeness.group is GroupBy.HOST else name.partition(".")[2]

    def number_of(self, name: str) -> int | None:
        """The number of a host, by its name."""
        first, _, rest = name.partition(".")
        try:
            number = int(first[1:]) + 3 * int(rest.removesuffix(".test")[1:])
        except ValueError:
            return None
        return number if number < self.plan.hosts and _name(number) == name else None

    def _draw_host(self, number: int) -> Host:
        chance = self._chance("host", number)
        pages = min(200, 1 + int(chance.expovariate(1 / 5)))
        latency_s = chance.choice((0.01, 0.1, 0.5, 2.0))
        versions = [self._draw_robots(chance, number, 0.0)]
        troubles = []
        rests_at_s = self.plan.rests_at_s
        if rests_at_s:
            while chance.random() < 0.3:
                versions.append(self._draw_robots(chance, number, self._moment(chance)))
            while chance.random() < 0.2:
                start_s = self._moment(chance)
                end_s = min(rests_at_s, start_s + 10 ** chance.uniform(0, math.log10(rests_at_s)))
                troubles.append((start_s, end_s, chance.choice(list(Trouble))))
        versions.sort(key=lambda robots: robots.from_s)
        return Host(number, _name(number), pages, latency_s, tuple(versions), tuple(troubles))

    def _moment(self, chance: random.Random) -> float:
        """A time at which something changes: early ones are as likely as late ones."""
        return float(min(self.plan.rests_at_s, 10 ** chance.uniform(0, math.log10(self.plan.rests_at_s))))

    def _draw_robots(self, chance: random.Random, number: int, from_s: float) -> Robots:
        kind = chance.choices(list(_ROBOTS), list(_ROBOTS.values()))[0]
        if number == 0:  # some seed must be open
            kind = RobotsKind.NONE
        max_age_s = chance.choice((None, None, 0, 60, 600, 86_400))
        target = 0
        if kind is RobotsKind.REDIRECT:
            target = chance.randrange(self.plan.hosts)
            if target == number or target % 3 == _MIRROR_REST:  # a file with a Host line is about one host
                kind = RobotsKind.NONE
        text = self._draw_file(chance, number) if kind in (RobotsKind.FILE, RobotsKind.LATE) else ""
        return Robots(from_s, kind, text, target, max_age_s, chance.randint(1, 2))

    def _draw_file(self, chance: random.Random, number: int) -> str:
        records = [["User-agent: OtherBot", "Disallow: /"]] if chance.random() < 0.3 else []
        names = chance.choice((("*",), ("*",), ("SimulatedBot",), ("SimulatedBot", "*")))
        for name in names:
            lines = [f"User-agent: {name}"]
            for _ in range(chance.randint(1, 3)):  # a record without a rule would be joined with the next one
                field = chance.choice(("Disallow", "Disallow", "Allow"))
                lines.append(f"{field}: {chance.choice(('/private', '/private/1', '/p2', '/p', '/private/3', '/p1'))}")
            if chance.random() < 0.05:
                lines.append("Disallow: /")
            if chance.random() < 0.25:
                lines.append(f"Crawl-delay: {chance.choice((1, 3, 10, 30))}")
            if number % 3 == _MIRROR_REST and chance.random() < 0.3:
                lines.append(f"Host: {_name(number - 1)}")
            records.append(lines)
        return "\n\n".join("\n".join(record) for record in records) + "\n"

    def path(self, number: int, page: int) -> str:
        """The path of a page. One in eight is below /private."""
        if page == 0:
            return "/"
        return f"/private/{page}" if self._chance("path", number, page).random() < 0.125 else f"/p{page}"

    def url(self, number: int, page: int) -> str:
        return f"{self.host(number).url}{self.path(number, page)}"

    def _draw_page(self, number: int, page: int) -> Page:
        chance = self._chance("page", number, page)
        url = self.url(number, page)
        kind = chance.choices(list(_KINDS), list(_KINDS.values()))[0] if page else Kind.HTML
        if kind is Kind.CIRCLE:
            return Page(url, kind, target=f"{url}/circle")
        if kind is Kind.REDIRECT:
            # Redirects lead to earlier pages, or to the roots of hosts, so that they end.
            target = self.url(number, chance.randrange(page)) if chance.random() < 0.5 else self._some_root(chance)
            return Page(url, kind, target=target)
        if kind not in READABLE:
            return Page(url, kind)
        pages = self.host(number).pages
        links = [(self.url(number, child), True) for child in (2 * page + 1, 2 * page + 2) if child < pages]
        while chance.random() < 0.5:
            links.append((self._some_root(chance), chance.random() < 0.9))
        if chance.random() < 0.3:
            other = chance.randrange(self.plan.hosts)
            links.append((self.url(other, chance.randrange(self.host(other).pages)), True))
        if chance.random() < 0.1:
            links.append((f"{self.host(number).url}/nowhere{page}", True))
        return Page(url, kind, tuple(dict(links).items()), failures=chance.randint(1, 2))

    def _some_root(self, chance: random.Random) -> str:
        return f"{_url(chance.randrange(self.plan.hosts))}/"

    def page_at(self, url: str) -> Page:
        """The page at a URL of this web."""
        number, path = self.number_of(host_of(url)), split(url).path
        assert number is not None, f"{url} is no URL of this web"
        if path.endswith("/circle"):
            return Page(url, Kind.CIRCLE, target=url.removesuffix("/circle"))
        digits = path.rpartition("/")[2].removeprefix("p")
        page = 0 if path == "/" else int(digits) if digits.isdecimal() else -1
        if not 0 <= page < self.host(number).pages or self.path(number, page) != path:
            return Page(url, Kind.MISSING)
        return self.page(number, page)

    # --- answering ----------------------------------------------------------------------------

    def answer(self, request: Request, at_s: float) -> Answer:
        """The answer to a request that arrives at ``at_s``, in seconds since the world began."""
        host_name = host_of(request.url)
        number = self.number_of(host_name)
        if number is None:
            return Answer(0.01, error=ErrorKind.DNS)
        host = self.host(number)
        trouble = host.trouble_at(at_s)
        if trouble is not None:
            return _troubled(trouble, host)
        if split(request.url).path == ROBOTS:
            return self._robots_answer(request, host, host.robots_at(at_s))
        robots = host.robots_at(at_s).kind
        if robots in (RobotsKind.NO_ADDRESS, RobotsKind.REFUSED):
            return Answer(0.01, error=ErrorKind.DNS)
        return self._page_answer(request, host, at_s)

    def _robots_answer(self, request: Request, host: Host, robots: Robots) -> Answer:
        slow_s = host.latency_s
        match robots.kind:
            case RobotsKind.LATE if self._tried(f"{request.url} {robots.from_s}") <= robots.failures:
                return Answer(slow_s, status=503, retry_after_s=40)
            case RobotsKind.FILE | RobotsKind.LATE:
                body = robots.text.encode()
                etag = f'"{sha256(body).hexdigest()[:8]}"'
                if request.etag == etag:
                    return Answer(slow_s, NotModified, 304, etag=etag, max_age_s=robots.max_age_s)
                return Answer(slow_s, Fetched, 200, body=body, etag=etag, max_age_s=robots.max_age_s)
            case RobotsKind.NONE:
                return Answer(slow_s, status=404, max_age_s=robots.max_age_s)
            case RobotsKind.DENIED:
                return Answer(slow_s, status=403, max_age_s=robots.max_age_s)
            case RobotsKind.BROKEN:
                return Answer(slow_s, status=500)
            case RobotsKind.SILENT:
                return Answer(TIMEOUT_S, error=ErrorKind.TIMEOUT)
            case RobotsKind.NO_ADDRESS:
                return Answer(0.01, error=ErrorKind.DNS)
            case RobotsKind.REFUSED:
                return Answer(0.01, error=ErrorKind.ADDRESS)
            case RobotsKind.LOOP:
                return Answer(slow_s, Redirected, 302, location=request.url)
            case RobotsKind.REDIRECT:
                return Answer(slow_s, Redirected, 302, location=f"{_url(robots.target)}{ROBOTS}")

    def _page_answer(self, request: Request, host: Host, at_s: float) -> Answer:
        page, slow_s = self.page_at(request.url), host.latency_s
        match page.kind:
            case Kind.FLAKY if self._tried(request.url) <= page.failures:
                return Answer(slow_s, status=503, retry_after_s=25)
            case Kind.HTML | Kind.NOINDEX | Kind.FLAKY:
                return Answer(slow_s, Fetched, 200, body=self.body(page, at_s))
            case Kind.SLOW:
                return Answer(slow_s + 8.0, Fetched, 200, body=self.body(page, at_s))
            case Kind.REDIRECT | Kind.CIRCLE:
                return Answer(slow_s, Redirected, 301, location=page.target)
            case Kind.TO_ITSELF:
                return Answer(slow_s, Redirected, 302, location=page.url)
            case Kind.TARPIT:
                return Answer(TIMEOUT_S, error=ErrorKind.TIMEOUT)
            case Kind.EMPTY:
                return Answer(slow_s, status=204)
            case Kind.BUSY:
                return Answer(slow_s, status=429, retry_after_s=20)
        if page.kind in _ERRORS:
            return Answer(slow_s, status=200, error=_ERRORS[page.kind])
        return Answer(slow_s, status=_STATUSES.get(page.kind, 404))

    def body(self, page: Page, at_s: float) -> bytes:
        """The text of a page. In a world of days it changes every some days, until the world comes to rest."""
        version = 0
        if self.plan.days:
            every_s = 86_400.0 * self._chance("changes", page.url).choice((1, 5, 30, 1000))
            version = int(min(at_s, self.plan.rests_at_s) / every_s)
        head = "<meta name=robots content=noindex>" if page.kind is Kind.NOINDEX else ""
        links = "".join(
            f"<a href='{url}'{'' if follow else ' rel=nofollow'}>{url[-9:]}</a>" for url, follow in page.links
        )
        return f"<!doctype html><head>{head}<title>{page.url}</title></head><p>{version}</p>{links}".encode()

    def _tried(self, what: str) -> int:
        self._tries[what] = self._tries.get(what, 0) + 1
        return self._tries[what]


_STATUSES = {Kind.MISSING: 404, Kind.GONE: 410, Kind.DENIED: 403, Kind.BROKEN: 500}
_ERRORS = {
    Kind.CUT: ErrorKind.TRUNCATED,
    Kind.JUNK: ErrorKind.PROTOCOL,
    Kind.OTHER_TYPE: ErrorKind.UNWANTED_TYPE,
    Kind.HUGE: ErrorKind.TOO_LARGE,
}


def _name(number: int) -> str:
    return f"w{number % 3}.d{number // 3}.test"


def _url(number: int) -> str:
    return f"http://{_name(number)}"


def _troubled(trouble: Trouble, host: Host) -> Answer:
    match trouble:
        case Trouble.REFUSES:
            return Answer(host.latency_s, error=ErrorKind.CONNECT)
        case Trouble.SILENT:
            return Answer(TIMEOUT_S, error=ErrorKind.TIMEOUT)
        case Trouble.NO_ADDRESS:
            return Answer(0.01, error=ErrorKind.DNS)
        case Trouble.BUSY:
            return Answer(host.latency_s, status=429, retry_after_s=120)
        case Trouble.BROKEN:
            return Answer(host.latency_s, status=503)
