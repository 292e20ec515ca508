"""What a site says it has: sitemaps of every kind, and for whom they may speak. All of it is pure.

The ideas:

* **A sitemap is a hint.** What is read here are offers; robots.txt, scope and politeness decide as for any link.
* **Reading never fails.** :func:`~crawler.sitemaps.read.read_sitemap` takes any bytes. What came before a cut, a
  limit or an error is kept, and a note says what is missing.
* **Bounded.** A small body can stand for a huge one (gzip, entities, nesting), so bytes are counted after unpacking,
  and no entity is ever declared or fetched.
* **Nobody speaks for another site** unless that site's robots.txt says so: :class:`~crawler.sitemaps.trust.Trust`.

From the bottom: ``findings`` (the data) · ``dates`` → ``unpack`` (gzip, encodings) → ``markup`` (XML) → ``read``;
beside them ``trust``.
"""

from crawler.sitemaps.findings import Entry, Kind, Sitemap, SitemapLimits
from crawler.sitemaps.read import read_sitemap
from crawler.sitemaps.trust import Trust

__all__ = ["Entry", "Kind", "Sitemap", "SitemapLimits", "Trust", "read_sitemap"]
