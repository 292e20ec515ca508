"""For any robots.txt, stored and displayed values are text that any database and terminal accepts."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.engine.alarm import Alarm
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.outbox import Outbox
from crawler.engine.progress import Progress
from crawler.engine.robots_cache import RobotsCache
from crawler.frontier.politeness import GroupBy, Pace
from crawler.model import Fetched, FetchResult, Reading, Request
from crawler.robots.check import check_case
from crawler.robots.doubts import doubts_about
from crawler.robots.readings import read
from crawler.robots.response import RobotsSettings
from crawler.robots.text import parse
from crawler.store.rows import ClaimedSite, RobotsNews
from tests.reading import ReaderInProcess
from tests.simulation.crawls import gate_on
from tests.virtual_time import VirtualClock, run_virtual

SITE = "http://a.test"
FIELDS = [b"User-agent", b"Disallow", b"Allow", b"Host", b"Sitemap", b"Crawl-delay", b"Mobile-agent-server", b"New"]
PIECES = [
    b"/",
    b"*",
    b"a",
    b" ",
    b".",
    b"none",
    b"\xff",
    b"\xed\xa0\x80",
    b"\0",
    b"\x1b",
    b"\x7f",
    b"\xc2\x85",
    b"http://",
]
LINES = st.tuples(st.sampled_from(FIELDS), st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join)).map(b": ".join)
BODIES = st.lists(LINES, max_size=8).map(lambda lines: b"\n".join([b"User-agent: *", *lines]))
VALUES = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=9)


class Served:
    """A site of which every URL has this body."""

    def __init__(self, body: bytes, header: str, clock: VirtualClock) -> None:
        self.body, self.header, self.clock = body, header, clock

    async def fetch(self, request: Request) -> FetchResult:
        now = self.clock.now()
        headers = tuple((name, self.header) for name in ("ETag", "Last-Modified", "Expires"))
        return Fetched(request.url, now, now, headers, plain=self.body)


def stored(body: bytes, header: str, reading: Reading) -> RobotsNews:
    """The part of a robots.txt that the store gets."""
    handed_in: list[RobotsNews] = []

    class Noted(Outbox):
        def add_robots(self, news: RobotsNews, group: str, pace: Pace) -> asyncio.Future[int]:
            handed_in.append(news)
            committed = super().add_robots(news, group, pace)
            committed.set_result(1)
            return committed

    async def main(clock: VirtualClock) -> None:
        outbox = Noted(clock, Alarm())
        gate = gate_on(Served(body, header, clock), clock, outbox, slots=1)
        gate.bench.enter("a.test", Pace())
        policy = RobotsPolicy(RobotsSettings(reading), "fig", GroupBy.HOST)
        robots_cache = RobotsCache(policy, gate, None, clock, outbox, ReaderInProcess(), Progress(0.0))
        await robots_cache.in_force(ClaimedSite(1, SITE, None, None), "a.test")

    run_virtual(main)
    return handed_in[0]


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts(list(value.items()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)
    elif isinstance(value, msgspec.Struct):
        yield from texts(msgspec.structs.asdict(value))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from texts(asdict(value))


@given(st.one_of(st.binary(max_size=60), BODIES), VALUES, st.sampled_from(list(Reading)))
@example(b"Mobile-agent-server: /\xff/ none", "", Reading.STRICT)
@example(b"Mobile-agent-server: /\0 none", "", Reading.DRAFT1996)
@example("\ufeffMobile-agent-server: /\ud800 none".encode("utf-16-le", "surrogatepass"), "", Reading.RFC9309)
def test_stored_and_displayed_values_are_text(body: bytes, header: str, reading: Reading) -> None:
    for text in texts(stored(body, header, reading)):
        text.encode("utf-8")
        assert "\0" not in text
    rules = read(parse(body), token="fig", reading=reading, site=SITE)
    for text in texts([rules.sitemaps, rules.main_site, [rules.verdict(path).text for path in ("/", "/a", "/a.a")]]):
        assert text.isprintable()
    assert all(said.isprintable() for said in doubts_about(body).sentences())
    case = {"robots_b64": b64encode(body).decode(), "agent": "fig", "url": SITE + "/a", "reading": reading.value}
    json.dumps(check_case(case), ensure_ascii=False).encode("utf-8")
