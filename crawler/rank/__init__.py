"""Link popularity: PageRank over the link graph of the crawl (docs/search.md). Needs the extra ``rank``.

``link_graph`` reads the graph, ``pagerank`` is the pure core, ``ranking`` stores the ranks and prints the highest.
"""

from typing import Any

from crawler.errors import require


def load_ranking() -> Any:
    """:mod:`crawler.rank.ranking`. Raises :class:`UsageError` if the extra is not installed."""
    return require("rank", "`crawler rank`", "crawler.rank.ranking")
