"""Status and headers to outcome, from a server that says one thing; others are in tests/e2e/test_fetch_answers.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus

import pytest

from crawler.clock import SystemClock
from crawler.fetch import client
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.fetch.decoding import ACCEPT_ENCODING
from crawler.model import Failed, Fetched, FetchResult, NotModified, Purpose, Request
from crawler.reasons import ErrorKind

SETTINGS = FetchSettings("TestBot/1 (+https://example.org/)", "crawl@example.org", allow_private=True)
HTML = {"Content-Type": "text/html"}


class SettableClock(SystemClock):
    """A clock that shows the time that the test has set."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time

    def now(self) -> float:
        return self.time


@asynccontextmanager
async def server(
    status: int = 200, body: bytes = b"", headers: dict[str, str] | None = None, asked: list[bytes] | None = None
) -> AsyncIterator[str]:
    """A server that gives each request the same answer, and adds it to ``asked``; the URL of one of its pages."""
    head = {"Content-Length": f"{len(body)}", "Connection": "close"} | (headers or {})
    lines = [f"HTTP/1.1 {status} Try <b>later</b>", *(f"{name}: {value}" for name, value in head.items())]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if length := request.partition(b"Content-Length: ")[2].partition(b"\r")[0]:
            request += await reader.readexactly(int(length))
        if asked is not None:
            asked.append(request)
        bodiless = status == HTTPStatus.NOT_MODIFIED
        writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if bodiless else body))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/page"


async def fetch(request: Request, settings: FetchSettings = SETTINGS) -> FetchResult:
    async with HttpFetcher(settings, SystemClock()) as fetcher:
        return await fetcher.fetch(request)


async def test_a_request_as_it_is_sent() -> None:
    asked: list[bytes] = []
    async with server(body=b"<p>hello", headers=HTML, asked=asked) as url:
        host = url.removeprefix("http://").partition("/")[0]
        await fetch(Request(f"{url}?q=%20", Purpose.PAGE, 1000, etag='"a"'))
        await fetch(Request(url, Purpose.ROBOTS, 1000, any_type=True, form=(("a", "b c"),)))
    ours = (
        f"Host: {host}\r\nUser-Agent: TestBot/1 (+https://example.org/)\r\nAccept: %s\r\n"
        f"Accept-Encoding: {ACCEPT_ENCODING}\r\nFrom: crawl@example.org\r\n"
    )
    assert asked[0].decode() == (
        "GET /page?q=%20 HTTP/1.1\r\n" + ours % "text/html, application/xhtml+xml" + 'If-None-Match: "a"\r\n\r\n'
    )
    assert asked[1].decode() == (
        "POST /page HTTP/1.1\r\n"
        + ours % "*/*"
        + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5\r\n\r\na=b+c"
    )


@pytest.mark.parametrize("value", ["a\r\nX-B: c", "a\nb", "a\0"])
async def test_no_header_holds_a_line_break(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        await fetch(Request("http://a.example/", Purpose.PAGE, 1000), replace(SETTINGS, headers=(("X-A", value),)))


async def test_a_target_with_a_blank_is_not_sent() -> None:
    asked: list[bytes] = []
    async with server(asked=asked) as url:
        result = await fetch(Request(f"{url} HTTP/1.1", Purpose.PAGE, 1000))
    assert isinstance(result, Failed)
    assert (result.kind, asked) == (ErrorKind.FAULT, [])


async def test_decoding_takes_no_time_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SettableClock(1_000.0)

    class SlowDecoder:
        def feed(self, data: bytes, room: int) -> bytes:
            clock.time = 1_005.0
            return data[:room]

        def complete(self) -> bool:
            return True

        def is_one_gzip(self) -> bool:
            return False

    monkeypatch.setattr(client, "decoder_of", lambda _: SlowDecoder())
    async with (
        server(body=b"<p>hello", headers=HTML | {"Content-Encoding": "br"}) as url,
        HttpFetcher(SETTINGS, clock) as fetcher,
    ):
        result = await fetcher.fetch(Request(url, Purpose.PAGE, 1000))
    assert isinstance(result, Fetched)
    assert (result.body, result.started_at, result.finished_at) == (b"<p>hello", 1_000.0, 1_000.0)


async def test_304_counts_only_where_a_condition_was_sent() -> None:
    async with server(304) as url:
        assert isinstance(await fetch(Request(url, Purpose.PAGE, 1000, etag='"a"')), NotModified)
        assert isinstance(await fetch(Request(url, Purpose.PAGE, 1000, last_modified="yesterday")), NotModified)
        result = await fetch(Request(url, Purpose.PAGE, 1000))
    assert isinstance(result, Failed)
    assert (result.kind, result.status, result.detail) == (ErrorKind.HTTP, 304, "304 Not Modified")


async def test_a_status_nobody_knows() -> None:
    async with server(799) as url:
        result = await fetch(Request(url, Purpose.PAGE, 1000))
    assert isinstance(result, Failed)
    assert result.detail == "799, which is not a status of HTTP"


async def test_unwanted_types() -> None:
    async with server(body=b"\x89PNG", headers={"Content-Type": "image/png"}) as url:
        result = await fetch(Request(url, Purpose.PAGE, 1000))
        robots = await fetch(Request(url, Purpose.ROBOTS, 1000, any_type=True))
    assert isinstance(result, Failed)
    assert (result.kind, result.status) == (ErrorKind.UNWANTED_TYPE, 200)
    assert result.error.sentence == "content type image/png is not wanted"
    assert isinstance(robots, Fetched)
    assert (robots.content_type, robots.body) == ("image/png", b"\x89PNG")


async def test_the_type_for_unknown_files_says_nothing_of_a_path_of_html() -> None:
    """For `/operator/.html`, nginx sends it: that name has no ending."""
    async with server(body=b"<p>", headers={"Content-Type": "application/octet-stream"}) as url:
        paths = ("a/.html?b", "a.zip?c=.html")
        page, archive = [await fetch(Request(url + path, Purpose.PAGE, 1000)) for path in paths]
    assert isinstance(page, Fetched)
    assert (page.content_type, page.body) == ("", b"<p>")
    assert isinstance(archive, Failed)
    assert archive.kind is ErrorKind.UNWANTED_TYPE


@pytest.mark.parametrize("port", [22, 25, 6379, 27017])
async def test_no_request_is_sent_to_the_port_of_another_service(port: int) -> None:
    url = f"http://a.example:{port}/robots.txt"
    result = await fetch(Request(url, Purpose.ROBOTS, 1000))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (ErrorKind.ADDRESS, f"port {port} is that of another service than the web")
