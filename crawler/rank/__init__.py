"""Link popularity: PageRank over the link graph of the crawl. Needs the extra ``rank``."""

from importlib import import_module
from types import ModuleType

from crawler.errors import requiring


def load_ranking() -> ModuleType:
    """:mod:`crawler.rank.ranking`. Raises :class:`UsageError` if the extra is not installed."""
    with requiring("rank", "`crawler rank`", "numpy", "scipy"):
        return import_module("crawler.rank.ranking")
