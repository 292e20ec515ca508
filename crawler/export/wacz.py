"""WACZ 1.1.1: a WARC file with its index, the list of its pages, and a manifest, in a ZIP file.

Sources: "Web Archive Collection Zipped" 1.1.1 and "Crawl Index JSON (CDXJ)" 0.1.0 (https://specs.webrecorder.net/).
The index is compressed in blocks, and a second file holds the beginning of each block. So a reader over the network
does not have to fetch the whole index.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import urlsplit
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from crawler.clock import iso
from crawler.errors import UsageError
from crawler.export.job import Job
from crawler.export.warc import REBUILT, Records, agents_of, archived_pages, begun_at
from crawler.store.statements import load_statements
from crawler.version import VERSION
from crawler.warc.records import digest

_SQL = load_statements("crawler.export", "wacz.sql")
_WARC = "data.warc.gz"
_INDEX = "index.cdx.gz"
_LINES_PER_BLOCK = 3000
_WWW = re.compile(r"^www\d*\.")


async def write_wacz(job: Job) -> None:
    """Write a WACZ file. Pages without a body, or that forbid copies, are left out as in a WARC file."""
    with ZipFile(job.open(), "w") as archive, _Lines() as index, _Lines() as pages:
        package = _Package(archive, job.now)
        with package.member(f"archive/{_WARC}", compressed=True) as file:
            await _write_archive(job, file, index, pages)
        with package.member("pages/pages.jsonl") as file:
            file.write(b'{"format": "json-pages-1.0", "id": "pages", "title": "All pages"}\n')
            for line in pages.sorted():
                file.write(line)
        with package.member(f"indexes/{_INDEX}", compressed=True) as file:
            places = _write_blocks(file, index.sorted())
        with package.member("indexes/index.idx") as file:
            for place in places:
                file.write(place)
        package.end()


async def _write_archive(job: Job, file: _Digested, index: _Lines, pages: _Lines) -> None:
    records, agents = Records(compress=True), await agents_of(job)
    info = records.warcinfo(_WARC, agents, job.now)
    file.write(info)
    offset = len(info)
    async for page, body in archived_pages(job):
        made = records.of(page, body, agents.get(page.run_id))
        index.add(_index_line(page, digest(body), len(made[0]), offset))
        pages.add(_page_line(page))
        data = b"".join(made)
        file.write(data)
        offset += len(data)


def _index_line(page: Any, payload: str, length: int, offset: int) -> bytes:
    at = datetime.fromtimestamp(begun_at(page), UTC).strftime("%Y%m%d%H%M%S")
    place = {
        "url": page.url,
        "mime": page.content_type,
        "status": str(page.status),
        "digest": payload,
        "length": str(length),
        "offset": str(offset),
        "filename": _WARC,
    }
    return f"{search_key(page.url)} {at} {json.dumps(place)}\n".encode()


def _page_line(page: Any) -> bytes:
    title = {"title": page.title} if page.title else {}
    return json.dumps({"id": str(page.url_id), "url": page.url, "ts": iso(begun_at(page)), **title}).encode() + b"\n"


def search_key(url: str) -> str:
    """The searchable form of a URL: ``org,example)/a?b=1`` for ``https://www.example.org/A?b=1``.

    It follows the specification. Like the readers, it also removes ``www.`` and sorts the parameters.
    """
    parts = urlsplit(url.lower())
    labels = _WWW.sub("", parts.hostname or "").split(".")
    port = f":{parts.port}" if parts.port else ""
    query = "?" + "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return f"{','.join(reversed(labels))}{port}){parts.path}{query}"


class _Lines:
    """Sorts lines in a temporary SQLite database, which moves to the disk when it becomes large."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)

    def __enter__(self) -> Self:
        self._db.execute(_SQL["create_line_table"])
        self._db.execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()
        if isinstance(error, sqlite3.Error):
            raise UsageError(
                f"a temporary file cannot be written: {error}; TMPDIR names the folder for temporary files"
            ) from None

    def add(self, line: bytes) -> None:
        self._db.execute(_SQL["add_line"], {"text": line})

    def sorted(self) -> Iterator[bytes]:
        """The lines in the order of their bytes, with duplicates."""
        return (text for (text,) in self._db.execute(_SQL["sorted_lines"]))


def _write_blocks(file: _Digested, lines: Iterator[bytes]) -> list[bytes]:
    """Write the index. Returns the position of each block: first key, offset, length, digest."""
    places = [b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "%s"}\n' % _INDEX.encode()]
    offset = 0
    while block := list(islice(lines, _LINES_PER_BLOCK)):
        data = zlib.compress(b"".join(block), level=6, wbits=31)
        file.write(data)
        key = b" ".join(block[0].split(b" ", 2)[:2]).decode()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        place = {"offset": offset, "length": len(data), "digest": digest, "filename": _INDEX}
        places.append(f"{key} {json.dumps(place)}\n".encode())
        offset += len(data)
    return places


class _Digested:
    """A binary file that counts and hashes what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.size += len(data)
        return self._file.write(data)


class _Package:
    """The members of the ZIP file, and their manifest."""

    def __init__(self, archive: ZipFile, now: float) -> None:
        self._archive = archive
        self._now = now
        self._resources: list[dict[str, Any]] = []

    @contextmanager
    def member(self, path: str, *, compressed: bool = False) -> Iterator[_Digested]:
        """Open a member for writing. Content that is compressed already is stored as it is."""
        with self._archive.open(self._info(path, compressed), "w", force_zip64=True) as member:
            file = _Digested(member)
            yield file
        name, digest = path.rpartition("/")[2], f"sha256:{file.sha256.hexdigest()}"
        self._resources.append({"name": name, "path": path, "hash": digest, "bytes": file.size})

    def end(self) -> None:
        manifest = {
            "profile": "data-package",
            "wacz_version": "1.1.1",
            "title": "A web crawl",
            "description": REBUILT,
            "created": iso(self._now),
            "software": f"polite-crawler/{VERSION}",
            "resources": self._resources,
        }
        data = json.dumps(manifest, indent=2).encode()
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(data).hexdigest()}"}
        self._archive.writestr(self._info("datapackage.json"), data)
        self._archive.writestr(self._info("datapackage-digest.json"), json.dumps(digest, indent=2))

    def _info(self, path: str, compressed: bool = False) -> ZipInfo:
        at = datetime.fromtimestamp(self._now, UTC)
        info = ZipInfo(path, (at.year, at.month, at.day, at.hour, at.minute, at.second))
        info.compress_type = ZIP_STORED if compressed else ZIP_DEFLATED
        return info
