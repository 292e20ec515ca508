"""The HTTP listener: an error is one line in the log, whoever made it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from crawler.cli.http_listener import BrowserGuard, listening
from crawler.errors import StoreError

SMUGGLED = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 24\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
HONEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def _breaks(request: web.Request) -> web.Response:
    raise RuntimeError("a bug\nof two lines")


async def _status(octets: bytes) -> int:
    """The status that a server answers to these octets."""
    app = web.Application()
    app.router.add_route("*", "/", _breaks)
    async with listening(app, "127.0.0.1", 0, grace_s=1.0) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(octets)
        line = await reader.readline()
        writer.close()
    return int(line.split()[1])


@pytest.mark.parametrize(
    ("octets", "status", "level", "says"),
    [
        (SMUGGLED, 400, logging.DEBUG, "a malformed request: "),
        (HONEST, 500, logging.ERROR, "GET / failed: a bug: RuntimeError: a bug of two lines"),
    ],
)
async def test_an_error_is_one_log_record_without_a_traceback(
    octets: bytes, status: int, level: int, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert await _status(octets) == status
    (record,) = [record for record in caplog.records if record.name == "crawler.http" or record.exc_info]
    assert (record.name, record.levelno, record.exc_info) == ("crawler.http", level, None)
    assert says in record.getMessage()
    assert "\n" not in record.getMessage()


async def _answer(handler: Callable[[web.Request], Awaitable[web.StreamResponse]], octets: bytes = HONEST) -> str:
    """All that a server with this handler answers."""
    app = web.Application()
    app.router.add_route("*", "/", handler)
    async with listening(app, "127.0.0.1", 0, grace_s=1.0) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(octets)
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b"reset"
        writer.close()
    return answer.decode()


async def test_the_client_is_told_of_a_bug_in_plain_words() -> None:
    answer = await _answer(_breaks)
    assert answer.startswith("HTTP/1.1 500 ")
    assert answer.endswith("500: a bug in this program kept it from answering. The log of the program names it; "
                           "please report it.\n")  # fmt: skip
    assert "RuntimeError" not in answer


async def test_a_store_that_fails_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(request: web.Request) -> web.Response:
        raise StoreError("the disk is full")

    assert "503: the database of this program failed." in await _answer(fails)
    assert [record.getMessage() for record in caplog.records] == ["GET / failed: the disk is full"]


async def test_an_answer_that_has_begun_is_broken_off(caplog: pytest.LogCaptureFixture) -> None:
    async def begins(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = 100
        await response.prepare(request)
        raise RuntimeError("a bug")

    assert "500" not in await _answer(begins)
    (record,) = caplog.records
    assert record.getMessage().startswith("GET / failed: a bug: RuntimeError")


async def test_a_malformed_body_is_the_fault_of_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def reads(request: web.Request) -> web.Response:
        raise web.RequestPayloadError("a chunk without a size")  # as the library does when the body is read

    answer = await _answer(reads)
    assert answer.startswith("HTTP/1.1 400 ")
    assert "malformed" in answer
    assert not caplog.records


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: 127.0.0.1:8788", 200),
        ("Host: [::1]:8788", 200),
        ("Host: LOCALHOST:1", 200),
        ("Host: search.example", 200),
        ("Host: evil.example", 403),
        ("Host: 127.0.0.1.evil.example", 403),
        ("Host: [::1", 403),
        ("Host: ", 403),
        ("Host: localhost\r\nSec-Fetch-Site: same-origin", 200),
        ("Host: localhost\r\nSec-Fetch-Site: cross-site", 403),
        ("Host: localhost\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors", 403),
        ("Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate", 200),
        ("Host: evil.example\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate", 403),
    ],
)
async def test_other_sites_in_a_browser_are_refused(headers: str, status: int) -> None:
    """A name of an attacker that leads here, and requests that a page of another site sends."""

    async def fine(request: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.router.add_get("/", fine)
    BrowserGuard("default-src 'none'", ["search.example"]).protect(app)
    async with listening(app, "127.0.0.1", 0, grace_s=1.0) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET / HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert "Content-Security-Policy: default-src 'none'" in answer
