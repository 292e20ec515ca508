"""Read one sitemap of any format. Source: https://www.sitemaps.org/protocol.html.

Decisions for cases that the protocol leaves open, or that sites handle otherwise:

* The octets decide the format: file names and Content-Types are often wrong.
* The protocol forbids relative URLs. In XML they are resolved, because their meaning is clear. In a text file any
  line would be a relative URL, so URLs must be absolute there.
* ``changefreq`` and ``priority`` are ignored: they are the site's guesses about itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from crawler.sitemaps.findings import Findings, Sitemap, SitemapKind, SitemapLimits, Stop
from crawler.sitemaps.markup import read_markup
from crawler.sitemaps.unpack import characters
from crawler.url import MAX_URL_CHARS

_DEFAULT_LIMITS = SitemapLimits()


def read_sitemap(body: bytes, *, url: str, content_type: str = "", limits: SitemapLimits = _DEFAULT_LIMITS) -> Sitemap:
    """Read ``body``, fetched from the canonical ``url``. Never raises because of its contents; takes linear time.

    ``content_type`` appears only in the note on a body that is no sitemap. 50,000 entries take about a third of a
    second: call this function outside the event loop.
    """
    findings = Findings(limits)
    pieces = characters(body, limits.max_bytes)
    try:
        first = next(pieces, "")
    except Stop as stop:
        return Sitemap(SitemapKind.UNKNOWN, notes=(_no_sitemap(str(stop), content_type),))
    read = read_markup if first.startswith("<") else _read_text
    kind, stopped = read(chain((first,), pieces), url=url, findings=findings)
    if kind is SitemapKind.UNKNOWN:
        return Sitemap(kind, notes=(_no_sitemap(stopped, content_type),))
    notes = findings.notes()
    if stopped:
        notes.append(f"not read to the end: {stopped}")
    entries = tuple(findings.entries.values())
    return Sitemap(
        kind,
        entries=() if kind is SitemapKind.INDEX else entries,
        sitemaps=tuple(findings.entries) if kind is SitemapKind.INDEX else (),
        truncated=bool(stopped),
        notes=tuple(notes),
    )


def _no_sitemap(why: str, content_type: str) -> str:
    served = f" (served as {content_type[:60]!r})" if content_type else ""
    return f"not a sitemap{served}: {why}"


def _read_text(pieces: Iterable[str], *, url: str, findings: Findings) -> tuple[SitemapKind, str]:
    """Collect the URLs of a text sitemap, one a line. Returns what ``read_markup`` returns."""
    stopped = ""
    try:
        for number, line in enumerate(_lines(pieces)):
            if number >= findings.limits.max_elements:
                raise Stop(f"more than {findings.limits.max_elements} lines")
            text = line.strip()
            if text:
                findings.add(text, None, "")
    except Stop as stop:
        stopped = str(stop)
    if findings.entries:
        return SitemapKind.TEXT, stopped
    return SitemapKind.UNKNOWN, stopped or "neither XML nor a list of URLs"


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text, ended by CR, LF or CRLF. A line that is too long for a URL is cut."""
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).replace("\r", "\n").split("\n")
        yield from lines
        rest = rest[: MAX_URL_CHARS + 1]
    yield rest
