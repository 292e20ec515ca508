"""Selects the URLs that the operator wants forgotten, and takes them out of the store."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from crawler.errors import UsageError
from crawler.frontier.operator import blockable, covered, names_page, unmet
from crawler.reasons import Reason, ReasonCode
from crawler.store.rows import Content
from crawler.store.statements import load_statements
from crawler.url import NotCrawlable, canonicalise

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.maintenance")
_BATCH = 2000
_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """The URLs that a command is about: all of ``site``, the one ``url``, or those in which ``regex`` is found.

    ``site`` is a name as :func:`crawler.frontier.operator.blockable` returns it. One of the three is set.
    """

    site: str = ""
    url: str = ""
    regex: re.Pattern[str] | None = None

    @property
    def text(self) -> str:
        """The URLs in words."""
        return self.site or self.url if self.regex is None else f"every URL that matches {self.regex.pattern!r}"


def wanted(target: str | None, regex: str | None) -> Wanted:
    """Read the arguments of a command. ``https://a.example`` is a site, ``https://a.example/`` its front page.

    Raises :class:`UsageError` unless exactly one of the two is given and can be read.
    """
    if (target is None) is (regex is None):
        raise UsageError("name a SITE or a URL, or give --regex")
    if regex is not None:
        try:
            return Wanted(regex=re.compile(regex))
        except re.error as error:
            raise UsageError(f"--regex: {error}") from None
    assert target is not None
    try:
        if names_page(target):
            return Wanted(url=canonicalise(target))
        return Wanted(site=blockable(target))
    except NotCrawlable as error:
        raise UsageError(str(error)) from None


@dataclass(slots=True)
class Selection:
    """The known URLs that are wanted, by number, with the first in alphabetical order as examples."""

    numbers: list[int] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def listed(self) -> list[str]:
        """The examples as lines, and how many more URLs there are."""
        rest = len(self.numbers) - len(self.examples)
        return [*self.examples, *([f"… and {rest:,} more"] if rest else [])]

    def batches(self) -> Iterator[list[int]]:
        """The numbers, some thousands at a time."""
        rest = iter(self.numbers)
        while batch := list(islice(rest, _BATCH)):
            yield batch


async def unknown_site(store: Store, asked: Wanted) -> str:
    """A sentence if a site is wanted that the crawl does not know; else empty."""
    return unmet(asked.site, await _sites(store)) if asked.site else ""


async def _sites(store: Store) -> list[str]:
    return [row["site"] for row in await store.query(_SQL["sites"])]


async def select(store: Store, asked: Wanted, *, forgotten: bool) -> Selection:
    """The known URLs that are wanted: those that were forgotten, or those that were not.

    Raises :class:`UsageError` if one URL is wanted and the store does not know it.
    """
    found = Selection()

    async def add(sql: str, **parameters: object) -> None:
        async with aclosing(store.rows(sql, parameters)) as rows:
            async for row in rows:
                is_forgotten = row.reason_code == ReasonCode.FORGOTTEN
                if is_forgotten is forgotten and (asked.regex is None or asked.regex.search(row.url)):
                    found.numbers.append(row.url_id)
                    insort(found.examples, row.url)
                    del found.examples[_EXAMPLES:]

    if asked.regex is not None:
        await add(_SQL["all_urls"])
    elif asked.url:
        if (number := await store.find(asked.url)) is None:
            raise UsageError(f"{asked.url}: the store does not know it")
        await add(_SQL["url"], url_id=number)
    else:
        for site in covered(asked.site, await _sites(store)):
            await add(_SQL["urls_of_site"], site=site)
    return found


async def content_of(store: Store, chosen: Selection) -> Content:
    """How much the store holds of a selection."""
    return _sum([await store.maintenance.content_of(batch) for batch in chosen.batches()])


async def forget(store: Store, chosen: Selection, reason: Reason) -> Content:
    """Take the content of a selection out of the store, batch by batch; the same call goes on after a crash.

    The bodies are deleted by :meth:`Maintenance.sweep_forgotten`.
    """
    return _sum([await store.maintenance.forget(batch, reason) for batch in chosen.batches()])


async def redact(store: Store, forgotten: Selection) -> None:
    """Reduce the addresses of forgotten URLs in the request log to their sites."""
    for batch in forgotten.batches():
        await store.maintenance.redact(batch)


def _sum(parts: Sequence[Content]) -> Content:
    return Content(
        sum(part.pages for part in parts), sum(part.versions for part in parts), sum(part.links for part in parts)
    )
