"""Makes large stores for the benchmarks, with the rows that a crawl would have written.

A store of :func:`make_fetched` is after its crawl, and one of :func:`kept` before it: site ``n`` is
``http://s<n>.test:8099`` with the number ``n + 1`` and ``sizes[n]`` queued URLs. Its start page is a seed, its
robots.txt has been read and is in force for years, and its pause is over.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crawler.frontier.politeness import GroupBy, group_name
from crawler.store.bodies import compress
from crawler.store.keys import url_number
from crawler.store.sql.schema import load_queries, schema
from crawler.store.sql.tables import insert_statement
from crawler.store.sqlite.store import SqliteStore

FILLED_AT = 1_750_000_000.0
"""When the last robots.txt was read, in seconds since the epoch. All stores are used after this time."""

#: Of every site: a server for them has to listen here.
PORT = 8099

VALID_S = 20 * 366 * 86400.0
ROBOTS = b"User-agent: *\nDisallow: /private/\nDisallow: /search?\n"
ROUNDS = 10  # each round adds to every site, which splits the pages of the file as a crawl does
HASH_KEY = 0  # of the paths in the numbers of URLs
_DIGEST = hashlib.sha256(ROBOTS).digest()


def add_options(parser: argparse.ArgumentParser) -> None:
    default = Path(tempfile.gettempdir()) / "crawler-bench-stores"
    parser.add_argument(
        "--stores",
        type=Path,
        default=default,
        metavar="DIR",
        help=f"keep the stores here [{default}]",
    )


def site_name(number: int) -> str:
    return f"http://s{number}.test:{PORT}"


def path_of(number: int) -> str:
    """The path of page ``number`` of a site. Page 0 is the start page."""
    return f"/section-{number % 97}/some/longer/path/page-{number}.html" if number else "/"


def kept(folder: Path, sizes: Sequence[int]) -> Path:
    """The store with these sizes, which is made if the folder has none yet. Do not change it; change a :func:`copy`."""
    name = f"{len(sizes)}-sites-{sum(sizes)}-urls-{digest(*sizes)}.db"
    return made_once(folder / name, lambda path: _make(path, sizes))


def made_once(path: Path, make: Callable[[Path], object]) -> Path:
    """The path, at which ``make`` has made a store unless there was one. It makes the store under another name."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        half.unlink(missing_ok=True)
        make(half)
        half.rename(path)
    return path


def digest(*of: object) -> str:
    """A short digest of the values and of the schema: another schema is another store."""
    return hashlib.sha256(repr((*of, schema("sqlite"))).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A fetched page of site ``site``, which counts from 0."""

    site: int
    path: str
    html: str
    title: str = ""
    depth: int = 1
    fetched_at: float = FILLED_AT

    @property
    def url_id(self) -> int:
        """The number of its URL."""
        return url_number(self.site + 1, self.path, HASH_KEY)


def make_fetched(path: Path, sites: int, pages: Iterable[StoredPage]) -> None:
    """Make a store with the sites ``http://s<n>.test`` and these pages, with the bodies 1, 2 and so on."""
    asyncio.run(_open(path))
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    db.execute(
        "INSERT INTO politeness_group (id, name, next_at, pause_s, wait_code, waits_for) "
        "VALUES (1, 'all', 0, 1, 'delay', 'delay')"
    )
    db.executemany(
        "INSERT INTO site (id, name, host, registered_domain, group_id) VALUES (?1, ?2, ?3, ?3, 1)",
        [(n + 1, f"http://s{n}.test", f"s{n}.test") for n in range(sites)],
    )
    db.execute("INSERT INTO hash_key (id, key) VALUES (1, ?)", (HASH_KEY,))
    for number, page in enumerate(pages, 1):
        data = page.html.encode()
        body = (number, hashlib.sha256(data).digest(), compress(data))
        db.execute("INSERT INTO body (id, sha256, data) VALUES (?, ?, ?)", body)
        url = (page.url_id, page.path, page.depth)
        db.execute("INSERT INTO url (id, path, state, depth) VALUES (?, ?, 'fetched', ?)", url)
        db.execute(
            "INSERT INTO page (url_id, status, content_type, fetched_at, title, noindex, nofollow, body_id, "
            "body_bytes) VALUES (?, 200, 'text/html', ?, ?, 0, 0, ?, ?)",
            (page.url_id, page.fetched_at, page.title, number, len(data)),
        )
    db.commit()
    db.close()


_URL = (
    *("id", "path", "state", "reason_code", "reason", "depth"),
    *("found_on", "hops", "seed", "kind", "lastmod", "by_domain"),
)


def copy(store: Path, folder: Path, name: str) -> Path:
    """Copy a store to crawl into the copy."""
    to = folder / name
    subprocess.run(["cp", "--reflink=auto", store, to], check=True)
    return to


def peak_mb(process: int) -> float:
    """The peak resident memory of a running process in MB (Linux); 0 if the process has ended.

    The value of ``getrusage`` is not usable: it starts with the memory of the parent process.
    """
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"^VmHWM:\s*([0-9]+) kB", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def _make(path: Path, sizes: Sequence[int]) -> None:
    asyncio.run(_open(path))
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1048576;")
    _add_sites(db, len(sizes))
    db.execute("INSERT INTO hash_key (id, key) VALUES (1, ?)", (HASH_KEY,))
    sql = load_queries()
    insert = insert_statement("sqlite", "url", _URL, "kept", named=False)  # of two with one hash, there is the first
    for turn in range(ROUNDS):
        for site, size in enumerate(sizes, 1):
            rows = list(_urls(site, range(turn, size, ROUNDS)))
            db.executemany(insert, rows)
            db.execute(sql["enqueue"], {"numbers": json.dumps([row[0] for row in rows])})
        db.commit()
    db.close()
    asyncio.run(_open(path))


async def _open(path: Path) -> None:
    """Open the store once, which makes it, or computes when its groups are ready."""
    store = await SqliteStore.open(path)
    await store.prepare(None)
    await store.close()
    Path(f"{path}.lock").unlink(missing_ok=True)


def _add_sites(db: sqlite3.Connection, count: int) -> None:
    names = [site_name(number) for number in range(count)]
    asked_at = [FILLED_AT - 3600 * (number * 7919 % count) / count for number in range(count)]  # in no order
    db.execute("INSERT INTO robots_text (id, sha256, body) VALUES (1, ?, ?)", (_DIGEST, ROBOTS))
    db.executemany(
        "INSERT INTO politeness_group (id, name, next_at, pause_s, wait_code, waits_for) "
        "VALUES (?, ?, ?, 1, 'delay', 'delay')",
        [(n, group_name(name, GroupBy.HOST), at) for n, (name, at) in enumerate(zip(names, asked_at, strict=True), 1)],
    )
    db.executemany(
        "INSERT INTO robots_copy (id, site_id, text_id, action, status, fetched_at, valid_from, valid_until) "
        "VALUES (?1, ?1, 1, 'parse', '200', ?2, ?2, ?3)",
        [(n, at - 1, at + VALID_S) for n, at in enumerate(asked_at, 1)],
    )
    db.executemany(
        "INSERT INTO site (id, name, host, registered_domain, group_id, robots_id) VALUES (?1, ?2, ?2, ?2, ?1, ?1)",
        list(enumerate(names, 1)),
    )


def _urls(site: int, pages: Sequence[int]) -> Iterator[tuple[object, ...]]:
    """The rows of URLs, with the columns ``_URL``. The start page is a seed, and the other pages have depth 1."""
    seed = url_number(site, "/", HASH_KEY)
    for page in pages:
        path = path_of(page)
        found_on = seed if page else None
        yield (
            url_number(site, path, HASH_KEY),
            path,
            "queued",
            "new",
            "",
            min(page, 1),
            found_on,
            0,
            page == 0,
            "page",
            None,
            0,
        )
