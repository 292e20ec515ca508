"""A polite asynchronous web crawler: obeys what sites ask, loses nothing, and can prove both.

>>> import crawler
>>> async with crawler.open("crawl.db", {"identity.contact": "https://example.org/bot"}) as crawl:
...     async for page in crawl.run(seeds=["https://example.org/"]):
...         print(page.url, page.status, page.title, len(page.links))
"""

from typing import TYPE_CHECKING, Any

from crawler.about import VERSION as __version__

__all__ = ["Page", "PageLink", "__version__", "open"]

if TYPE_CHECKING:
    from crawler.api import open
    from crawler.pages import Page, PageLink


def __getattr__(name: str) -> Any:
    """Load the API when it is asked for: ``crawler robots check`` needs none of aiohttp."""
    if name in __all__:
        from crawler import api, pages

        return getattr(api if name == "open" else pages, name)
    raise AttributeError(f"module 'crawler' has no attribute {name!r}")
