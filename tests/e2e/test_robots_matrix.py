"""The effect of every kind of answer to /robots.txt: docs/protocols.md, section 1.

Each cell of the table is a site of its own with two pages. One crawl for each reading visits all of them. The requests
go over real connections to a real server. Pauses pass in virtual time, so the tests compare them exactly.
"""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.demo.pages import Fault, Handler, Page, Site, first, plain, redirect, unavailable
from crawler.fetch.client import FetchSettings
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.model import Headers, Reading
from crawler.robots.response import RobotsSettings
from tests.simulation.crawls import Options, states
from tests.simulation.crawls import crawl as virtual_crawl
from tests.virtual_time import VirtualClock, run_virtual
from tests.web import LoopbackWeb
from tests.wire import Asked, Wire

RETRY_FIRST_S, GIVE_UP_S, RETRY_AFTER_S = 60.0, 1800.0, 1000
SLACK_S = 15.0  # ten hops with pauses of a second, and the claim that takes up the retry
DRAFT, RFC, STRICT = Reading.DRAFT1996, Reading.RFC9309, Reading.STRICT
BOTH = frozenset({"/page", "/closed"})
OPEN = frozenset({"/page"})
NONE: frozenset[str] = frozenset()
TEXT = "User-agent: *\nDisallow: /closed\n"
FILE = plain(TEXT)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n"


@dataclass(frozen=True)
class Cell:
    """A site: its /robots.txt, its other URLs, and the pages that may be fetched, for all readings or by reading."""

    robots: Page | Handler
    fetched: frozenset[str] | dict[Reading, frozenset[str]]
    others: Site = field(default_factory=dict)

    def expected(self, reading: Reading) -> frozenset[str]:
        return self.fetched if isinstance(self.fetched, frozenset) else self.fetched[reading]


def raw(octets: bytes) -> Page:
    return Page(octets, fault=Fault.RAW)


def octets(body: bytes, headers: Headers = ()) -> Page:
    return Page(body, content_type="text/plain", headers=headers)


def chain(hops: int) -> Cell:
    """Redirects from /robots.txt to a file that is ``hops`` of them away."""
    steps = {f"/{n}": redirect(f"/{n + 1}") for n in range(1, hops)}
    return Cell(redirect("/1"), OPEN if hops <= 10 else NONE, {**steps, f"/{hops}": FILE})


def padded(before: str, size: int, after: str) -> Page:
    return octets(before.encode() + b"# padding\n" * (size // 10) + after.encode())


def whole(text: str) -> Headers:
    return (("Content-Range", f"bytes 0-{len(text) - 1}/{len(text)}"),)


CLOSED_BY_STATUS = {DRAFT: NONE, STRICT: NONE, RFC: BOTH}

STRICT_NONE = {DRAFT: BOTH, STRICT: NONE, RFC: BOTH}

# The first answer decides, and robots.txt is asked for once.
LASTING = {
    "200": Cell(FILE, OPEN),
    "206-whole": Cell(replace(FILE, status=206, headers=whole(TEXT)), OPEN),
    "200-html": Cell(Page("<!DOCTYPE html>\n<title>What are you looking for?</title>\n<p>Disallow: /"), BOTH),
    "200-binary-type": Cell(Page(TEXT, content_type="application/octet-stream"), OPEN),
    "200-latin1": Cell(octets(b"User-agent: *\nDisallow: /caf\xe9\nDisallow: /closed\n"), OPEN, {"/caf%E9": Page()}),
    "200-gzip-unsaid": Cell(octets(gzip.compress(TEXT.encode())), OPEN),
    "200-etag-latin1": Cell(raw(b'HTTP/1.0 200 OK\r\nETag: "\xe9"\r\n\r\n' + TEXT.encode()), OPEN),
    "200-gzip": Cell(octets(gzip.compress(TEXT.encode()), (("Content-Encoding", "gzip"),)), OPEN),
    "200-chunked": Cell(raw(CHUNKED % (len(TEXT), TEXT.encode()) + b"0\r\n\r\n"), OPEN),
    "200-until-close": Cell(raw(b"HTTP/1.0 200 OK\r\n\r\n" + TEXT.encode()), OPEN),
    "200-long-past": Cell(padded("User-agent: *\n", 600 * 1024, "Disallow: /\n"), STRICT_NONE),
    "301": Cell(redirect("/r.txt", 301), OPEN, {"/r.txt": FILE}),
    "302": Cell(redirect("/r.txt", 302), OPEN, {"/r.txt": FILE}),
    "308": Cell(redirect("/r.txt", 308), OPEN, {"/r.txt": FILE}),
    "301-other-host": Cell(redirect("http://elsewhere.test:{port}/robots.txt", 301), OPEN),
    "301-to-404": Cell(redirect("/r.txt", 301), BOTH),
    "301-to-403": Cell(redirect("/r.txt", 301), CLOSED_BY_STATUS, {"/r.txt": Page(status=403)}),
    "302-10-hops": chain(10),
    "401": Cell(Page(TEXT, status=401), CLOSED_BY_STATUS),
    "403": Cell(Page(TEXT, status=403), CLOSED_BY_STATUS),
    **{str(code): Cell(Page("User-agent: *\nDisallow: /\n", status=code), BOTH) for code in (404, 451)},
}

# No usable answer ever comes: asked again after growing pauses, until the site is given up.
FAILING = {
    **{str(code): Cell(Page(status=code), NONE) for code in (304, 429, 503)},
    "206": Cell(replace(FILE, status=206, headers=(("Content-Range", f"bytes 0-{len(TEXT) - 1}/500"),)), NONE),
    "301-no-location": Cell(Page(status=301), NONE),
    "302-loop": Cell(redirect("/robots.txt"), NONE),
    "302-loop-of-2": Cell(redirect("/r.txt"), NONE, {"/r.txt": redirect("/robots.txt")}),
    "302-11-hops": chain(11),
    "302-ftp": Cell(redirect("ftp://elsewhere.test/robots.txt"), NONE),
    "302-to-503": Cell(redirect("/r.txt"), NONE, {"/r.txt": unavailable()}),
    "timeout": Cell(Page(fault=Fault.HANG), NONE),
    "reset": Cell(Page(fault=Fault.RESET), NONE),
    "cut": Cell(replace(FILE, fault=Fault.CUT), NONE),
    "chunked-cut": Cell(raw(CHUNKED % (len(TEXT), TEXT.encode())), NONE),
    "no-http": Cell(raw(b"SSH-2.0-OpenSSH_9.6\r\n"), NONE),
    "gzip-broken": Cell(octets(b"\x1f\x8bno", (("Content-Encoding", "gzip"),)), NONE),
    "gzip-unsaid-cut": Cell(octets(gzip.compress(TEXT.encode())[:-12]), NONE),
    "gzip-cut": Cell(octets(gzip.compress(TEXT.encode())[:-12], (("Content-Encoding", "gzip"),)), NONE),
}

# It fails at first, then the file comes. Retry-After is the longest pause here, and is waited for.
RECOVERING = {
    "503-then-200": Cell(first(2, unavailable(), then=FILE), OPEN),
    "timeout-then-404": Cell(first(1, Page(fault=Fault.HANG), then=Page(status=404)), BOTH),
    "reset-then-403": Cell(first(1, Page(fault=Fault.RESET), then=Page(status=403)), CLOSED_BY_STATUS),
}
PATIENT = {
    "429-retry-after": Cell(
        first(1, Page(status=429, headers=(("Retry-After", str(RETRY_AFTER_S)),)), then=FILE), OPEN
    ),
    "503-retry-after": Cell(first(1, unavailable(RETRY_AFTER_S), then=FILE), OPEN),
}
CELLS = {**LASTING, **FAILING, **RECOVERING, **PATIENT}
READINGS = pytest.mark.parametrize("reading", list(Reading))


@dataclass(frozen=True)
class Log:
    """The requests of one crawl in order, and the state and reason of each URL when the crawl had ended."""

    asked: list[Asked]
    outcomes: dict[str, tuple[str, str]]

    def of(self, name: str, reading: Reading) -> list[Asked]:
        return [asked for asked in self.asked if asked.host == host_of(name, reading)]

    def robots(self, name: str, reading: Reading) -> list[Asked]:
        return [asked for asked in self.of(name, reading) if asked.path == "/robots.txt"]

    def pages(self, name: str, reading: Reading) -> list[str]:
        return sorted(asked.path for asked in self.of(name, reading) if asked.path in (*BOTH, "/caf%E9"))


def host_of(name: str, reading: Reading) -> str:
    return f"c{name}.{reading}.test"


def sites(port: int, reading: Reading) -> dict[str, Site]:
    found: dict[str, Site] = {"elsewhere.test": {"/robots.txt": FILE}}
    for name, cell in CELLS.items():
        robots = cell.robots
        if isinstance(robots, Page):
            headers = tuple((key, value.replace("{port}", str(port))) for key, value in robots.headers)
            robots = replace(robots, headers=headers)
        pages = dict.fromkeys(BOTH, Page("<title>x</title>"))
        found[host_of(name, reading)] = {"/robots.txt": robots, **pages, **cell.others}
    return found


async def crawl(clock: VirtualClock, reading: Reading, db: Path, web: LoopbackWeb, refused: int) -> Log:
    """Crawl all cells of one reading. What is asked goes over real connections, pauses are virtual."""
    settings = FetchSettings("SimulatedBot/1.0", None, resolve=(("*.test", "127.0.0.1"),), allow_private=True)
    options = Options(
        scope=ScopeSettings(ScopeMode.HOST),
        politeness=PolitenessSettings(delay_s=1.0, slow_factor=0.0, backoff_first_s=1.0, backoff_max_s=1.0),
        robots=RobotsSettings(reading=reading, retry_first_s=RETRY_FIRST_S, give_up_after_s=GIVE_UP_S),
    )
    seeds = [web.url(host_of(name, reading), path) for name in CELLS for path in sorted(BOTH)]
    seeds.append(web.url(host_of("200-latin1", reading), "/caf%E9"))
    seeds.append(f"http://refused.{reading}.test:{refused}/page")
    silent = {host_of(name, reading) for name in CELLS if name.startswith("timeout")}
    with Wire(clock, settings, silent.__contains__) as wire:
        await virtual_crawl(clock, db, wire, seeds, options)
        outcomes = await states(db)
    return Log(sorted(wire.log, key=lambda asked: asked.began), outcomes)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Reading, Log]]:
    folder = tmp_path_factory.mktemp("matrix")
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # bound, but not listening: connections are refused
        refused = deaf.getsockname()[1]
        found = {}
        for reading in Reading:
            with LoopbackWeb() as web:
                web.sites.update(sites(web.port, reading))
                db = folder / f"{reading}.db"
                found[reading] = run_virtual(partial(crawl, reading=reading, db=db, web=web, refused=refused))
        yield found


@pytest.fixture
def log(logs: dict[Reading, Log], reading: Reading) -> Log:
    return logs[reading]


def pauses(asked: list[Asked]) -> list[float]:
    return [after.started_at - before.finished_at for before, after in pairwise(asked)]


# Each test lists the cells that are wrong: a test for each cell and reading would take longer than what it checks.


@READINGS
def test_section_1_what_the_response_means(log: Log, reading: Reading) -> None:
    found = {name: log.pages(name, reading) for name in CELLS}
    assert found == {name: sorted(cell.expected(reading)) for name, cell in CELLS.items()}


@READINGS
def test_section_1_robots_txt_is_asked_for_before_any_other_url(log: Log, reading: Reading) -> None:
    for name in CELLS:
        asked = log.of(name, reading)
        assert asked[0].path == "/robots.txt", name
        last = log.robots(name, reading)[-1]
        assert all(request.began > last.ended for request in asked if request.path in BOTH), name


@READINGS
def test_section_1_a_usable_answer_is_asked_for_once(log: Log, reading: Reading) -> None:
    assert {name: len(log.robots(name, reading)) for name in LASTING} == dict.fromkeys(LASTING, 1)


@READINGS
def test_section_1_failures_are_retried_with_growing_pauses_then_given_up(log: Log, reading: Reading) -> None:
    for name in FAILING:
        asked = log.robots(name, reading)
        waited = pauses(asked)
        assert len(waited) == 5, name  # 60 + 120 + 240 + 480 + 960 s reach half an hour
        for number, pause_s in enumerate(waited):
            assert RETRY_FIRST_S * 2**number <= pause_s < RETRY_FIRST_S * 2**number + SLACK_S, name
        assert asked[-1].finished_at - asked[0].finished_at >= GIVE_UP_S, name
        outcomes = [outcome for url, outcome in log.outcomes.items() if f"//{host_of(name, reading)}:" in url]
        assert [state for state, _ in outcomes] == ["failed"] * 2, name
        assert all(reason.startswith("robots: given up") for _, reason in outcomes), name


@READINGS
def test_section_1_a_site_that_recovers_is_crawled(log: Log, reading: Reading) -> None:
    for name, times in {"503-then-200": 3, "timeout-then-404": 2, "reset-then-403": 2}.items():
        asked = log.robots(name, reading)
        assert len(asked) == times, name
        assert all(pause_s >= RETRY_FIRST_S * 2**n for n, pause_s in enumerate(pauses(asked))), name


@READINGS
def test_section_1_retry_after_is_honoured_beyond_the_own_pause(log: Log, reading: Reading) -> None:
    for name in PATIENT:
        (pause_s,) = pauses(log.robots(name, reading))
        assert RETRY_AFTER_S <= pause_s < RETRY_AFTER_S + SLACK_S, name


@READINGS
def test_section_1_redirects_are_followed_to_other_hosts(log: Log, reading: Reading) -> None:
    robots, page, *_ = log.of("301-other-host", reading)
    hops = [asked for asked in log.asked if asked.host == "elsewhere.test" and robots.ended < asked.began < page.began]
    assert hops[0].path == "/robots.txt"


@READINGS
def test_section_1_ten_hops_are_followed_and_no_more(log: Log, reading: Reading) -> None:
    asked = [request.path for request in log.of("302-10-hops", reading)]
    assert asked[:11] == ["/robots.txt", *(f"/{n}" for n in range(1, 11))]
    assert not any(request.path == "/11" for request in log.of("302-11-hops", reading))


@READINGS
def test_section_1_a_refused_connection_defers(log: Log, reading: Reading) -> None:
    (outcome,) = [outcome for url, outcome in log.outcomes.items() if f"//refused.{reading}.test:" in url]
    assert outcome[0] == "failed"
    assert outcome[1].startswith("robots: given up")
