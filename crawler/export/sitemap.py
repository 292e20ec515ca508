"""A sitemap of the pages that were fetched, still exist, may be indexed, and are not duplicates.

Source: https://www.sitemaps.org/protocol.html.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote
from xml.sax.saxutils import escape

from crawler.atomic_files import AtomicFile
from crawler.errors import Argument, UsageError
from crawler.export.job import Job

URLS_PER_FILE = 50_000
BYTES_PER_FILE = 50 * 1024 * 1024

_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{_NAMESPACE}">\n'.encode()
_TAIL = b"</urlset>\n"


async def write_sitemap(job: Job) -> None:
    """Write one file if the limits of the protocol allow it, else an index and files ``OUT-1.xml`` … beside it."""
    parts = [_begin(job, job.out)]
    urls, size = 0, len(_HEAD) + len(_TAIL)
    async for row in job.rows(job.sql("sitemap"), job.is_shown):
        entry = _entry(row.url, _iso_or_none(row.lastmod) or _iso_or_none(_http_date(row.last_modified)))
        if urls == URLS_PER_FILE or size + len(entry) > BYTES_PER_FILE:
            parts.append(_next(job, parts))
            urls, size = 0, len(_HEAD) + len(_TAIL)
        parts[-1].file.write(entry)
        urls, size = urls + 1, size + len(entry)
    _end(parts[-1])
    if len(parts) > 1:
        _write_index(job, parts)


def _begin(job: Job, out: Path | BinaryIO) -> AtomicFile:
    file = job.files.open(out)
    file.file.write(_HEAD)
    return file


def _next(job: Job, parts: list[AtomicFile]) -> AtomicFile:
    """Begin another file. When the second begins, the first gets a numbered name too."""
    if not isinstance(job.out, Path) or job.base_url is None:
        raise UsageError(
            f"{URLS_PER_FILE:,} URLs or {BYTES_PER_FILE >> 20} MiB are the limit of a sitemap: name a file, and for an "
            "index of several sitemaps the address at which its folder will be served, with ",
            Argument("base_url"),
        )
    _end(parts[-1])
    if len(parts) == 1:
        parts[0].place = _part(job.out, 1)
    return _begin(job, _part(job.out, len(parts) + 1))


def _part(out: Path, number: int) -> Path:
    out = out.resolve()
    return out.with_name(f"{out.stem}-{number}{out.suffix}")


def _end(part: AtomicFile) -> None:
    part.file.write(_TAIL)
    part.finish()


def _write_index(job: Job, parts: list[AtomicFile]) -> None:
    file = job.open()
    base = f"{job.base_url}".rstrip("/")
    file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="{_NAMESPACE}">\n'.encode())
    for part in parts:
        assert part.place is not None
        file.write(f"<sitemap><loc>{escape(f'{base}/{quote(part.place.name)}')}</loc></sitemap>\n".encode())
    file.write(b"</sitemapindex>\n")


def _entry(url: str, lastmod: str | None) -> bytes:
    changed = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<url><loc>{escape(url)}</loc>{changed}</url>\n".encode()


def _http_date(text: str | None) -> float | None:
    try:
        when = None if text is None else parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # sites send malformed dates
        return None
    return None if when is None else (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _iso_or_none(epoch_s: float | None) -> str | None:
    """A time in the format of sitemaps; ``None`` if it is not within the years 1970 to 9999."""
    if epoch_s is None or not 0 <= epoch_s < 253_402_300_800:
        return None
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
