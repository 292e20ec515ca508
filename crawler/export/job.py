"""What is to be exported: a view's rows that a condition keeps, from one moment of the store."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from crawler.atomic_files import AtomicFile, AtomicFiles
from crawler.errors import Argument, StatementError, UsageError
from crawler.export.view_columns import VIEWS
from crawler.page.directives import asked_of
from crawler.store.protocols import Store

# Strings, quoted names and comments, in which brackets and semicolons mean nothing; then what means something.
_TOKENS = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\[[^]]*]|--[^\n]*|/\*.*?(?:\*/|\Z)|(?P<mark>['\"`[();])",
    re.DOTALL,
)


#: Whether a row is to be exported.
Keep = Callable[[tuple[Any, ...]], bool]


@dataclass(slots=True)
class ExportProgress:
    """How far an export is: ``written`` counts what the format holds (rows, pages, links, URLs)."""

    written: int = 0
    left_out: int = 0  # pages that may not be shown any more; where the format is of bodies, also those without one


@dataclass(frozen=True, slots=True)
class Job:
    """One export. ``now`` is in seconds since the epoch."""

    store: Store
    view: str
    where: str | None
    files: AtomicFiles
    readers: AsyncExitStack  # whatever still reads the store when the export ends is closed with it
    out: Path | BinaryIO
    tally: ExportProgress
    now: float
    bodies: bool = False
    base_url: str | None = None

    def __post_init__(self) -> None:
        if self.where is not None:
            require_one_expression(self.where)

    @property
    def kept(self) -> str:
        """The rows to export, as a subquery. The condition stands on a line of its own: it may end in a comment."""
        condition = f" WHERE (\n{self.where}\n)" if self.where else ""
        return f"(SELECT * FROM {self.view}{condition})"

    def open(self) -> BinaryIO:
        """The one file of this export."""
        return self.output().file

    def output(self) -> AtomicFile:
        return self.files.open(self.out)

    async def rows(self, sql: str, keep: Keep = lambda row: True) -> AsyncIterator[tuple[Any, ...]]:
        """The rows of a query, each counted as written once it is done with; what is not to be kept, as left out."""
        found = self.store.rows(sql)
        self.readers.push_async_callback(found.aclose)
        async for row in found:
            if keep(row):
                yield row
                self.tally.written += 1
            else:
                self.tally.left_out += 1

    def is_shown(self, row: tuple[Any, ...]) -> bool:
        """Whether a page, whose ``directives`` stand last in ``row``, may still be shown (``unavailable_after``)."""
        return asked_of(row[-1]).until > self.now

    def is_copied(self, row: tuple[Any, ...]) -> bool:
        """Whether its body may be handed out: to whom a copy is refused (NOARCHIVE) no export gives one."""
        asked = asked_of(row[-1])
        return asked.archive and asked.until > self.now

    async def require_condition(self) -> None:
        """Raise :class:`UsageError` for a condition that the view cannot be asked."""
        await self.store.query(f"SELECT 1 FROM {self.kept} AS kept LIMIT 0")

    @contextmanager
    def blaming_condition(self) -> Iterator[None]:
        """What the database says against the statement is said of the condition, which is all that is not ours."""
        try:
            yield
        except StatementError as error:
            if not self.where:
                raise
            columns = ", ".join(VIEWS[self.view])
            raise UsageError(
                Argument("where", self.where), f": {error.__cause__} (the columns of {self.view} are {columns})"
            ) from None


def require_one_expression(condition: str) -> None:
    """Raise :class:`UsageError` for what would not stay within the brackets put round it.

    Such a text can hold another statement, or go on behind the condition. The database is opened for reading
    alone and takes one statement, so this is for clear words; it also keeps ``1) OR (1`` from meaning something.
    """
    if not condition.strip():
        raise UsageError(Argument("where", condition), ": holds no condition; leave it out to take all")
    depth = 0
    for token in _TOKENS.finditer(condition):
        mark = token["mark"]
        if mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
        elif mark == ";":
            raise UsageError(Argument("where", condition), ": give one condition; ';' ends it")
        elif mark is not None:
            raise UsageError(Argument("where", condition), f": the quote {mark} is not closed")
        if depth < 0:
            break
    if depth:
        raise UsageError(Argument("where", condition), ": the brackets do not match")
