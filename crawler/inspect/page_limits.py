"""The limits on pages of the last run, which keep queued URLs from being requested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.settings.settings import Settings
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_UNLIMITED = 1 << 62

#: A condition on the site ``s`` of the group ``g``, over the views by number: no queued URL of it may be claimed.
AT_LIMIT = load_statements("crawler.inspect")["at_limit"]


def pages_per_site(settings: Settings) -> int:
    """The limit on the pages of a site, as a parameter of a statement."""
    most = settings.limits.max_pages_per_site
    return _UNLIMITED if most is None else most


async def page_limit_reached(store: Store, settings: Settings) -> bool:
    """Whether the crawl has all the pages that ``settings`` allow."""
    most = settings.limits.max_pages
    return most is not None and await store.fetched_count() >= most
