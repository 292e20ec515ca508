"""The files that a site is asked for beside its pages: its tdmrep.json, and the answer to a path that cannot exist."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from crawler.engine.answers import tagged
from crawler.engine.gate import FetchPermit
from crawler.engine.parser_pool import PageReader
from crawler.engine.permission import Closed, permission
from crawler.model import Fetched, FetchResult, Purpose, Request, SiteFile
from crawler.page.soft_404 import NO_EXAMPLE, NotFoundExample, example_of, example_path, unknown_example
from crawler.robots.readings import SiteRules
from crawler.robots.tdmrep import MAX_BYTES, NO_RULES, TDMREP_PATH, TdmRules, interpret_tdmrep, tdm_rules
from crawler.store.rows import ClaimedSite

if TYPE_CHECKING:
    from crawler.engine.crawl import Crawl

_KEPT = 1_000
#: The octets of an answer to a path that cannot exist that are read.
_EXAMPLE_BYTES = 1 << 20

T = TypeVar("T")


class FileKind(NamedTuple, Generic[T]):
    """A kind of file. ``path_of`` gives its path on a site, and ``nothing`` stands for a file that must not be had.

    ``interpret`` makes the row for the store and the meaning of an answer under the rules of robots.txt, and ``stored``
    the meaning of a row. A file that ``lasts`` is requested once, another one once for each robots.txt copy of its
    site.
    """

    purpose: Purpose
    max_bytes: int
    path_of: Callable[[str], str]
    interpret: Callable[[FetchResult, str, SiteRules | None], Awaitable[tuple[SiteFile, T]]]
    stored: Callable[[SiteFile, str], T]
    nothing: T
    lasts: bool = False


class _Known(NamedTuple, Generic[T]):
    fetched_at: float
    meaning: T


class SiteFiles(Generic[T]):
    """The files of one kind of the sites that are worked on, each requested before the first page of its site.

    A file is requested if robots.txt allows its path. Without an answer it states nothing.
    """

    def __init__(self, kind: FileKind[T], context: Crawl) -> None:
        self._kind = kind
        self._context = context
        self._known: OrderedDict[int, _Known[T]] = OrderedDict()

    async def of(self, site: ClaimedSite, group: str, rules: SiteRules | None) -> T | None:
        """The file of ``site``, requested under its robots copy in force, whose rules are ``rules``.

        ``None`` if the page must wait: the robots copy has run out, or the pause after this request is long. Raises
        :class:`crawler.engine.gate.Unsent` and :class:`crawler.errors.StoreError`.
        """
        assert site.copy is not None, "a page is about to be requested"
        kind, path = self._kind, self._kind.path_of(site.name)
        known = self._known.get(site.id)
        if known is not None and kind.lasts:
            return known.meaning
        allowed = permission(site.name, site.copy, rules, path)
        if isinstance(allowed, Closed):
            return kind.nothing
        known = known or await self._stored(site, path)
        is_asked = known is None or (not kind.lasts and known.fetched_at < site.copy.fetched_at)
        if is_asked:
            permit = FetchPermit.under(site, group, site.copy, rules, allowed)
            request = Request(f"{site.name}{path}", kind.purpose, max_bytes=kind.max_bytes, any_type=True)
            answer = await self._context.gate.send(request, permit)
            if answer is None:
                return None
            file, meaning = await kind.interpret(answer, site.name, rules)
            known = _Known(file.fetched_at, meaning)
            self._context.outbox.add_file(site.id, file)
        assert known is not None, "it has been requested"
        self._known[site.id] = known
        self._known.move_to_end(site.id)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return None if is_asked and self._context.gate.pauses_long(group) else known.meaning

    async def _stored(self, site: ClaimedSite, path: str) -> _Known[T] | None:
        file = await self._context.store.site_file(site.id, path)
        return None if file is None else _Known(file.fetched_at, self._kind.stored(file, site.name))


def tdmrep_kind() -> FileKind[TdmRules]:
    """``/.well-known/tdmrep.json``: it is as fresh as robots.txt is."""

    async def interpret(answer: FetchResult, site: str, rules: SiteRules | None) -> tuple[SiteFile, TdmRules]:
        return interpret_tdmrep(answer, site)

    return FileKind(
        Purpose.TDMREP,
        MAX_BYTES,
        lambda site: TDMREP_PATH,
        interpret,
        lambda file, site: NO_RULES if file.note else tdm_rules(file.body, site),
        NO_RULES,
    )


def soft_404_kind(reader: PageReader) -> FileKind[NotFoundExample]:
    """The answer of a site to a path that cannot exist. ``reader`` reads it as it reads pages."""

    async def interpret(answer: FetchResult, site: str, rules: SiteRules | None) -> tuple[SiteFile, NotFoundExample]:
        if not isinstance(answer, Fetched):
            return unknown_example(answer, site)
        facts = await reader.read(tagged(answer, rules), shingles=True)
        return example_of(answer, facts, site)

    return FileKind(
        Purpose.SOFT_404,
        _EXAMPLE_BYTES,
        example_path,
        interpret,
        lambda file, site: NotFoundExample.unpacked(file.body),
        NO_EXAMPLE,
        lasts=True,
    )
