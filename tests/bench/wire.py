"""Measures the cost of servers that send without end: the lag of the event loop and the memory of the client.

Each attack has a server process and a client process of its own. The client runs the real fetcher, without a crawl.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

import uvloop

from crawler.clock import SystemClock
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.model import Purpose, Request
from tests.bench.table import Row

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_MAX_BODY = 10_000_000
_TOTAL_S = 10.0
MOST_LAG_S, MOST_MEMORY_MB = 0.1, 100.0


@dataclass(frozen=True, slots=True)
class Attack:
    """A server sends ``start()``, and then ``again`` without end, to ``hosts`` requests at once."""

    start: Callable[[], bytes]
    again: bytes
    hosts: int
    keep_exchanges: bool = False


def _nothing() -> bytes:
    return b""


def _headers() -> bytes:
    return _OK + (b"X: " + b"y" * 30_000 + b"\r\n") * 250


def _chunk() -> bytes:
    return _OK + b"Transfer-Encoding: chunked\r\n\r\n1;"


def _bomb() -> bytes:
    """The beginning of an answer that decodes to 9.9 MB with a window of 8 MB."""
    stream = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 23})
    coded = stream.compress(b"".join(b"%08x" % number * 16 for number in range(77_000)), stream.FLUSH_BLOCK)
    return _OK + b"Content-Encoding: zstd\r\nContent-Length: 9000000\r\n\r\n" + coded


_EXTENSION = b"x" * 1_000_000
ATTACKS = {
    "interim answers": Attack(_nothing, b"HTTP/1.1 102 Processing\r\n\r\n" * 10_000, 1),
    "7.5 MB of headers, then silence": Attack(_headers, b"", 200),
    "9.9 MB in zstd, then silence": Attack(_bomb, b"", 64),
    "chunk extensions": Attack(_chunk, _EXTENSION, 1),
    "chunk extensions, recorded": Attack(_chunk, _EXTENSION, 1, keep_exchanges=True),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> list[Row]:
    return [row for name, attack in ATTACKS.items() for row in _rows(name, attack)]


def _rows(name: str, attack: Attack) -> Iterator[Row]:
    lag_s, memory_mb, note = _measure(attack)
    yield Row(f"{name}: worst loop lag", 1000 * lag_s, "ms", must="≤ 100 ms", ok=lag_s <= MOST_LAG_S, note=note)
    yield Row(f"{name}: peak memory", memory_mb, "MB", must="≤ 100 MB", ok=memory_mb <= MOST_MEMORY_MB)


def _measure(attack: Attack) -> tuple[float, float, str]:
    """The worst lag of the loop in seconds, the peak of memory in MB, and the result of one request."""
    context = multiprocessing.get_context("spawn")
    (port_there, port_here), (found_there, found_here) = context.Pipe(), context.Pipe()
    server = context.Process(target=_serve, args=(attack, port_there), daemon=True)
    server.start()
    client = context.Process(target=_fetch, args=(attack, port_here.recv(), found_there), daemon=True)
    client.start()
    found: tuple[float, float, str] = found_here.recv()
    client.join()
    server.terminate()
    server.join()
    return found


def _serve(attack: Attack, port: Connection) -> None:
    start = attack.start()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(start)
            while True:
                writer.write(attack.again)
                await writer.drain()
                if not attack.again:
                    await asyncio.sleep(_TOTAL_S)
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


def _fetch(attack: Attack, port: int, found: Connection) -> None:
    lag_s = 0.0

    async def watch() -> None:
        nonlocal lag_s
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.sleep(0.005)
            lag_s = max(lag_s, loop.time() - began - 0.005)

    async def fetch_all() -> str:
        settings = FetchSettings(
            "TestBot/1",
            None,
            total_timeout_s=_TOTAL_S,
            resolve=(("*.test", "127.0.0.1"),),
            allow_private=True,
            concurrency=attack.hosts,
            keep_exchanges=attack.keep_exchanges,
        )
        async with HttpFetcher(settings, SystemClock()) as fetcher, asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(watch())
            urls = [f"http://host{number}.test:{port}/" for number in range(attack.hosts)]
            results = await asyncio.gather(*(fetcher.fetch(Request(url, Purpose.PAGE, _MAX_BODY)) for url in urls))
            watching.cancel()
        return f"{getattr(results[0], 'detail', 'fetched')}; {results[0].wire_bytes:,} bytes logged"

    note = uvloop.run(fetch_all())
    found.send((lag_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, note))
