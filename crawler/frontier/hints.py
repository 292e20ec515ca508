"""Hints: a sitemap, a feed, a RUP server or the operator reports that a URL is new, has changed, or is gone.

A hint brings a visit forward (``docs/protocols.md``, section 5). Scope, robots.txt and pace hold for that visit as for
any other. No page is removed because of a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from enum import StrEnum
from typing import NamedTuple

from crawler.frontier.offers import Offer
from crawler.frontier.revisit import DAY_S
from crawler.model import Kind
from crawler.reasons import Reason

_FUTURE_S = 86_400.0  # a date further ahead is ignored; a nearer one may come from a wrong clock or time zone


#: The files with which servers usually answer a request for their folder.
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

#: Returns why the scope refuses a URL at a depth, or ``None``.
Refusal = Callable[[str, int], Reason | None]


class HintKind(StrEnum):
    """The kind of change that a hint reports about a URL."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


#: The operator, and sources to which the crawler has subscribed. All their hints are followed at once, however many
#: were wrong. Otherwise an attacker who forges their mail could make the crawler ignore them.
ASKED_FOR = frozenset({"user", "rup", "rup, all of the site"})


class Hint(NamedTuple):
    """A source says that a page is new, has changed or is gone.

    ``url`` is canonical, ``at`` in epoch seconds, ``source`` is ``sitemap``, ``feed``, ``rup`` …
    """

    url: str
    kind: HintKind
    at: float
    source: str


class HintCounts(NamedTuple):
    """The effect of hints, as counts.

    ``moved``: visits brought forward. ``new``: URLs added. ``ignored``: hints without effect, because the URL is known,
    was visited since or is out of scope, or because the source is mostly wrong. ``over``: new URLs beyond the limit.
    """

    moved: int = 0
    new: int = 0
    ignored: int = 0
    over: int = 0

    def plus(self, other: HintCounts) -> HintCounts:
        return HintCounts(*(a + b for a, b in zip(self, other, strict=True)))


def last_moment(at: float) -> float:
    """The last moment that a date may mean. Midnight UTC mostly stands for a day without a time, so the day's end."""
    return at if at % DAY_S else at + DAY_S


def usable(hints: Iterable[Hint], now: float) -> list[Hint]:
    """The latest hint of each URL, without hints from the future. A day without a time counts until its end."""
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
    """Replace hints about start pages by hints about their folders if the folder is ``known``.

    A server reports the file (``/docs/index.html``), while links often name the folder (``/docs/``). The hint about the
    file stays if the file is known too, or if the folder is not.
    """
    replaced: dict[str, Hint] = {}
    for hint in hints:
        folder = folder_of(hint.url)
        if folder is not None and folder in known:
            replaced.setdefault(folder, hint._replace(url=folder, kind=HintKind.CHANGED))
        if folder is None or folder not in known or hint.url in known:
            replaced[hint.url] = hint
    return list(replaced.values())


def hints_in(offers: Iterable[Offer], source: str) -> tuple[Hint, ...]:
    """The hints in a sitemap or feed: one for each listed page with a date."""
    return tuple(
        Hint(offer.url, HintKind.CHANGED, offer.lastmod, source)
        for offer in offers
        if offer.lastmod is not None and offer.kind is Kind.PAGE
    )
