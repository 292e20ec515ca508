"""For any robots.txt, stored and displayed values are text that any database and terminal accepts."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.model import Fetched, Reading
from crawler.robots.check import check_case
from crawler.robots.doubts import doubts_about
from crawler.robots.readings import read
from crawler.robots.response import RobotsSettings, interpret
from crawler.robots.text import parse

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
    headers = tuple((name, header) for name in ("ETag", "Last-Modified", "Expires"))
    answer = Fetched(f"{SITE}/robots.txt", 0.0, 0.0, headers, plain=body)
    copy = interpret(answer, settings=RobotsSettings(reading), previous=None, hops=0, seen=(), now=0.0)
    rules = read(parse(body), token="fig", reading=reading, site=SITE)
    for text in texts([copy, rules.sitemaps, rules.main_site, rules.servers.paths, rules.servers.latest_first]):
        text.encode("utf-8")
        assert "\0" not in text
    for text in texts([rules.sitemaps, rules.main_site, [rules.verdict(path).text for path in ("/", "/a", "/a.a")]]):
        assert text.isprintable()
    assert all(said.isprintable() for said in doubts_about(body).sentences())
    case = {"robots_b64": b64encode(body).decode(), "agent": "fig", "url": SITE + "/a", "reading": reading.value}
    json.dumps(check_case(case), ensure_ascii=False).encode("utf-8")
