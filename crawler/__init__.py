"""A polite asynchronous web crawler: obeys what sites ask, loses nothing, and can prove both.

>>> import crawler
>>> async with crawler.open("crawl.db", {"identity.contact": "https://example.org/bot"}) as crawl:
...     async for page in crawl.run(seeds=["https://example.org/"]):
...         print(page.url, page.status, page.title, len(page.links))
"""

from typing import TYPE_CHECKING

from crawler.about import VERSION as __version__
from crawler.errors import (
    ConfigError,
    CrawlerError,
    SeedError,
    StoreError,
    StoreInUse,
    StoreVersionError,
    UsageError,
)

__all__ = [
    "ConfigError",
    "CrawlerError",
    "Page",
    "PageLink",
    "SeedError",
    "StoreError",
    "StoreInUse",
    "StoreVersionError",
    "UsageError",
    "__version__",
    "open",
]

if TYPE_CHECKING:
    from crawler.api import open
    from crawler.pages import Page, PageLink
else:  # a type checker would take it for leave to write any name

    def __getattr__(name):
        """Load the API when it is asked for: ``crawler robots check`` needs none of aiohttp."""
        if name in __all__:
            from crawler import api, pages

            return getattr(api if name == "open" else pages, name)
        raise AttributeError(f"module 'crawler' has no attribute {name!r}")
