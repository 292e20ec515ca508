"""Reading one sitemap, of whatever kind. Source: https://www.sitemaps.org/protocol.html.

Where the protocol is silent, or sites do otherwise:

* What it is, is told from the octets: names and Content-Types are often wrong.
* Relative URLs, which the protocol forbids, are resolved in XML, where nothing else could be meant. In a text file
  any line would be one, so there a URL must be whole.
* ``changefreq`` and ``priority`` are not read: they are guesses of the site about itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from crawler.sitemaps.findings import Findings, Kind, Sitemap, SitemapLimits, Stop
from crawler.sitemaps.markup import read_markup
from crawler.sitemaps.unpack import characters
from crawler.url import MAX_URL_CHARS

_DEFAULT_LIMITS = SitemapLimits()


def read_sitemap(body: bytes, *, url: str, content_type: str = "", limits: SitemapLimits = _DEFAULT_LIMITS) -> Sitemap:
    """Read ``body``, fetched from the canonical ``url``; never raises for what it holds, and takes linear time.

    ``content_type`` is only told in the note on a body that is no sitemap. A large file takes time (50,000
    entries about a third of a second): call this outside the event loop.
    """
    findings = Findings(limits)
    pieces = characters(body, limits.max_bytes)
    try:
        first = next(pieces, "")
    except Stop as stop:
        return Sitemap(Kind.UNKNOWN, notes=(_no_sitemap(str(stop), content_type),))
    read = read_markup if first.startswith("<") else _read_text
    kind, stopped = read(chain((first,), pieces), url=url, findings=findings)
    if kind is Kind.UNKNOWN:
        return Sitemap(kind, notes=(_no_sitemap(stopped, content_type),))
    notes = findings.notes()
    if stopped:
        notes.append(f"not read to the end: {stopped}")
    entries = tuple(findings.entries.values())
    return Sitemap(
        kind,
        entries=() if kind is Kind.INDEX else entries,
        sitemaps=tuple(findings.entries) if kind is Kind.INDEX else (),
        truncated=bool(stopped),
        notes=tuple(notes),
    )


def _no_sitemap(why: str, content_type: str) -> str:
    served = f" (served as {content_type[:60]!r})" if content_type else ""
    return f"not a sitemap{served}: {why}"


def _read_text(pieces: Iterable[str], *, url: str, findings: Findings) -> tuple[Kind, str]:
    """Gather the URLs of a text sitemap, one a line; returns as :func:`~crawler.sitemaps.markup.read_markup` does."""
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
        return Kind.TEXT, stopped
    return Kind.UNKNOWN, stopped or "neither XML nor a list of URLs"


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text, ended by CR, LF or CRLF; of one that is too long for a URL, only the beginning."""
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).replace("\r", "\n").split("\n")
        yield from lines
        rest = rest[: MAX_URL_CHARS + 1]
    yield rest
