"""The results that commands compute from a crawl, and the sentence on those that are older than the crawl."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from crawler.store.location import db_argument

#: The command that brings all of them up to date.
REFRESH = "crawler refresh-search"


class Computed(StrEnum):
    """The results computed from a crawl, in the order in which the commands use one another's results."""

    NEAR_DUPLICATES = "near_duplicates"
    RANKS = "ranks"
    INDEX = "index"

    @property
    def label(self) -> str:
        return "search index" if self is Computed.INDEX else self.replace("_", "-")


def behind_sentence(computed: Mapping[Computed, bool], db: str) -> str:
    """The sentence that some of these are older than the crawl, with the command to paste; empty if none is."""
    labels = ", ".join(each.label for each in Computed if computed.get(each))
    return f"not up to date with the crawl: {labels}; run `{REFRESH}{db_argument(db)}`" if labels else ""
