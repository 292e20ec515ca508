"""The web of :mod:`tests.hostile.shared_hosting` in a network namespace: a DNS server, an HTTP server and the crawls.

``unshare --net --mount python -m tests.hostile.shared_hosting_server ADDRESSES WORKERS``. All addresses of 10.0.0.0/8
are those of the loopback device there.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import uvloop

from crawler.demo.pages import Hit, Site
from tests.command import ROOT
from tests.hostile.shared_hosting import (
    DELAY_S,
    LATENCY_S,
    LOOK_S,
    Stood,
    address_of,
    all_sites,
    healthy_sites,
    judged,
)
from tests.name_server import NXDOMAIN, NameServer, Reply, name_server
from tests.postgres import cluster

_DNS = "127.0.0.53"


class _Connection(asyncio.Protocol):
    """Answers requests with the pages of the sites, each after the latency, and logs them."""

    def __init__(self, sites: dict[str, Site], log: list[Hit]) -> None:
        self._sites, self._log, self._read = sites, log, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        while b"\r\n\r\n" in self._read:
            head, _, self._read = self._read.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            host = next(line[5:].strip() for line in lines if line.lower().startswith("host:"))
            asyncio.get_running_loop().call_later(LATENCY_S, self._answer, host, lines[0].split()[1], time.monotonic())

    def _answer(self, host: str, path: str, began_at: float) -> None:
        page = self._sites.get(host, {}).get(path)
        body = b"" if page is None else page.octets
        kind = "text/plain" if path == "/robots.txt" else "text/html"
        status = "404 Not Found" if page is None else "200 OK"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        self._log.append(Hit(host, path, began_at, time.monotonic(), 404 if page is None else 200, ""))


async def _crawl(sites: dict[str, Site], addresses: int, db: str, folder: Path, workers: int) -> tuple[list[Hit], int]:
    """The log of a crawl of all sites, and the most look-ups of one name."""
    log: list[Hit] = []

    def reply_for(name: str) -> Reply:
        return Reply((address_of(name, addresses),)) if name in sites else Reply(code=NXDOMAIN)

    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"http://{host}/\n" for host in sites), encoding="utf-8")
    command = [sys.executable, "-m", "crawler", "run", "--seeds", str(seeds), "--scope", "any", "--allow-private"]
    command += ["--delay", str(DELAY_S), "--max-time", str(LOOK_S), "--contact", "https://bench.test/", "--db", db]
    command += ["--no-progress", *(["--workers", str(workers)] if workers > 1 else [])]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(sites, log), "0.0.0.0", 80, backlog=65_535)
    names: NameServer
    async with server, name_server(reply_for, (_DNS, 53)) as names:
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL, cwd=ROOT)
        await process.wait()
    most = max((asked + 1) // 2 for asked in names.asked.values())  # a look-up asks for IPv4 and for IPv6
    return sorted(log, key=lambda hit: hit.started_at), most


def _vain_claims(db: str) -> int:
    status = subprocess.run(
        [sys.executable, "-m", "crawler", "status", "--json", "--db", db], check=True, capture_output=True, cwd=ROOT
    )
    return sum(beat["vain_claims"] for beat in json.loads(status.stdout)["heartbeats"])


def _run(addresses: int, workers: int) -> Stood:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        resolver = folder / "resolv.conf"
        resolver.write_text(f"nameserver {_DNS}\n", encoding="utf-8")
        for command in (
            ["ip", "link", "set", "lo", "up"],
            ["ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo"],
            ["mount", "--bind", str(resolver), "/etc/resolv.conf"],
        ):
            subprocess.run(command, check=True)
        server = stack.enter_context(cluster()) if workers > 1 else None
        alone_db, db = (
            str(folder / name) if server is None else server.make_database() for name in ("alone.db", "beside.db")
        )
        alone, _ = uvloop.run(_crawl(healthy_sites(), addresses, alone_db, folder, workers))
        log, look_ups = uvloop.run(_crawl(all_sites(addresses), addresses, db, folder, workers))
        return judged(addresses, alone, log, _vain_claims(db), workers=workers, look_ups=look_ups)


if __name__ == "__main__":
    stood = _run(int(sys.argv[1]), int(sys.argv[2]))
    print(stood, flush=True)
    sys.exit(bool(stood.wrong))
