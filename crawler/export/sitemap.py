"""A sitemap of the pages that were fetched, still exist, may be indexed, and are not duplicates.

Source: https://www.sitemaps.org/protocol.html.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from itertools import groupby
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from crawler.atomic_files import AtomicFile
from crawler.dates import http_date
from crawler.errors import Argument, UsageError
from crawler.export.job import Job

URLS_PER_FILE = 50_000
SITEMAPS_PER_INDEX = 50_000
BYTES_PER_FILE = 50 * 1024 * 1024

_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{_NAMESPACE}">\n'.encode()
_TAIL = b"</urlset>\n"


#: Why a page is in no sitemap, by the codes of the statement ``not_in_sitemap``.
_LEFT_OUT = {
    "noindex": "NOINDEX",
    "gone": "gone",
    "canonical": "naming another page as canonical",
    "moved": "redirected or failed at the last visit",
    "refresh": "refreshing to another page",
}


@dataclass(frozen=True, slots=True)
class _Part:
    site: str
    file: AtomicFile


async def write_sitemap(job: Job) -> None:
    """Write one file, or an index and several files beside it: each within the limits of the protocol, and of one site.

    The files of several sites have the names ``OUT-HOST.xml``, several files of a site ``OUT-1.xml`` or
    ``OUT-HOST-1.xml``. The index expects them at the root of their sites, because a sitemap speaks for the host that
    serves it. A file replaces another only when all are written.
    """
    judged = job.sql("judged_for_sitemap")
    for row in await job.store.query(job.sql("not_in_sitemap", judged=judged)):
        job.tally.left_out_for[_LEFT_OUT[row["why"]]] += row["pages"]
    parts: list[_Part] = []
    urls = size = 0
    async for row in job.rows(job.sql("sitemap", judged=judged), job.not_shown):
        entry = _entry(row.url, _iso_or_none(row.lastmod) or _iso_or_none(http_date(row.last_modified or "")))
        is_full = urls == URLS_PER_FILE or size + len(entry) > BYTES_PER_FILE
        if not parts or is_full or row.site != parts[-1].site:
            parts.append(_next(job, parts, row.site))
            urls, size = 0, len(_HEAD) + len(_TAIL)
        parts[-1].file.file.write(entry)
        urls, size = urls + 1, size + len(entry)
    if not parts:
        parts.append(_next(job, parts, ""))
    _end(parts[-1])
    if isinstance(last := parts[-1].file.file, BytesIO):
        job.open().write(last.getbuffer())
    elif len(parts) > 1:
        _write_index(job, parts)


def _next(job: Job, parts: list[_Part], site: str) -> _Part:
    """Begin another file. Its name is known at the end only."""
    if parts and not isinstance(job.out, Path):
        raise UsageError(
            f"{URLS_PER_FILE:,} URLs or {BYTES_PER_FILE >> 20} MiB of one site are the limit of a sitemap: name a "
            "file, so that several can stand beside it, or choose a site with ",
            Argument("where", f"site = '{parts[0].site}'"),
        )
    if len(parts) == SITEMAPS_PER_INDEX:
        raise UsageError(
            f"an index names {SITEMAPS_PER_INDEX:,} sitemaps at most: choose sites with ", Argument("where")
        )
    if parts:
        _end(parts[-1])
    # A stream gets the file at the end, so that it gets nothing if one file is too small for all.
    part = _Part(site, job.files.open(job.out) if isinstance(job.out, Path) else AtomicFile(BytesIO()))
    part.file.file.write(_HEAD)
    return part


def _end(part: _Part) -> None:
    part.file.file.write(_TAIL)
    part.file.finish()


def _write_index(job: Job, parts: list[_Part]) -> None:
    """Name the files, and write the index of them."""
    assert isinstance(job.out, Path)
    out = job.out.resolve()
    file = job.open()
    file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="{_NAMESPACE}">\n'.encode())
    sites = {site: list(of_site) for site, of_site in groupby(parts, key=lambda part: part.site)}
    for site, name in zip(sites, _names(list(sites)), strict=True):
        for number, part in enumerate(sites[site], 1):
            words = [out.stem, *([name] if len(sites) > 1 else []), *([str(number)] if len(sites[site]) > 1 else [])]
            part.file.place = out.with_name("-".join(words) + out.suffix)
            file.write(f"<sitemap><loc>{escape(f'{site}/{quote(part.file.place.name)}')}</loc></sitemap>\n".encode())
    file.write(b"</sitemapindex>\n")


def _names(sites: Sequence[str]) -> Iterator[str]:
    """A name for each site that a file can have: its host and port; with the scheme if two sites have the same."""
    hosts = Counter(site.partition("://")[2] for site in sites)
    for site in sites:
        host = site.partition("://")[2]
        yield re.sub(r"[^\w.]+", "-", host if hosts[host] == 1 else site).strip("-")


def _entry(url: str, lastmod: str | None) -> bytes:
    changed = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<url><loc>{escape(url)}</loc>{changed}</url>\n".encode()


def _iso_or_none(epoch_s: float | None) -> str | None:
    """A time in the format of sitemaps; ``None`` if it is not within the years 1970 to 9999."""
    if epoch_s is None or not 0 <= epoch_s < 253_402_300_800:
        return None
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
