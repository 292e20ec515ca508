"""One export: the rows of a view that meet a condition, from one moment of the store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from crawler.atomic_files import AtomicFile, AtomicFiles
from crawler.errors import Argument, StatementError, UsageError
from crawler.page.directives import asked_of
from crawler.page.texts import Content
from crawler.preferences.purposes import UsePurpose, categories_for
from crawler.store.statements import UserSql, load_statements
from crawler.store.views import VIEWS
from crawler.texts.kept import StoredDocument, content_of, texts_of
from crawler.texts.reader import TextReader

if TYPE_CHECKING:
    from crawler.store.sections import Store

SQL = load_statements("crawler.export")

# Strings, quoted names and comments, in which brackets and semicolons have no meaning; then the marks that have one.
_TOKENS = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\[[^]]*]|--[^\n]*|/\*.*?(?:\*/|\Z)|(?P<mark>['\"`[();])",
    re.DOTALL,
)


#: The reason why a row is not exported; ``None`` if it is.
Refusal = Callable[[Any], str | None]

NO_BODY = "without a stored body"
_USE_REFUSED = "refusing the use"


class Addition(StrEnum):
    """What an export adds to each row of the table of pages, as the values of ``add``."""

    BODY = "body"
    TEXT = "text"
    LANGUAGE = "language"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of an export beside its format.

    ``table`` is a view, ``where`` an SQL condition on its columns. ``add`` adds to the table of pages their bodies
    ("body"), their texts without navigation and the like ("text"), and the languages that a classifier sees in them
    ("language"). ``allowed_for`` leaves out pages, and links of pages, that refuse one of these uses
    (:class:`~crawler.preferences.purposes.UsePurpose`); an unknown preference allows. ``chunk`` writes the texts in
    chunks of at most this many characters instead of the table, one a line (JSON Lines). ``since`` is the number of a
    run: the file, in a folder, gets the rows that later runs have added.
    """

    table: str | None = None
    where: str | None = None
    add: tuple[str, ...] = ()
    allowed_for: tuple[str, ...] = ()
    chunk: int | None = None
    since: int | None = None


@dataclass(slots=True)
class ExportProgress:
    """The progress of an export: ``written`` counts the units of the format (rows, pages, links, URLs)."""

    written: int = 0
    #: Whether somebody watches the progress, so that the rows are counted beforehand; and how many they are, if so.
    is_watched: bool = False
    total: int | None = None
    chunks: int = 0  # of the pages that count as written, if their texts are exported in chunks
    #: How many pages, or rows about pages, are left out for each reason.
    left_out_for: Counter[str] = field(default_factory=Counter)
    #: How many pages have no main text in the export, for each reason why it could not be read.
    unread: Counter[str] = field(default_factory=Counter)

    @property
    def left_out(self) -> int:
        return self.left_out_for.total()


@dataclass(frozen=True, slots=True)
class Job:
    """One export. ``now`` is in seconds since the epoch."""

    store: Store
    view: str
    source: str  # the view, or a subquery with some of its rows
    options: ExportOptions
    allowed_for: tuple[UsePurpose, ...]
    files: AtomicFiles
    readers: AsyncExitStack  # closes the readers of the store when the export ends
    texts: TextReader
    out: Path | BinaryIO
    tally: ExportProgress
    now: float

    def __post_init__(self) -> None:
        if self.options.where is not None:
            require_one_expression(self.options.where)

    @property
    def _where(self) -> str:
        return self.options.where or "TRUE"

    @property
    def kept(self) -> str:
        """The rows to export, as a subquery."""
        return SQL["kept"].format(view=self.source, where=self._where, allowed=self._allowed)

    @property
    def _allowed(self) -> str:
        """The condition that a row is about no page that refuses one of the uses ``allowed_for``."""
        if self.view == "links_glued" and self.allowed_for:
            return SQL["allowed_url"].format(page="source", categories=self._categories)
        if self.view == "page_versions" and self.allowed_for:
            return f"({SQL['allowed_version'].format(categories=self._categories)})"
        return self.allows("source_id" if self.view == "links" else "url_id")

    @property
    def _categories(self) -> str:
        return ", ".join(f"'{category}'" for category in categories_for(self.allowed_for)) or "NULL"

    def allows(self, page: str) -> str:
        """The condition that the page whose number is the expression ``page`` refuses none of these uses."""
        if not self.allowed_for:
            return "TRUE"
        return SQL["allowed"].format(page=page, categories=self._categories)

    async def count_refused(self) -> None:
        """Count the rows that are left out because of their preferences."""
        if self.allowed_for:
            parts = {"view": self.source, "where": self._where, "allowed": self._allowed}
            (row,) = await self.store.query(UserSql(SQL["refused"].format(**parts)))
            self.tally.left_out_for[_USE_REFUSED] += row["rows_left_out"]

    async def count_rows(self, *, with_body: bool) -> None:
        """Count the rows that the export goes through; ``with_body``: only those of pages that have a body."""
        (row,) = await self.store.query(self.sql("count", condition="body_sha256 IS NOT NULL" if with_body else "TRUE"))
        self.tally.total = row["rows_in_all"]

    def sql(self, name: str, **parts: str) -> UserSql:
        """A statement of ``queries.sql`` about the rows to export, with the condition in it."""
        return UserSql(SQL[name].format(kept=self.kept, **parts))

    def open(self) -> BinaryIO:
        """The file of this export."""
        return self.output().file

    def output(self) -> AtomicFile:
        return self.files.open(self.out)

    async def rows(self, sql: str, refusal: Refusal = lambda row: None) -> AsyncIterator[Any]:
        """The rows of a query as named tuples. A row counts as written when the next one is requested.

        Rows for which ``refusal`` gives a reason count as left out for it.
        """
        found = self.store.rows(sql)
        self.readers.push_async_callback(found.aclose)
        async for row in found:
            if (reason := refusal(row)) is None:
                yield row
                self.tally.written += 1
            else:
                self.tally.left_out_for[reason] += 1

    async def content_of(self, page: Any) -> Content | None:
        """The main content of a page by its ``url_id``; ``None`` without a body, or beyond the bounds.

        Raises :class:`UsageError` if the library that reads it is missing.
        """
        from crawler.export.main_text import require_library

        require_library(page.content_type)
        document = await self._document_of(page)
        content = None if document is None else await content_of(self.store, self.texts, document)
        if content is not None and content.note:
            self.tally.unread[content.note] += 1
            return None
        return content

    async def beginning_of(self, page: Any, most_chars: int) -> str | None:
        """The first characters of the text of a page; ``None`` without a body, or beyond the bounds.

        The text that the store keeps is used; otherwise the body is read.
        """
        document = await self._document_of(page)
        texts = {} if document is None else await texts_of(self.store, self.texts, [document], keeps=False)
        for text in texts.values():
            if not text.note:
                return text.text[:most_chars]
            self.tally.unread[text.note] += Addition.TEXT not in self.options.add  # else content_of counts the page
        return None

    async def _document_of(self, page: Any) -> StoredDocument | None:
        rows = await self.store.query(SQL["document"], {"url_id": page.url_id})
        return StoredDocument.of(rows[0]) if rows else None

    def unwrite(self) -> None:
        """Do not count the row that :meth:`rows` has returned last as written."""
        self.tally.written -= 1

    def not_shown(self, row: Any) -> str | None:
        """Why the page with ``row.page_directives`` may not be shown any more (``unavailable_after``), if so."""
        return asked_of(row.page_directives).not_shown(self.now)

    def not_copied(self, row: Any) -> str | None:
        """Why the body of the page with ``row.page_directives`` may not be exported (``noarchive``), if so."""
        return asked_of(row.page_directives).not_copied(self.now)

    async def require_condition(self) -> None:
        """Raise :class:`UsageError` if the database rejects the condition for this view."""
        await self.store.query(self.sql("no_row"))

    @contextmanager
    def blaming_condition(self) -> Iterator[None]:
        """Report an error in the statement as an error in the condition, the only part that the user wrote."""
        try:
            yield
        except StatementError as error:
            if not self.options.where:
                raise
            columns = ", ".join(VIEWS[self.view])
            raise UsageError(
                Argument("where", self.options.where), f": {error.__cause__} (the columns of {self.view} are {columns})"
            ) from None


def require_one_expression(condition: str) -> None:
    """Raise :class:`UsageError` for a text that would not stay within the brackets around it.

    Such a text could contain another statement, or close the brackets, like ``1) OR (1``. The store executes one
    statement that only reads (:class:`UserSql`), so this check is for a clear message.
    """
    if not condition.strip():
        raise UsageError(Argument("where", condition), ": contains no condition; omit the option to export all rows")
    depth = 0
    for token in _TOKENS.finditer(condition):
        mark = token["mark"]
        if mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
        elif mark == ";":
            raise UsageError(Argument("where", condition), ": must be one condition, without ';'")
        elif mark is not None:
            raise UsageError(Argument("where", condition), f": the quote {mark} is not closed")
        if depth < 0:
            break
    if depth:
        raise UsageError(Argument("where", condition), ": the brackets do not match")
