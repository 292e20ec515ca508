"""The HTTP listener: an error is one line in the log, whoever made it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web

from crawler.http_listener import listening

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
        (HONEST, 500, logging.ERROR, "Error handling request from 127.0.0.1: RuntimeError: a bug of two lines"),
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
