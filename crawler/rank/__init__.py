"""Link popularity: PageRank over the link graph of the crawl. Needs the extra ``rank``."""

from importlib import import_module
from types import ModuleType

from crawler.errors import missing_extra


def load_ranking() -> ModuleType:
    """:mod:`crawler.rank.ranking`. Raises :class:`UsageError` if the extra is not installed."""
    try:
        return import_module("crawler.rank.ranking")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("numpy", "scipy"):
            raise
        raise missing_extra("ranks need scipy", "rank") from None
