"""The servers of the hostile web, in a process of their own: ``python -m tests.hostile.server PORT LOG``.

Each host has an address of its own on loopback, and all hosts have one port. So a server knows the host of a connection
before it has read a request. A DNS server on the address :data:`DNS_ADDRESS` and the same port answers for the names
that have no fixed address. The process ends when standard input ends, and then writes its log.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from crawler.demo.pages import Hit, Page, retry_after_s
from tests.command import ROOT
from tests.hostile import certificates, dns
from tests.hostile.behaviour import PORT, Behaviour, Exchange, Reply

DNS_ADDRESS = "127.1.0.1"
_ROBOTS = Page("", content_type="text/plain")
_NOTHING = Page("<title>Not found</title>", status=404)
_IDLE_S = 600


def addresses(behaviours: Sequence[Behaviour]) -> dict[str, str]:
    """An address on loopback for each host."""
    return {one.host: f"127.2.{n // 250}.{n % 250 + 1}" for n, one in enumerate(behaviours)}


class Servers:
    """A context manager that runs the process. ``log`` is known when the context has ended."""

    def __init__(self, behaviours: Sequence[Behaviour], port: int, folder: Path) -> None:
        self._command = [sys.executable, "-m", "tests.hostile.server", str(port), str(folder / "hits.json")]
        self._names = json.dumps([one.name for one in behaviours])
        self._log = folder / "hits.json"
        self.log: list[Hit] = []

    def __enter__(self) -> Self:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(self._names + "\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the servers of the hostile web did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=30)
        self.log = [Hit(**hit) for hit in json.loads(self._log.read_text())]


class Server:
    """Serves the behaviours on ``port``, and logs the requests in the order in which the answers ended."""

    def __init__(self, behaviours: Sequence[Behaviour], port: int) -> None:
        self.log: list[Hit] = []
        self._behaviours = behaviours
        self._port = port
        self._asked: Counter[tuple[str, str]] = Counter()

    async def run(self, until: asyncio.Event, tell_ready: Callable[[], object]) -> None:
        where = addresses(self._behaviours)
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: _Dns(self._behaviours), local_addr=(DNS_ADDRESS, self._port))
        for one in self._behaviours:
            tls = certificates.context(one.certificate)
            serve = partial(self._connection, one)
            await asyncio.start_server(serve, where[one.host], self._port, ssl=tls, limit=1 << 20, backlog=1024)
        tell_ready()
        await until.wait()

    async def _connection(
        self, behaviour: Behaviour, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        gone = (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError)
        with suppress(*gone, asyncio.CancelledError):  # asyncio reports the cancelled connections of a closing server
            if behaviour.at_accept is not None:
                await behaviour.at_accept(Exchange(writer, self._port, behaviour.host))
            else:
                while await self._exchange(behaviour, reader, writer):
                    pass
        writer.close()

    async def _exchange(self, behaviour: Behaviour, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a request and answer it. Whether the connection is kept."""
        async with asyncio.timeout(_IDLE_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        started_at = time.monotonic()
        request, *fields = head.split("\r\n")
        path = request.split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        await reader.readexactly(int(headers.get("content-length", "0")))
        host = headers.get("host", "").partition(":")[0]
        exchange = Exchange(writer, self._port, host, path, headers, self._asked[host, path])
        self._asked[host, path] += 1
        reply = _find(behaviour.site, path)
        try:
            if isinstance(reply, Page):
                octets = self._filled(_page(reply))
                await asyncio.sleep(reply.delay_s)
                exchange.status = reply.status
                await exchange.send(octets)
            elif isinstance(reply, bytes):
                exchange.status = _status(reply)
                await exchange.send(self._filled(reply))
            else:
                await _handled(exchange, reader, reply(exchange))
        finally:
            ended_at = exchange.gone_at or (exchange.sent_at if exchange.status else time.monotonic())
            waits_s = retry_after_s(reply) if isinstance(reply, Page) else None
            agent = headers.get("user-agent", "")
            self.log.append(Hit(host, path, started_at, ended_at, exchange.status, agent, waits_s))
        return isinstance(reply, Page)

    def _filled(self, octets: bytes) -> bytes:
        """The octets with the port in place of :data:`PORT`."""
        return octets.replace(PORT.encode(), b"%d" % self._port)


async def _handled(exchange: Exchange, reader: asyncio.StreamReader, answering: Awaitable[None]) -> None:
    """Run a handler until it ends or the client leaves."""
    handler = asyncio.ensure_future(answering)
    left = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((handler, left), return_when=asyncio.FIRST_COMPLETED)
        if not handler.done():
            exchange.gone_at = time.monotonic()
            exchange.status = 0
            handler.cancel()
        with suppress(asyncio.CancelledError):
            await handler
    finally:
        left.cancel()
        with suppress(OSError, asyncio.CancelledError):
            await left


def _find(site: Mapping[str, Reply], path: str) -> Reply:
    for key in (path, path.partition("?")[0]):
        if key in site:
            return site[key]
    if path == "/robots.txt":
        return _ROBOTS
    return site.get("*", _NOTHING)


def _page(page: Page) -> bytes:
    lines = [f"HTTP/1.1 {page.status} Status", f"Content-Length: {len(page.octets)}"]
    lines += [f"{name}: {value}" for name, value in page.all_headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + page.octets


def _status(octets: bytes) -> int:
    """The status of an answer in octets; 0 if there is none."""
    line = octets.partition(b"\r\n")[0].split(b" ")
    return int(line[1]) if len(line) > 1 and line[1].isdigit() and octets.startswith(b"HTTP/") else 0


class _Dns(asyncio.DatagramProtocol):
    """Answers queries as the behaviour of the name says; other names do not exist."""

    def __init__(self, behaviours: Iterable[Behaviour]) -> None:
        self._where = addresses(tuple(behaviours))
        self._behaviours = {one.host: one for one in behaviours if one.dns is not None}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name = dns.name_of(data)
        one = self._behaviours.get(".".join(name.split(".")[-2:]))
        reply = (
            one.dns(data, self._where[one.host]) if one is not None and one.dns is not None else dns.no_such_name(data)
        )
        if reply is not None:
            self._transport.sendto(reply, addr)


async def main(port: int, names: Sequence[str], log: Path) -> None:
    from tests.hostile import catalogue  # the answers are 100 MB; who starts the server does not need them

    server, ended = Server(catalogue.named(names), port), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, lambda: (sys.stdin.read(), loop.call_soon_threadsafe(ended.set)))
    await server.run(ended, lambda: print("ready", flush=True))
    log.write_text(json.dumps([asdict(hit) for hit in server.log]))


if __name__ == "__main__":
    names = json.loads(sys.stdin.readline())
    asyncio.run(main(int(sys.argv[1]), names, Path(sys.argv[2])))
