"""Hints: somebody says that a URL is new, has changed, or is gone. One form for all who may say so.

A hint is never more than a hint (``docs/protocols.md``, section 5): it brings a visit forward, and that visit goes
through scope, robots.txt and pace like any other. Nothing is removed on its word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from crawler.frontier.offers import Offer
from crawler.model import Kind

_FUTURE_S = 86_400.0  # a date further ahead than clocks and time zones go wrong says nothing


#: Why the scope leaves a URL of that depth out, or ``None``.
Refusal = Callable[[str, int], str | None]


class HintKind(StrEnum):
    """What a hint says of a URL."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


#: Sources that were asked to tell: every word of theirs is looked into, however often it was idle. Else whoever forges
#: their mail could talk us out of heeding them.
ASKED_FOR = frozenset({"rup", "rup, all of the site"})


class Hint(NamedTuple):
    """The canonical ``url`` is so since ``at`` (epoch seconds), says ``source``: ``sitemap``, ``feed``, ``rup`` …"""

    url: str
    kind: HintKind
    at: float
    source: str


class Heeded(NamedTuple):
    """What hints came to: visits brought forward, URLs taken up, and those that changed nothing (known already, seen
    since, out of scope, of a source that is mostly wrong)."""

    moved: int = 0
    new: int = 0
    ignored: int = 0


def usable(hints: Iterable[Hint], now: float) -> list[Hint]:
    """The latest hint of each URL, without those that date from the future."""
    latest: dict[str, Hint] = {}
    for hint in hints:
        if hint.at <= now + _FUTURE_S and (hint.url not in latest or latest[hint.url].at < hint.at):
            latest[hint.url] = hint._replace(at=min(hint.at, now))
    return list(latest.values())


def hints_in(offers: Iterable[Offer], source: str) -> tuple[Hint, ...]:
    """What a sitemap or feed says of the pages it lists: those that it dates."""
    return tuple(
        Hint(offer.url, HintKind.CHANGED, offer.lastmod, source)
        for offer in offers
        if offer.lastmod is not None and offer.kind is Kind.PAGE
    )
