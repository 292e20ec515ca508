"""Link popularity: PageRank over the link graph of the crawl. Needs the extra ``rank``."""

from typing import Any

from crawler.errors import require


def load_ranking() -> Any:
    """:mod:`crawler.rank.ranking`. Raises :class:`UsageError` if the extra is not installed."""
    return require("rank", "`crawler rank`", "crawler.rank.ranking")
