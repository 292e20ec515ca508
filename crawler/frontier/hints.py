"""Hints: somebody says that a URL is new, has changed, or is gone. One form for all who may say so.

A hint is never more than a hint (``docs/protocols.md``, section 5): it brings a visit forward, and that visit goes
through scope, robots.txt and pace like any other. Nothing is removed on its word.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from enum import StrEnum
from typing import NamedTuple

from crawler.frontier.offers import Offer
from crawler.frontier.revisit import DAY_S
from crawler.model import Kind
from crawler.reasons import Reason

_FUTURE_S = 86_400.0  # a date further ahead than clocks and time zones go wrong says nothing


#: What servers are set up to answer a folder's URL with.
_START_PAGES = frozenset(
    {
        "index.html",
        "index.htm",
        "index.xhtml",
        "index.php",
        "default.html",
        "default.htm",
        "default.asp",
        "default.aspx",
    }
)

#: Why the scope leaves a URL of that depth out, or ``None``.
Refusal = Callable[[str, int], Reason | None]


class HintKind(StrEnum):
    """What a hint says of a URL."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


#: Sources that were asked to tell: every word of theirs is looked into, however often it was idle. Else whoever forges
#: their mail could talk us out of heeding them.
ASKED_FOR = frozenset({"rup", "rup, all of the site"})


class Hint(NamedTuple):
    """A source says that a page changed.

    ``url`` is canonical, ``at`` in epoch seconds, ``source`` is ``sitemap``, ``feed``, ``rup`` …
    """

    url: str
    kind: HintKind
    at: float
    source: str


class Heeded(NamedTuple):
    """How many hints had which effect.

    ``moved`` counts visits that were brought forward, ``new`` URLs that were taken up. ``ignored`` counts hints that
    changed nothing: the visit is due already or was made since, the URL is out of scope, or the source is mostly
    wrong. ``over`` counts new URLs beyond the number that was allowed.
    """

    moved: int = 0
    new: int = 0
    ignored: int = 0
    over: int = 0

    def plus(self, other: Heeded) -> Heeded:
        return Heeded(*(a + b for a, b in zip(self, other, strict=True)))


def last_moment(at: float) -> float:
    """The last moment that a date may mean: one of exactly midnight, UTC, is most often a day without a time."""
    return at if at % DAY_S else at + DAY_S


def usable(hints: Iterable[Hint], now: float) -> list[Hint]:
    """The latest hint of each URL, without those that date from the future; a bare day counts until its end."""
    latest: dict[str, Hint] = {}
    for hint in hints:
        if hint.at <= now + _FUTURE_S and (hint.url not in latest or latest[hint.url].at < last_moment(hint.at)):
            latest[hint.url] = hint._replace(at=last_moment(hint.at))
    return [hint._replace(at=min(hint.at, now)) for hint in latest.values()]


def folder_of(url: str) -> str | None:
    """The URL of the folder whose start page ``url`` names: ``…/`` for ``…/index.html``; ``None`` for other pages."""
    folder, slash, name = url.rpartition("/")
    return folder + slash if name.lower() in _START_PAGES else None


def with_folders(hints: Iterable[Hint], known: Container[str]) -> list[Hint]:
    """Apply each hint about a folder's start page to the folder.

    A server knows files, and a crawl knows the folders that links name. A hint about a start page becomes a hint about
    its folder if the folder is ``known``. It stays a hint about the page if the page is known or the folder is not.
    """
    told: dict[str, Hint] = {}
    for hint in hints:
        folder = folder_of(hint.url)
        if folder is not None and folder in known:
            told.setdefault(folder, hint._replace(url=folder, kind=HintKind.CHANGED))
        if folder is None or folder not in known or hint.url in known:
            told[hint.url] = hint
    return list(told.values())


def hints_in(offers: Iterable[Offer], source: str) -> tuple[Hint, ...]:
    """What a sitemap or feed says of the pages it lists: those that it dates."""
    return tuple(
        Hint(offer.url, HintKind.CHANGED, offer.lastmod, source)
        for offer in offers
        if offer.lastmod is not None and offer.kind is Kind.PAGE
    )
