"""Sitemaps and feeds of every format: reading them, and deciding which of their URLs count. Every module is pure.

* **A sitemap is a hint.** Its entries are offers; robots.txt, scope and politeness decide as for any link.
* **Reading never fails.** :func:`~crawler.sitemaps.read.read_sitemap` accepts any bytes. It keeps the entries before
  a cut, a limit or an error, and adds a note about the rest.
* **Work is bounded.** A small body can expand to a huge one (gzip, entities, nesting). Bytes are counted after
  decompression, and no entity is ever declared or fetched.
* **A sitemap counts for another site** only if that site's robots.txt names it: :class:`~crawler.sitemaps.trust.Trust`.

Modules, lowest first: ``findings`` (the data) → ``unpack`` (gzip, encodings) → ``markup`` (XML) → ``read``.
``trust`` stands beside them.
"""
