"""The floor of each step of a crawl: the cost of the bare library call on the pages of the web, in this process.

Each step takes the result of the step before. Its cost is the least CPU time of a few passes, in ms per page. The
floors contain no decisions, checks or bookkeeping: these are the cost of a crawler above the sum of the floors.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sqlite3
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import aiohttp
import xxhash
from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser
from yarl import URL

PASSES = 3
IN_FLIGHT = 64
BATCH = 200
"""Pages in one transaction."""

GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31
PATH_BITS = 39

#: The names of the steps, with their libraries.
HTTP = "floor: HTTP (aiohttp, body as on the wire)"
GUNZIP = "floor: gunzip"
PARSE = "floor: parse and hrefs (lexbor)"
JOIN = "floor: join and canonicalise (ada)"
HASH = "floor: hashes (xxh3)"
STORE = "floor: SQLite (page, links, frontier)"
COMPRESS = "floor: compress (the wire's gzip is kept)"

inflate = importlib.import_module("isal.isal_zlib" if importlib.util.find_spec("isal") else "zlib").decompress

Given = TypeVar("Given")


def measure(urls: Sequence[str], store: Path) -> dict[str, float]:
    """Milliseconds per page of each step on the pages at `urls`.

    `store` is the path of a database that is replaced.
    """
    wire, http_s = fetched(urls)
    bodies, gunzip_s = timed(lambda: gunzip(wire))
    hrefs, parse_s = timed(lambda: parse(bodies))
    links, join_s = timed(lambda: join(urls, hrefs))
    (_, numbers), hash_s = timed(lambda: hashes(bodies, links))
    rows = Rows(urls, wire, links, numbers)
    _, store_s = timed(lambda: rows.write(store))
    spent_s = {
        HTTP: http_s,
        GUNZIP: gunzip_s,
        PARSE: parse_s,
        JOIN: join_s,
        HASH: hash_s,
        STORE: store_s,
        COMPRESS: 0.0,
    }
    return {step: seconds * 1000 / len(urls) for step, seconds in spent_s.items()}


def timed(step: Callable[[], Given]) -> tuple[Given, float]:
    """The result of `step`, and the CPU seconds of its cheapest pass."""
    least_s = float("inf")
    for _ in range(PASSES):
        started = time.process_time()
        given = step()
        least_s = min(least_s, time.process_time() - started)
    return given, least_s


def fetched(urls: Sequence[str]) -> tuple[list[bytes], float]:
    """The bodies at `urls` as they came over the wire, and the CPU seconds of the cheapest pass."""
    faster = importlib.import_module("uvloop").new_event_loop if importlib.util.find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=faster) as runner:
        return timed(lambda: runner.run(fetch(urls)))


async def fetch(urls: Sequence[str]) -> list[bytes]:
    """All bodies, with IN_FLIGHT requests at once, and without cookies, redirects and decompression."""
    bodies = [b""] * len(urls)
    todo = iter(enumerate(urls))

    async def work(session: aiohttp.ClientSession) -> None:
        for index, url in todo:
            async with session.get(URL(url, encoded=True), allow_redirects=False) as answer:
                bodies[index] = await answer.read()

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"Accept-Encoding": "gzip", "User-Agent": "bench"},
        timeout=aiohttp.ClientTimeout(total=None, sock_read=30),
        read_bufsize=1 << 18,
    ) as session:
        await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
    return bodies


def gunzip(wire: Sequence[bytes]) -> list[bytes]:
    return [inflate(body, GZIP_WINDOW) if body.startswith(GZIP_MAGIC) else body for body in wire]


def parse(bodies: Sequence[bytes]) -> list[list[str]]:
    """Every page's hrefs."""
    return [[node.attributes["href"] or "" for node in LexborHTMLParser(body).css("a[href]")] for body in bodies]


def join(urls: Sequence[str], hrefs: Sequence[Sequence[str]]) -> list[list[str]]:
    """The links of every page. Fragments are cut, and duplicates removed, before the URLs are joined."""
    links = []
    for url, page_hrefs in zip(urls, hrefs, strict=True):
        found = set()
        for href in {href.partition("#")[0] for href in page_hrefs}:
            try:
                found.add(join_url(url, href))
            except ValueError:
                continue
        links.append(list(found))
    return links


def hashes(bodies: Sequence[bytes], links: Sequence[Sequence[str]]) -> tuple[list[bytes], list[list[int]]]:
    """The hash of every body, and the hashes of the links of every page."""
    return (
        [xxhash.xxh3_128_digest(body) for body in bodies],
        [[xxhash.xxh3_64_intdigest(url.encode()) for url in page_links] for page_links in links],
    )


class Rows:
    """The rows that the store writes, prepared: the URLs of a host have adjacent numbers."""

    def __init__(
        self,
        urls: Sequence[str],
        bodies: Sequence[bytes],
        links: Sequence[Sequence[str]],
        numbers: Sequence[Sequence[int]],
    ) -> None:
        self.hosts: dict[str, int] = {}
        self.links = links
        self.targets = [
            [self.key(url, number) for url, number in zip(*page, strict=True)]
            for page in zip(links, numbers, strict=True)
        ]
        sources = [self.key(url, xxhash.xxh3_64_intdigest(url.encode())) for url in urls]
        self.pages = [(key, url, 200, 0.0, body) for key, url, body in zip(sources, urls, bodies, strict=True)]

    def key(self, url: str, number: int) -> int:
        """The host's number in the high bits, the URL's hash in the low."""
        host = url.split("/", 3)[2] if "//" in url else ""
        return self.hosts.setdefault(host, len(self.hosts)) << PATH_BITS | number >> (64 - PATH_BITS)

    def write(self, path: Path) -> None:
        """Into a new database: pages, their links packed, and the frontier's rows."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        database = sqlite3.connect(path, isolation_level=None)
        database.executescript(
            """
            PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
            PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000;
            CREATE TABLE page (id INTEGER PRIMARY KEY, url TEXT, status INTEGER, fetched_at REAL, body BLOB);
            CREATE TABLE link (source INTEGER PRIMARY KEY, targets BLOB);
            CREATE TABLE frontier (id INTEGER PRIMARY KEY, url TEXT);
            """
        )
        for start in range(0, len(self.pages), BATCH):
            batch = slice(start, start + BATCH)
            pages, targets = self.pages[batch], self.targets[batch]
            packed = [(page[0], array("q", keys).tobytes()) for page, keys in zip(pages, targets, strict=True)]
            queued = [row for page in zip(targets, self.links[batch], strict=True) for row in zip(*page, strict=True)]
            database.execute("BEGIN")
            database.executemany("INSERT INTO page VALUES (?, ?, ?, ?, ?)", pages)
            database.executemany("INSERT INTO link VALUES (?, ?)", packed)
            database.executemany("INSERT OR IGNORE INTO frontier VALUES (?, ?)", queued)
            database.execute("COMMIT")
        database.close()
