"""What is found in a sitemap, and the limits on looking for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crawler.sitemaps.dates import epoch_s
from crawler.url import NotCrawlable, canonicalise


class Kind(StrEnum):
    """The formats that the protocol takes ("Other Sitemap formats")."""

    URLSET = "urlset"
    INDEX = "index"  # a list of sitemaps
    RSS = "rss"  # 0.9x, 1.0 and 2.0
    ATOM = "atom"
    TEXT = "text"  # a URL a line
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SitemapLimits:
    """What one sitemap may cost. The protocol's own bounds are 50,000 entries and 52,428,800 bytes unpacked."""

    max_entries: int = 50_000
    max_bytes: int = 52_428_800
    max_depth: int = 100  # of nested elements; a feed may hold the markup of whole articles
    max_elements: int = 1_000_000  # XML elements, or lines of text


@dataclass(frozen=True, slots=True)
class Entry:
    """A URL that a sitemap lists. ``lastmod`` in seconds since the epoch, as claimed: it may lie in the future."""

    url: str
    lastmod: float | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one file says: ``entries`` (pages) or, of an index, ``sitemaps``; each URL canonical, and once."""

    kind: Kind
    entries: tuple[Entry, ...] = ()
    sitemaps: tuple[str, ...] = ()
    truncated: bool = False  # more was there, or was meant to be, than was read
    notes: tuple[str, ...] = ()  # for people: what was passed over, and why reading ended early


class Stop(Exception):
    """Reading ends here; ``str()`` says why."""


class Findings:
    """Collects entries while a sitemap is read, and counts what is none."""

    def __init__(self, limits: SitemapLimits) -> None:
        self.limits = limits
        self.entries: dict[str, Entry] = {}
        self._seen = 0
        self._refused = 0
        self._first_refusal = ""
        self._odd_dates = 0

    def add(self, url: str, base: str | None, date: str) -> None:
        """Take up a URL as written, resolved against ``base`` where one is given, and its date, ``""`` for none.

        Raises :class:`Stop` where there are more entries than the limit, good and bad together.
        """
        if self._seen >= self.limits.max_entries:
            raise Stop(f"more than {self.limits.max_entries} entries")
        self._seen += 1
        try:
            if not url:
                raise NotCrawlable("no URL")
            # Octets that are not in the encoding: whatever URL was meant, it is not this one.
            if "\ufffd" in url:
                raise NotCrawlable("a URL in another encoding than declared")
            canonical = canonicalise(url, base)
        except NotCrawlable as error:
            self._first_refusal = self._first_refusal or str(error)
            self._refused += 1
            return
        if canonical not in self.entries:
            lastmod = epoch_s(date)
            self._odd_dates += bool(date) and lastmod is None
            self.entries[canonical] = Entry(canonical, lastmod)

    def notes(self) -> list[str]:
        """What was passed over."""
        notes = []
        if self._refused:
            notes.append(f"{self._refused} of {self._seen} entries passed over, the first: {self._first_refusal}")
        if self._odd_dates:
            notes.append(f"{self._odd_dates} dates not understood")
        return notes
