"""The fetcher against servers that answer well: what is sent, what each answer becomes, and the limits on it."""

import asyncio
import errno
import gzip
import itertools
import os
import random
import socket
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import brotli
import msgspec
import pytest

from crawler.clock import SystemClock
from crawler.engine.sitemaps import request_for
from crawler.errors import UsageError
from crawler.fetch import decoding
from crawler.fetch.client import LARGE_OCTETS, FetchSettings, HttpFetcher
from crawler.fetch.connection import Connection, Transfer
from crawler.model import Failed, Fetched, FetchResult, NotModified, Purpose, Redirected, Request
from crawler.reasons import ErrorKind
from tests.records import replace

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SETTINGS = FetchSettings(
    "TestBot/1 (+https://example.org/)",
    "crawl@example.org",
    resolve=(("*.test", "127.0.0.1"),),
    allow_private=True,
)
PAGE = b"<title>words</title>" + b"<p>some words " * 500
Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers every request on every connection by ``answer(head, writer)``; keeps the heads it got."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.heads: list[bytes] = []
        self.connections = 0
        self.origin = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                await self.answer(self.heads[-1], writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(answer: bytes | Answer) -> AsyncIterator[Server]:
    async def always(_: bytes, writer: asyncio.StreamWriter) -> None:
        assert isinstance(answer, bytes)
        writer.write(answer)

    server = Server(always if isinstance(answer, bytes) else answer)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.origin = f"http://a.test:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()


def answer(body: bytes = PAGE, *headers: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


async def fetch_from(what: bytes | Answer, settings: FetchSettings = SETTINGS, **wanted: Any) -> FetchResult:
    async with serving(what) as server, HttpFetcher(settings, SystemClock()) as fetcher:
        wanted = {"purpose": Purpose.PAGE, "max_bytes": 100_000, **wanted}
        return await fetcher.fetch(Request(server.origin + "/", **wanted))


def failure(result: FetchResult) -> tuple[ErrorKind, str]:
    assert isinstance(result, Failed), result
    return result.kind, result.error.sentence


async def test_a_page_in_full() -> None:
    octets = answer(PAGE, "x-UPPER: 1", "Set-Cookie: a=b", "x-upper: \xfc", kind='text/html;charset="l1"')
    result = await fetch_from(octets)
    assert isinstance(result, Fetched)
    assert (result.status, result.body, result.content_type, result.charset) == (200, PAGE, "text/html", "l1")
    assert result.wire_bytes == len(octets)
    assert result.address == "127.0.0.1"
    assert result.started_at <= result.finished_at
    assert [name for name, _ in result.headers] == [
        "Content-Type",
        "Content-Length",
        "x-UPPER",
        "Set-Cookie",
        "x-upper",
    ]
    assert result.headers[-1] == ("x-upper", "\xfc")


async def test_what_is_sent() -> None:
    path = "/%7Ea/%2f/%41/../b;c?q=%zz&r=a+b&s=%C3%A9"
    async with (
        serving(answer(PAGE, "Set-Cookie: a=b; Path=/")) as server,
        HttpFetcher(SETTINGS, SystemClock()) as fetcher,
    ):
        url = server.origin + path
        await fetcher.fetch(Request(url, Purpose.PAGE, 100_000))
        await fetcher.fetch(Request(url, Purpose.ROBOTS, 100_000, any_type=True, etag='W/"x"', last_modified="Sat"))
    first, second = (head.decode().split("\r\n")[:-2] for head in server.heads)
    assert first[0] == f"GET {path} HTTP/1.1"
    always = ["User-Agent: TestBot/1 (+https://example.org/)", "From: crawl@example.org"]
    always += ["Accept-Encoding: gzip, deflate, br, zstd", f"Host: {server.origin.removeprefix('http://')}"]
    assert sorted(first[1:]) == sorted([*always, "Accept: text/html, application/xhtml+xml"])
    assert sorted(second[1:]) == sorted([*always, "Accept: */*", 'If-None-Match: W/"x"', "If-Modified-Since: Sat"])


@pytest.mark.parametrize(
    ("etag", "last_modified", "sent"),
    [
        ('"a\x7fb"', None, []),
        ('"a\x0bb"', "Sat", ["If-Modified-Since: Sat"]),
        ('"a"', "Sat\x1b", ['If-None-Match: "a"']),
        ('"a\r\nX: y"', "", []),
        ('"\xfc"', None, []),
        ('"' + 8000 * "x" + '"', None, []),
    ],
)
async def test_only_validators_that_go_back_as_they_came_are_sent(
    etag: str, last_modified: str | None, sent: list[str]
) -> None:
    async with serving(answer(PAGE)) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        request = Request(server.origin + "/", Purpose.PAGE, 100_000, etag=etag, last_modified=last_modified)
        assert isinstance(await fetcher.fetch(request), Fetched)
    lines = server.heads[0].decode("latin-1").split("\r\n")
    assert [line for line in lines if line.startswith("If-")] == sent


async def test_a_304_is_one_only_where_something_was_compared() -> None:
    result = await fetch_from(b"HTTP/1.1 304 Not Modified\r\n\r\n", etag='"a\x7fb"')
    assert isinstance(result, Failed)
    assert result.status == 304


async def test_the_connection_is_kept_between_requests() -> None:
    async with serving(answer()) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        for _ in range(3):
            assert isinstance(await fetcher.fetch(Request(server.origin + "/", Purpose.PAGE, 100_000)), Fetched)
    assert (server.connections, len(server.heads)) == (1, 3)


@pytest.mark.parametrize("kept", [0, 1])
async def test_a_request_that_may_not_be_sent_when_its_connection_stands_is_not_written(kept: int) -> None:
    answers = iter([True] * kept + [False, True])
    async with serving(answer()) as server, HttpFetcher(SETTINGS, SystemClock(), lambda: next(answers)) as fetcher:
        request = Request(server.origin + "/", Purpose.PAGE, 100_000)
        for _ in range(kept):
            await fetcher.fetch(request)
        with pytest.raises(asyncio.CancelledError):
            await fetcher.fetch(request)
        assert len(server.heads) == kept
        assert isinstance(await fetcher.fetch(request), Fetched)
    assert (server.connections, len(server.heads)) == (2, kept + 1)


async def test_no_file_left_closes_idle_connections_and_never_fails_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def new_socket(fetcher: HttpFetcher, address: Any) -> socket.socket:
        if fetcher.connections.count:
            raise OSError(errno.EMFILE, "Too many open files")
        return make(fetcher, address)

    make = HttpFetcher._new_socket
    monkeypatch.setattr(HttpFetcher, "_new_socket", new_socket)
    async with serving(answer()) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        port = server.origin.rpartition(":")[2]
        for number in range(3):
            url = f"http://site-{number}.test:{port}/"
            assert isinstance(await fetcher.fetch(Request(url, Purpose.PAGE, 100_000)), Fetched)
    assert server.connections == 3


async def test_a_request_lost_to_a_closing_connection_is_told_from_others_and_sent_once() -> None:
    async def hang_up(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b" /bye" in head:
            writer.close()
        else:
            writer.write(b"HTTP/1.1 200" if b" /begins" in head else answer())
            if b" /begins" in head:
                writer.close()

    lost = (ErrorKind.CLOSING, "the server was closing the connection, which had been idle")
    silent = (ErrorKind.CONNECT, "the server closed the connection without an answer")
    form = (("a", "b"),)
    async with serving(hang_up) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:

        async def send(path: str, **how: Any) -> FetchResult:
            return await fetcher.fetch(Request(server.origin + path, Purpose.PAGE, 100_000, **how))

        assert isinstance(await send("/"), Fetched)
        assert failure(await send("/bye")) == lost
        assert failure(await send("/bye")) == silent, "on a new connection"
        assert isinstance(await send("/"), Fetched)
        assert failure(await send("/begins"))[0] is not ErrorKind.CLOSING, "an octet of the answer arrived"
        assert isinstance(await send("/"), Fetched)
        assert failure(await send("/bye", form=form)) == silent, "a POST may have had an effect"
        assert isinstance(await send("/"), Fetched)
        assert failure(await send("/bye", fresh=True)) == silent
        assert len(server.heads) == 9


async def test_no_connection_is_kept_to_a_server_that_drops_the_second_request_of_each() -> None:
    async def drop_second(head: bytes, writer: asyncio.StreamWriter) -> None:
        if writer in answered:
            writer.close()
        else:
            answered.append(writer)
            writer.write(answer())

    answered: list[asyncio.StreamWriter] = []
    async with serving(drop_second) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        kinds = []
        for _ in range(6):
            result = await fetcher.fetch(Request(f"{server.origin}/", Purpose.PAGE, 100_000))
            kinds.append(result.kind if isinstance(result, Failed) else None)
        assert kinds == [None, ErrorKind.CLOSING, None, ErrorKind.CLOSING, None, None]
        assert len(server.heads) == 6


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_reported_not_followed(status: int) -> None:
    result = await fetch_from(answer(b"moved", "Location: //b.test/x y?z#f", status=f"{status} Go"))
    assert isinstance(result, Redirected)
    assert (result.status, result.location) == (status, "//b.test/x y?z#f")


async def test_a_location_does_not_keep_a_password() -> None:
    result = await fetch_from(answer(b"moved", "Location: //me:secret@b.test/x@y", status="302 Found"))
    assert isinstance(result, Redirected)
    assert result.location == "//***@b.test/x@y"


@pytest.mark.parametrize(
    ("raw", "location"), [(b"/b\xfccher", "/b%FCcher"), ("/bücher/%20".encode(), "/b%C3%BCcher/%20"), (b"/ok", "/ok")]
)
async def test_octets_above_ascii_in_a_location_are_escaped(raw: bytes, location: str) -> None:
    result = await fetch_from(b"HTTP/1.1 302 Found\r\nlocation: " + raw + b"\r\nContent-Length: 0\r\n\r\n")
    assert isinstance(result, Redirected)
    assert result.location == location
    assert all(text.encode("utf-8") for header in result.headers for text in header)


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        ("302 Found", "302 Found, without a Location"),
        ("300 Multiple Choices", "300 Multiple Choices"),
        ("304 Not Modified", "304 Not Modified"),
        ("404 Gone Fishing", "404 Not Found"),
        ("503 Service Unavailable", "503 Service Unavailable"),
    ],
)
async def test_error_statuses(status: str, detail: str) -> None:
    result = await fetch_from(answer(b"", "Retry-After: 7", status=status))
    assert failure(result) == (ErrorKind.HTTP, detail)
    assert isinstance(result, Failed)
    assert result.status == int(status[:3])
    assert ("Retry-After", "7") in result.headers


async def test_not_modified() -> None:
    result = await fetch_from(b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n', etag='"x"')
    assert isinstance(result, NotModified)
    assert result.headers == (("ETag", '"x"'),)


async def endless(_: bytes, writer: asyncio.StreamWriter, head: str = "200 OK\r\nContent-Type: text/html") -> None:
    writer.write(f"HTTP/1.1 {head}\r\n\r\n".encode())
    while not writer.is_closing():
        writer.write(b"<p>more" * 1000)
        await writer.drain()


async def test_bodies_of_errors_and_unwanted_types_are_not_read() -> None:
    async def teapot(head: bytes, writer: asyncio.StreamWriter) -> None:
        await endless(head, writer, "418 I'm a Teapot\r\nContent-Type: text/html")

    async def video(head: bytes, writer: asyncio.StreamWriter) -> None:
        await endless(head, writer, "200 OK\r\nContent-Type: Video/MP4; x=y")

    assert failure(await fetch_from(teapot))[0] is ErrorKind.HTTP
    result = await fetch_from(video)
    assert failure(result) == (ErrorKind.UNWANTED_TYPE, "content type video/mp4 is not wanted")
    assert isinstance(result, Failed)
    assert result.status == 200


@pytest.mark.parametrize("header", ["X-None: 1", "Content-Type:", "Content-Type: ;charset=utf-8", "Content-Type: html"])
async def test_a_missing_content_type_counts_as_html(header: str) -> None:
    result = await fetch_from(f"HTTP/1.1 200 OK\r\n{header}\r\nContent-Length: 2\r\n\r\nok".encode())
    assert isinstance(result, Fetched)
    assert (result.content_type, result.body) == ("", b"ok")


async def test_an_answer_without_a_body() -> None:
    empty = b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"
    assert failure(await fetch_from(empty)) == (ErrorKind.HTTP, "204 No Content, so there is no page")
    robots = await fetch_from(empty, purpose=Purpose.ROBOTS, any_type=True)
    assert isinstance(robots, Fetched), "docs/protocols.md: a 2xx is read, and an empty file is no instructions"
    assert (robots.status, robots.body) == (204, b"")


@pytest.mark.parametrize("purpose", [Purpose.PAGE, Purpose.SITEMAP])
async def test_a_part_that_nobody_asked_for_is_no_page(purpose: Purpose) -> None:
    part = answer(PAGE[:10], "Content-Range: bytes 0-9/900", status="206 Partial Content")
    said = "206 Partial Content, though no range was requested"
    assert failure(await fetch_from(part, purpose=purpose)) == (ErrorKind.HTTP, said)


async def test_a_body_that_the_connections_end_delimits() -> None:
    async def old(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE)
        writer.close()

    result = await fetch_from(old)
    assert isinstance(result, Fetched)
    assert result.body == PAGE


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstd.compress),
        ("GZip, identity", gzip.compress),
    ],
)
async def test_codings(coding: str, encode: Callable[[bytes], bytes]) -> None:
    octets = answer(encode(PAGE), f"Content-Encoding: {coding}")
    result = await fetch_from(octets)
    assert isinstance(result, Fetched)
    assert (result.body, result.wire_bytes) == (PAGE, len(octets))


@pytest.mark.parametrize(
    ("data", "coding", "kind", "detail"),
    [
        (
            gzip.compress(gzip.compress(PAGE, mtime=0), mtime=0),
            "gzip, gzip",
            ErrorKind.ENCODING,
            "the body is encoded 2 times over",
        ),
        (PAGE, "compress", ErrorKind.ENCODING, "the body's encoding 'compress' was not offered"),
        (PAGE, "gzip", ErrorKind.ENCODING, "the body is not valid gzip"),
        (gzip.compress(PAGE, mtime=0)[:-20], "gzip", ErrorKind.TRUNCATED, "the encoded data of the body ends early"),
    ],
)
async def test_broken_codings(data: bytes, coding: str, kind: ErrorKind, detail: str) -> None:
    assert failure(await fetch_from(answer(data, f"Content-Encoding: {coding}"))) == (kind, detail)


async def test_a_body_in_gzip_can_be_kept_as_received() -> None:
    for coded in (gzip.compress(PAGE), b"no gzip"):
        result = await fetch_from(answer(coded, "Content-Encoding: x-gzip"), keep_gzip=True)
        assert isinstance(result, Fetched)
        assert (result.plain, result.gzipped, result.unchecked) == (None, coded, 100_000)
    empty = await fetch_from(answer(b"", "Content-Encoding: gzip"), keep_gzip=True)
    assert isinstance(empty, Fetched)
    assert (empty.plain, empty.unchecked) == (b"", None)
    long = await fetch_from(answer(gzip.compress(PAGE), "Content-Encoding: gzip"), keep_gzip=True, max_bytes=10)
    assert failure(long)[0] is ErrorKind.TOO_LARGE
    deflated = await fetch_from(answer(zlib.compress(PAGE), "Content-Encoding: deflate"), keep_gzip=True)
    assert isinstance(deflated, Fetched)
    assert (deflated.plain, deflated.unchecked) == (PAGE, None)


async def test_a_sitemap_is_neither_decoded_nor_accepted_in_another_coding() -> None:
    wanted = msgspec.structs.asdict(request_for("http://a.test/")) | {"max_bytes": 100_000}
    del wanted["url"]
    bomb = gzip.compress(bytes(1_000_000))
    result = await fetch_from(answer(bomb, "Content-Encoding: gzip"), **wanted)
    assert isinstance(result, Fetched)
    assert (result.plain, result.gzipped) == (None, bomb)
    brotli_coded = await fetch_from(answer(brotli.compress(PAGE), "Content-Encoding: br"), **wanted)
    assert failure(brotli_coded) == (ErrorKind.ENCODING, "the body's encoding 'br' was not offered")


async def test_an_announced_length_beyond_the_limit_fails_at_once() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"  # and then the server waits for ever
    detail = "too large: the body is announced with 5,000 bytes; the limit is 100 bytes"
    assert failure(await fetch_from(head, max_bytes=100)) == (ErrorKind.TOO_LARGE, detail)


@pytest.mark.parametrize("length", [99, 100, 101])
async def test_the_limit_is_exact(length: int) -> None:
    for encode, header in ((bytes, "X-Plain: 1"), (gzip.compress, "Content-Encoding: gzip")):
        result = await fetch_from(answer(encode(bytes(length)), header), max_bytes=100, truncate=True)
        assert isinstance(result, Fetched)
        assert (result.body, result.truncated) == (bytes(min(length, 100)), length > 100)


async def test_an_unknown_transfer_coding_is_refused() -> None:
    coded = b"HTTP/1.0 200 OK\r\nTransfer-Encoding: evil\r\n\r\n<p>coded"
    assert failure(await fetch_from(coded)) == (ErrorKind.ENCODING, "the body's transfer coding 'evil' was not offered")


async def test_a_body_is_decoded_when_all_of_it_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder holds a window of many megabytes, so it must not wait for a slow server."""
    coded = gzip.compress(PAGE)
    whole = answer(coded, "Content-Encoding: gzip")
    arrived = asyncio.Event()
    fed: list[bytes] = []
    fed_early: list[bytes] = []
    feed, data_received, received = decoding._Members.feed, Connection.data_received, 0

    def count(self: Connection, data: bytes) -> None:
        nonlocal received
        data_received(self, data)
        received += len(data)
        if received == len(whole) - 10:
            arrived.set()

    def record(self: decoding._Members, data: bytes, room: int) -> bytes:
        fed.append(data)
        return feed(self, data, room)

    async def in_halves(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(whole[:-10])
        await arrived.wait()
        fed_early.extend(fed)
        writer.write(whole[-10:])

    monkeypatch.setattr(decoding._Members, "feed", record)
    monkeypatch.setattr(Connection, "data_received", count)
    result = await fetch_from(in_halves)
    assert isinstance(result, Fetched)
    assert result.body == PAGE
    assert (fed_early, b"".join(fed)) == ([], coded)


async def test_an_endless_body_is_cut_or_fails() -> None:
    result = await fetch_from(endless, truncate=True)
    assert isinstance(result, Fetched)
    assert (len(result.body), result.truncated) == (100_000, True)
    detail = "too large: the body is longer; the limit is 100,000 bytes"
    assert failure(await fetch_from(endless)) == (ErrorKind.TOO_LARGE, detail)


async def test_a_bomb_is_cut_or_fails() -> None:
    bomb = answer(gzip.compress(bytes(20_000_000)), "Content-Encoding: gzip")
    result = await fetch_from(bomb, truncate=True)
    assert isinstance(result, Fetched)
    assert (result.body, result.truncated) == (bytes(100_000), True)
    assert failure(await fetch_from(bomb))[0] is ErrorKind.TOO_LARGE


async def test_coded_data_that_yield_nothing_are_cut_too() -> None:
    nothing = gzip.compress(b"", mtime=0)[:10] + b"\x00\x00\x00\xff\xff" * 50_000  # empty stored blocks, without an end
    result = await fetch_from(answer(nothing, "Content-Encoding: gzip"), truncate=True)
    assert isinstance(result, Fetched)
    assert (result.body, result.truncated) == (b"", True)


class Memory:
    """A memory for large bodies that is full until ``is_free`` is set. ``held`` are the octets of each group."""

    most_waiting = 1

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.is_asked, self.is_free = asyncio.Event(), asyncio.Event()

    async def hold(self, request: Request, octets: int) -> None:
        self.held[request.group] = octets
        self.is_asked.set()
        await self.is_free.wait()

    def shrink(self, group: str, octets: int) -> None:
        if group in self.held:
            self.held[group] = octets

    def release(self, group: str) -> None:
        self.held.pop(group, None)


_LARGE = PAGE + random.Random(1).randbytes(6 * LARGE_OCTETS)


@pytest.mark.parametrize(
    ("what", "expected", "held"),
    [
        pytest.param(answer(_LARGE), len(_LARGE), len(_LARGE), id="plain"),
        pytest.param(answer(gzip.compress(_LARGE), "Content-Encoding: gzip"), 10 << 20, len(_LARGE), id="coded"),
        pytest.param(
            answer(gzip.compress(bytes(1 << 20)), "Content-Encoding: gzip"), 10 << 20, 1 << 20, id="small as it is sent"
        ),
    ],
)
async def test_a_large_body_waits_for_memory_and_keeps_it_until_it_was_read(
    what: bytes, expected: int, held: int
) -> None:
    memory = Memory()
    async with serving(what) as server, HttpFetcher(SETTINGS, SystemClock(), memory=memory) as fetcher:
        request = Request(server.origin + "/", Purpose.PAGE, max_bytes=10 << 20, group="a.test")
        fetching = asyncio.create_task(fetcher.fetch(request))
        await memory.is_asked.wait()
        assert not fetching.done()
        assert memory.held["a.test"] >= expected
        memory.is_free.set()
        assert isinstance(await fetching, Fetched)
        assert memory.held["a.test"] == pytest.approx(held, rel=0.01)
        assert isinstance(await fetcher.fetch(replace(request, purpose=Purpose.ROBOTS)), Fetched)
        assert not memory.held, "a robots.txt is parsed when it is returned"


async def test_a_small_body_needs_no_memory() -> None:
    memory = Memory()
    async with serving(answer()) as server, HttpFetcher(SETTINGS, SystemClock(), memory=memory) as fetcher:
        assert isinstance(await fetcher.fetch(Request(server.origin + "/", Purpose.PAGE, 10 << 20)), Fetched)
    assert not memory.is_asked.is_set()


# --- the address of a request -----------------------------------------------------------------


async def test_a_request_goes_to_its_address_without_a_look_up() -> None:
    async with serving(answer(PAGE)) as server, HttpFetcher(replace(SETTINGS, resolve=()), SystemClock()) as fetcher:
        url = server.origin.replace("a.test", "nowhere.invalid") + "/"
        assert isinstance(await fetcher.fetch(Request(url, Purpose.PAGE, 100_000, address="127.0.0.1")), Fetched)
    assert len(server.heads) == 1


async def test_a_request_without_a_connection_is_unsent() -> None:
    async with serving(answer(PAGE)) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        result = await fetcher.fetch(Request(server.origin + "/", Purpose.PAGE, 100_000, address="127.0.0.2"))
    assert isinstance(result, Failed)
    assert (result.kind, result.unsent, server.heads) == (ErrorKind.CONNECT, True, [])


async def test_a_request_without_an_address_goes_to_none_that_is_known_by_now() -> None:
    """It holds no place there."""
    async with serving(answer(PAGE)) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        result = await fetcher.fetch(Request(server.origin + "/", Purpose.PAGE, 100_000, address=""))
    assert isinstance(result, Failed)
    assert (result.unsent, server.heads) == (True, [])


async def test_a_request_that_a_server_breaks_off_is_sent() -> None:
    async def close(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.close()

    result = await fetch_from(close)
    assert isinstance(result, Failed)
    assert not result.unsent


async def test_a_connection_is_reused_only_for_a_request_to_its_address() -> None:
    async with serving(answer()) as server, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        request = Request(server.origin + "/", Purpose.PAGE, 100_000)
        for _ in range(2):
            assert isinstance(await fetcher.fetch(replace(request, address="127.0.0.1")), Fetched)
        assert (server.connections, len(server.heads)) == (1, 2)
        result = await fetcher.fetch(replace(request, address="127.0.0.2"))
        assert isinstance(result, Failed)
        assert result.unsent
        assert len(server.heads) == 2


@pytest.mark.parametrize("is_over", [False, True])
async def test_the_right_to_send_is_checked_when_the_connection_stands(is_over: bool) -> None:
    """Connecting may take until the time of the crawl is over: then nothing is written."""
    received = asyncio.Event()
    read = list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read.append(await reader.read(1))
        writer.close()
        received.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with HttpFetcher(SETTINGS, SystemClock(), lambda: not is_over) as fetcher:
        request = Request(f"http://a.test:{port}/", Purpose.PAGE, 1000)
        [result] = await asyncio.gather(fetcher.fetch(request), return_exceptions=True)
    await received.wait()
    server.close()
    assert read == [b"" if is_over else b"G"]
    assert isinstance(result, asyncio.CancelledError if is_over else Failed)


@pytest.mark.parametrize("number", [errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
async def test_a_system_without_a_file_is_waited_for(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def new_socket(fetcher: HttpFetcher, address: Any) -> socket.socket:
        if next(attempts) < 2:
            raise OSError(number, os.strerror(number))
        return make(fetcher, address)

    attempts, make = itertools.count(), HttpFetcher._new_socket
    monkeypatch.setattr(HttpFetcher, "_new_socket", new_socket)
    # The limit on connecting is over before the second attempt.
    settings = replace(SETTINGS, connect_timeout_s=0.05)
    async with serving(answer()) as server, HttpFetcher(settings, SystemClock()) as fetcher:
        assert isinstance(await fetcher.fetch(Request(server.origin + "/", Purpose.PAGE, 100_000)), Fetched)
    assert next(attempts) == 3


async def test_a_wait_of_the_crawler_does_not_count_against_the_server() -> None:
    loop = asyncio.get_running_loop()
    transfer = Transfer(Request("http://a.test/", Purpose.PAGE, 1), ends_at=loop.time() + 0.01)
    async with transfer.connecting():
        with transfer.own_wait():
            await asyncio.sleep(0.02)
            assert 0 < transfer.left_s(loop.time()) <= 0.01
        assert 0 < transfer.left_s(loop.time()) <= 0.01


async def test_no_file_for_any_connection_is_no_failure_of_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(fetcher: HttpFetcher, address: Any) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(HttpFetcher, "_new_socket", no_socket)
    async with HttpFetcher(replace(SETTINGS, connect_timeout_s=0.01), SystemClock()) as fetcher:
        with pytest.raises(UsageError, match="no further connection"):
            await fetcher.fetch(Request("http://a.test:8009/", Purpose.PAGE, 1000))
