"""The tee at the connection: every octet that goes over it, and nothing where nobody asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from crawler.clock import SystemClock
from crawler.fetch.client import FetchSettings, HttpFetcher, secret_headers
from crawler.model import Exchange, Failed, Fetched, FetchResult, Purpose, Request

SETTINGS = FetchSettings("TestBot/1", None, resolve=(("*.test", "127.0.0.1"),), allow_private=True, keep_exchanges=True)
HTML = b"Content-Type: text/html\r\n"
#: Answers that no parser's output gives back: odd reason phrases, header spelling, chunk sizes, extensions, trailers.
ODD = {
    "reason phrase": b"HTTP/1.1 200 Oll  Korrect!\r\ncOnTeNt-TyPe:   text/html  \r\nContent-Length: 2\r\n\r\nok",
    "no reason": b"HTTP/1.1 200 \r\n" + HTML + b"Content-Length: 2\r\nX: a\r\nX: b\r\n\r\nok",
    "chunks": b"HTTP/1.1 200 OK\r\n" + HTML + b"Transfer-Encoding: chunked\r\n\r\n"
    b"00002;say=hello\r\nok\r\n3\r\nabc\r\n0\r\nDigest: x\r\n\r\n",
    "until the end": b"HTTP/1.0 200 OK\r\n" + HTML + b"\r\nall of it",
    "not found": b"HTTP/1.1 404 Gone fishing\r\nContent-Length: 2\r\n\r\nno",
    "redirect": b"HTTP/1.1 301 Over there\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
}  # fmt: skip


class Server:
    """Answers each request on a connection with the next of its answers; keeps what it got."""

    def __init__(self, *answers: bytes, greeting: bytes = b"") -> None:
        self.answers = list(answers)
        self.greeting = greeting
        self.heads: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(self.greeting)
        try:
            while self.answers:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                for octet in (answer := self.answers.pop(0)):
                    writer.write(bytes([octet]))
                await writer.drain()
                if answer.startswith(b"HTTP/1.0"):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def fetching(server: Server, settings: FetchSettings = SETTINGS) -> AsyncIterator[tuple[HttpFetcher, str]]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, HttpFetcher(settings, SystemClock()) as fetcher:
        yield fetcher, f"http://a.test:{port}/"


async def fetch(server: Server) -> FetchResult:
    async with fetching(server) as (fetcher, url):
        return await fetcher.fetch(Request(url, Purpose.PAGE, max_bytes=100_000))


def kept(result: FetchResult) -> Exchange:
    assert result.exchange is not None
    return result.exchange


@pytest.mark.parametrize("name", ODD)
async def test_every_octet_is_kept(name: str) -> None:
    server = Server(ODD[name])
    exchange = kept(await fetch(server))
    assert exchange == Exchange(server.heads[0], ODD[name], "127.0.0.1", complete=True)


async def test_requests_on_one_connection_are_told_apart() -> None:
    answers = [ODD["chunks"], ODD["reason phrase"], ODD["not found"]]
    server = Server(*answers)
    async with fetching(server) as (fetcher, url):
        asked = [await fetcher.fetch(Request(f"{url}{n}", Purpose.PAGE, max_bytes=1000)) for n in range(3)]
    assert server.connections == 1
    assert [kept(result).response for result in asked] == answers
    assert [kept(result).request for result in asked] == server.heads
    assert server.heads[2].startswith(b"GET /2 HTTP/1.1\r\nHost: a.test:")


async def test_informational_answers_are_left_out() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
    exchange = kept(await fetch(Server(b"HTTP/1.1 100 Continue\r\n\r\n" + hints + ODD["chunks"])))
    assert exchange.response == ODD["chunks"]


async def test_what_comes_before_it_was_asked_for_is_kept_once() -> None:
    result = await fetch(Server(b"", greeting=ODD["reason phrase"]))
    assert isinstance(result, Fetched)
    assert result.body == b"ok"
    assert kept(result).response == ODD["reason phrase"]


async def test_a_body_cut_short_is_not_complete() -> None:
    result = await fetch(Server(b"HTTP/1.1 200 OK\r\n" + HTML + b"Content-Length: 100\r\n\r\nsome"))
    assert isinstance(result, Failed)
    assert not kept(result).complete
    assert kept(result).response.endswith(b"\r\n\r\nsome")


async def test_a_body_that_is_not_wanted_is_not_complete() -> None:
    big = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5000000\r\n\r\n" + bytes(300_000)
    assert not kept(await fetch(Server(big))).complete


async def test_no_connection_no_exchange() -> None:
    async with fetching(Server()) as (fetcher, url):
        pass
    async with HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        assert (await fetcher.fetch(Request(url, Purpose.PAGE, max_bytes=1))).exchange is None


async def test_nothing_is_kept_unasked() -> None:
    async with fetching(Server(ODD["chunks"]), replace(SETTINGS, keep_exchanges=False)) as (fetcher, url):
        assert (await fetcher.fetch(Request(url, Purpose.PAGE, max_bytes=1000))).exchange is None


KEYED = replace(SETTINGS, site_headers={"a.test": {"X-Key": "s3cret"}, "shop.example": {"X-Key": "s3cret"}})


async def test_secret_headers_are_sent_to_their_host_alone_and_not_kept() -> None:
    server = Server(*[ODD["chunks"]] * 2)
    async with fetching(server, KEYED) as (fetcher, url):
        answers = [
            await fetcher.fetch(Request(url.replace("a.test", host), Purpose.PAGE, max_bytes=1000))
            for host in ("a.test", "b.test")
        ]
    assert [b"X-Key: s3cret\r\n" in head for head in server.heads] == [True, False]
    assert answers[0].exchange is not None
    assert answers[0].exchange.request == server.heads[0].replace(b"X-Key: s3cret\r\n", b"")
    assert "s3cret" not in repr((answers, KEYED))


def test_secret_headers_go_over_tls_to_the_site_of_their_host() -> None:
    urls = ("https://shop.example/x", "http://shop.example/", "https://shop.example:8443/", "https://a.shop.example/")
    assert [bool(secret_headers(url, KEYED)) for url in urls] == [True, False, False, False]
