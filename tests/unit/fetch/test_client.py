"""Status and headers to outcome, over a mocked web; the real one is in tests/e2e/test_fetch_answers.py."""

import pytest
from aioresponses import aioresponses

from crawler.clock import SystemClock
from crawler.fetch import client
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.model import Failed, Fetched, FetchResult, NotModified, Purpose, Redirected, Request
from crawler.reasons import ErrorKind

URL = "http://a.example/page"
SETTINGS = FetchSettings("TestBot/1 (+https://example.org/)", "crawl@example.org")


class SettableClock(SystemClock):
    """A clock that shows the time that the test has set."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time

    def now(self) -> float:
        return self.time


async def fetch(request: Request) -> FetchResult:
    async with HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        return await fetcher.fetch(request)


async def test_a_page(mocked_web: aioresponses) -> None:
    mocked_web.get(URL, body=b"<p>hello", headers={"Content-Type": 'Text/HTML ; Charset="UTF-8"', "X-A": "b"})
    result = await fetch(Request(URL, Purpose.PAGE, 1000))
    assert isinstance(result, Fetched)
    assert (result.url, result.status, result.body, result.truncated) == (URL, 200, b"<p>hello", False)
    assert (result.content_type, result.charset) == ("text/html", "UTF-8")
    assert ("X-A", "b") in result.headers
    assert result.finished_at >= result.started_at


async def test_decoding_takes_no_time_of_the_server(mocked_web: aioresponses, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SettableClock(1_000.0)

    class SlowDecoder:
        def feed(self, data: bytes, room: int) -> bytes:
            clock.time = 1_005.0
            return data[:room]

        def complete(self) -> bool:
            return True

        def is_one_gzip(self) -> bool:
            return False

    monkeypatch.setattr(client, "decoder_for", lambda *_: SlowDecoder())
    mocked_web.get(URL, body=b"<p>hello", headers={"Content-Type": "text/html", "Content-Encoding": "br"})
    async with HttpFetcher(SETTINGS, clock) as fetcher:
        result = await fetcher.fetch(Request(URL, Purpose.PAGE, 1000))
    assert isinstance(result, Fetched)
    assert (result.body, result.started_at, result.finished_at) == (b"<p>hello", 1_000.0, 1_000.0)


async def test_a_redirect(mocked_web: aioresponses) -> None:
    mocked_web.get(URL, status=308, headers={"Location": "../else?q#f"})
    result = await fetch(Request(URL, Purpose.PAGE, 1000))
    assert isinstance(result, Redirected)
    assert (result.status, result.location) == (308, "../else?q#f")


async def test_304_counts_only_where_a_condition_was_sent(mocked_web: aioresponses) -> None:
    mocked_web.get(URL, status=304, repeat=True)
    assert isinstance(await fetch(Request(URL, Purpose.PAGE, 1000, etag='"a"')), NotModified)
    assert isinstance(await fetch(Request(URL, Purpose.PAGE, 1000, last_modified="yesterday")), NotModified)
    result = await fetch(Request(URL, Purpose.PAGE, 1000))
    assert isinstance(result, Failed)
    assert (result.kind, result.status, result.detail) == (ErrorKind.HTTP, 304, "304 Not Modified")


async def test_errors_keep_their_headers(mocked_web: aioresponses) -> None:
    mocked_web.get(URL, status=503, headers={"Retry-After": "120"}, reason="Try <b>later</b>")
    result = await fetch(Request(URL, Purpose.PAGE, 1000))
    assert isinstance(result, Failed)
    assert (result.kind, result.status, result.detail) == (ErrorKind.HTTP, 503, "503 Service Unavailable")
    assert ("Retry-After", "120") in result.headers


async def test_a_status_nobody_knows(mocked_web: aioresponses) -> None:
    mocked_web.get(URL, status=799)
    result = await fetch(Request(URL, Purpose.PAGE, 1000))
    assert isinstance(result, Failed)
    assert result.detail == "799, which is not a status of HTTP"


async def test_unwanted_types(mocked_web: aioresponses) -> None:
    mocked_web.get(URL, body=b"\x89PNG", headers={"Content-Type": "image/png"}, repeat=True)
    result = await fetch(Request(URL, Purpose.PAGE, 1000))
    assert isinstance(result, Failed)
    assert (result.kind, result.status) == (ErrorKind.UNWANTED_TYPE, 200)
    assert result.error.sentence == "content type image/png is not wanted"
    robots = await fetch(Request(URL, Purpose.ROBOTS, 1000, any_type=True))
    assert isinstance(robots, Fetched)
    assert (robots.content_type, robots.body) == ("image/png", b"\x89PNG")


@pytest.mark.parametrize("port", [22, 25, 6379, 27017])
async def test_no_request_is_sent_to_the_port_of_another_service(mocked_web: aioresponses, port: int) -> None:
    url = f"http://a.example:{port}/robots.txt"
    result = await fetch(Request(url, Purpose.ROBOTS, 1000))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (ErrorKind.ADDRESS, f"port {port} is that of another service than the web")
    assert mocked_web.requests == {}
