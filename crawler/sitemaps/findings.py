"""The contents of a sitemap, and the limits on reading it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from crawler.dates import any_date
from crawler.url import NotCrawlable, canonicalise


class SitemapKind(StrEnum):
    """The formats that the protocol accepts ("Other Sitemap formats")."""

    URLSET = "urlset"
    INDEX = "index"  # a list of sitemaps
    RSS = "rss"  # 0.9x, 1.0 and 2.0
    ATOM = "atom"
    TEXT = "text"  # a URL a line
    UNKNOWN = "unknown"


class SitemapLimits(msgspec.Struct, frozen=True):
    """Bounds on one sitemap. The protocol's own bounds are 50,000 entries and 52,428,800 bytes decompressed."""

    max_entries: int = 50_000
    max_bytes: int = 52_428_800
    max_depth: int = 100  # of nested elements; a feed may contain the markup of whole articles
    max_elements: int = 1_000_000  # XML elements, or lines of text
    max_chars: int = 16_777_216  # of the URLs together, in full: relative ones are short in the file


class Entry(msgspec.Struct, frozen=True):
    """A URL that a sitemap lists. ``lastmod`` is the site's claim in epoch seconds, and may lie in the future."""

    url: str
    lastmod: float | None = None


class Sitemap(msgspec.Struct, frozen=True):
    """The contents of one file: ``entries`` (pages) or, of an index, ``sitemaps``. Each URL is canonical and unique."""

    kind: SitemapKind
    entries: tuple[Entry, ...] = ()
    sitemaps: tuple[str, ...] = ()
    truncated: bool = False  # the file had, or should have had, more than was read
    notes: tuple[str, ...] = ()  # for display: the entries ignored, and the reason why reading ended early


class Stop(Exception):
    """Reading ends here. ``str()`` is the reason."""


class Findings:
    """Collect entries while a sitemap is read, and count invalid ones."""

    def __init__(self, limits: SitemapLimits) -> None:
        self.limits = limits
        self.entries: dict[str, Entry] = {}
        self._seen = self._chars = 0
        self._refused = 0
        self._first_refusal = ""
        self._odd_dates = 0

    def add(self, url: str, base: str | None, date: str) -> None:
        """Add a URL as written, resolved against ``base`` unless it is None, and its date (``""``: no date).

        Raises :class:`Stop` beyond the limit on entries, valid and invalid together, or on the length of all URLs.
        """
        if self._seen >= self.limits.max_entries:
            raise Stop(f"more than {self.limits.max_entries} entries")
        self._seen += 1
        try:
            if not url:
                raise NotCrawlable("no URL")
            # U+FFFD stands for octets outside the declared encoding, so the URL is not the one that was meant.
            if "\ufffd" in url:
                raise NotCrawlable("a URL in another encoding than declared")
            canonical = canonicalise(url, base)
        except NotCrawlable as error:
            self._first_refusal = self._first_refusal or str(error)
            self._refused += 1
            return
        if canonical not in self.entries:
            self._chars += len(canonical)
            if self._chars > self.limits.max_chars:
                raise Stop(f"URLs of more than {self.limits.max_chars} characters")
            lastmod = any_date(date)
            self._odd_dates += bool(date) and lastmod is None
            self.entries[canonical] = Entry(canonical, lastmod)

    def notes(self) -> list[str]:
        """Notes about the entries and dates that were ignored."""
        notes = []
        if self._refused:
            notes.append(f"{self._refused} of {self._seen} entries ignored, the first: {self._first_refusal}")
        if self._odd_dates:
            notes.append(f"{self._odd_dates} dates not understood")
        return notes
