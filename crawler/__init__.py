"""A polite asynchronous web crawler that obeys what sites ask, loses nothing, and can prove both.

>>> import crawler
>>> async with crawler.open("crawl.db", {"identity.contact": "https://example.org/bot"}) as crawl:
...     async for page in crawl.run(seeds=["https://example.org/"]):
...         print(page.url, page.status, page.title, len(page.links))
"""

from typing import TYPE_CHECKING

from crawler.errors import (
    ConfigError,
    CrawlerError,
    HookError,
    SeedError,
    StatementError,
    StoreError,
    StoreInUse,
    StoreVersionError,
    UsageError,
)
from crawler.version import VERSION as __version__  # noqa: N811 - the usual name of a package's version

__all__ = [
    "MISSING",
    "ConfigError",
    "CrawlerError",
    "FoundLink",
    "HookError",
    "Link",
    "OpenCrawl",
    "Page",
    "PageLink",
    "SeedError",
    "StatementError",
    "StoreError",
    "StoreInUse",
    "StoreVersionError",
    "UsageError",
    "__version__",
    "open",
]

if TYPE_CHECKING:
    from crawler.api import OpenCrawl, open
    from crawler.engine.hooks import FoundLink
    from crawler.model import MISSING, Link
    from crawler.stored_pages import Page, PageLink
else:  # if a type checker saw __getattr__, it would accept any name

    def __getattr__(name):
        """Load the API when a program asks for it: ``crawler robots check`` does not need aiohttp."""
        if name in __all__:
            from crawler import api, model
            from crawler import stored_pages as pages
            from crawler.engine import hooks

            home = next(module for module in (api, pages, model, hooks) if name in vars(module))
            return getattr(home, name)
        raise AttributeError(f"module 'crawler' has no attribute {name!r}")

    def __dir__():
        """All public names, those that are not loaded yet included, for ``help`` and for completion."""
        return sorted({*globals(), *__all__})
