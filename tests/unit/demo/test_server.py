"""The loopback server sends pages as described, and logs each request with its times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from yarl import URL

from crawler.demo.pages import Asked, Fault, Handler, Page, first, plain, redirect, unavailable
from tests.command import until
from tests.judge import most_at_once
from tests.web import LoopbackWeb

PATIENCE_S = 300  # for what takes milliseconds on a machine that is not busy


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(timeout=timeout, headers={"User-Agent": "TestBot/1.0"}) as session:
        session._retry_connection = False  # or it asks twice where a connection breaks
        yield session


class Visitor:
    """Asks a loopback web by host name."""

    def __init__(self, web: LoopbackWeb, client: aiohttp.ClientSession) -> None:
        self.web, self.client = web, client

    async def get(self, host: str, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        url = URL(f"http://127.0.0.1:{self.web.port}{path}", encoded=True)
        sent = {"Host": f"{host}:{self.web.port}", **headers}
        async with self.client.get(url, headers=sent, allow_redirects=False) as answer:
            return answer.status, await answer.read(), dict(answer.headers)


@pytest.fixture
def visitor(loopback: LoopbackWeb, client: aiohttp.ClientSession) -> Visitor:
    return Visitor(loopback, client)


def hanging(asked: list[Asked]) -> Handler:
    """A page that hangs, and notes each request for it."""

    def answer(request: Asked) -> Page:
        asked.append(request)
        return Page(fault=Fault.HANG)

    return answer


async def test_sites_are_told_apart_by_host(visitor: Visitor) -> None:
    sites = {"a.test": {"/": Page("one")}, "b.test": {"/": Page(b"t\xe9", content_type="text/html")}}
    visitor.web.sites.update(sites)
    assert (await visitor.get("a.test", "/"))[:2] == (200, b"one")
    status, body, headers = await visitor.get("B.TEST", "/")
    assert (status, body, headers["Content-Type"]) == (200, b"t\xe9", "text/html")
    assert [(await visitor.get(host, "/x"))[0] for host in ("a.test", "nobody.test")] == [404, 404]


async def test_a_path_is_found_with_its_query_then_without_then_by_star(visitor: Visitor) -> None:
    visitor.web.sites["a.test"] = {"/p?n=1": Page("one"), "/p": Page("any"), "*": lambda asked: Page(asked.path)}
    bodies = [(await visitor.get("a.test", path))[1] for path in ("/p?n=1", "/p?n=2", "/q/%7e")]
    assert bodies == [b"one", b"any", b"/q/%7e"]


async def test_redirects_and_headers(visitor: Visitor) -> None:
    visitor.web.sites["a.test"] = {"/": redirect("http://b.test/x", 301)}
    status, _, headers = await visitor.get("a.test", "/")
    assert (status, headers["Location"]) == (301, "http://b.test/x")


async def test_validators_that_still_hold_give_a_304(visitor: Visitor) -> None:
    headers = (("ETag", '"1"'), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"))
    visitor.web.sites["a.test"] = {"/": Page("one", headers=headers)}
    asked = [{"If-None-Match": '"1"'}, {"If-None-Match": '"2"'}, {"If-Modified-Since": headers[1][1]}]
    assert [(await visitor.get("a.test", "/", **sent))[0] for sent in asked] == [304, 200, 304]


async def test_a_site_that_recovers_says_how_long_it_needs(visitor: Visitor) -> None:
    visitor.web.sites["a.test"] = {"/robots.txt": first(2, unavailable(7), plain("User-agent: *\n"))}
    answers = [await visitor.get("a.test", "/robots.txt") for _ in range(3)]
    assert [status for status, _, _ in answers] == [503, 503, 200]
    assert answers[0][2]["Retry-After"] == "7"
    assert [hit.retry_after_s for hit in visitor.web.robots_hits("a.test")] == [7, 7, None]


async def test_connections_break_as_described(visitor: Visitor) -> None:
    visitor.web.sites["a.test"] = {
        "/reset": Page(fault=Fault.RESET),
        "/cut": Page("x" * 100, fault=Fault.CUT),
        "/raw": Page(b"SMTP ready\r\n\r\n", fault=Fault.RAW),
    }
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await visitor.get("a.test", "/reset")
    with pytest.raises(aiohttp.ClientPayloadError):
        await visitor.get("a.test", "/cut")
    with pytest.raises(aiohttp.ClientResponseError):
        await visitor.get("a.test", "/raw")
    assert [(hit.path, hit.status) for hit in visitor.web.log] == [("/reset", 0), ("/cut", 0), ("/raw", 200)]


async def test_a_hanging_page_is_logged_when_the_client_leaves(visitor: Visitor) -> None:
    asked: list[Asked] = []
    visitor.web.sites["a.test"] = {"/": hanging(asked)}
    begun = time.monotonic()
    get = asyncio.create_task(visitor.get("a.test", "/"))
    await asyncio.to_thread(until, lambda: bool(asked), "the request")
    left_at = time.monotonic()
    get.cancel()
    await asyncio.to_thread(until, lambda: bool(visitor.web.log), "its end")
    (hit,) = visitor.web.log
    assert (hit.path, hit.status) == ("/", 0)
    assert begun <= hit.started_at <= left_at <= hit.finished_at <= time.monotonic()


async def test_the_log_never_shows_a_shorter_pause_or_a_longer_answer_than_the_client_saw(visitor: Visitor) -> None:
    visitor.web.sites["a.test"] = {"/": Page("x" * 300_000, delay_s=0.05)}
    seen = []
    for _ in range(3):
        begun = time.monotonic()
        await visitor.get("a.test", "/")
        seen.append((begun, time.monotonic()))
    for (begun, ended), hit in zip(seen, visitor.web.hits("a.test"), strict=True):
        assert begun <= hit.started_at <= hit.finished_at - 0.049
        assert hit.finished_at <= ended
        assert hit.user_agent == "TestBot/1.0"


async def test_overlapping_requests_are_counted(visitor: Visitor) -> None:
    asked: list[Asked] = []
    visitor.web.sites.update({host: {"/": hanging(asked)} for host in ("a.test", "b.test")})
    gets = [asyncio.create_task(visitor.get(host, "/")) for host in ("a.test", "a.test", "a.test", "b.test")]
    await asyncio.to_thread(until, lambda: len(asked) == len(gets), "all requests")
    for get in gets:
        get.cancel()
    await asyncio.to_thread(until, lambda: len(visitor.web.log) == len(gets), "their ends")
    assert most_at_once(visitor.web.log) == {"a.test": 3, "b.test": 1}
