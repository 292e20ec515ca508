"""Reads the texts of stored documents in parser processes, which bound the time and the memory of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from crawler.engine.text_messages import MAX_CPU_S, ContentQuestion, TextQuestion, TextUnread
from crawler.page.texts import Content, MainText

if TYPE_CHECKING:
    from crawler.engine.parser_pool import ParserPool

__all__ = ["ReadsTexts", "TextReader", "TextUnread"]


class ReadsTexts(Protocol):
    """Reads the text of a document as it is indexed."""

    async def main_text(self, site: str, body: bytes, charset: str | None, content_type: str) -> MainText:
        """The text of a document of a site. Raises :class:`TextUnread` for a document beyond the bounds."""
        ...

    async def content(self, site: str, body: bytes, charset: str | None, content_type: str) -> Content | None:
        """The content of a document; ``None`` without the libraries that read it. Raises as :meth:`main_text`."""
        ...


class TextReader:
    """Reads several documents at once. An async context manager, which ends the processes.

    The processes are those of a crawl (:class:`crawler.engine.parser_pool.ParserPool`), so a document that takes long
    does not hold up those of other sites. They are started for the first document. ``main_text`` raises
    :class:`TextUnread` for a document beyond the bounds, and :class:`crawler.engine.parser_pool.ParserFailed` if no
    process can be started. The bounds on a text and on a content are apart.
    """

    def __init__(self, max_cpu_s: float = MAX_CPU_S) -> None:
        self._max_cpu_s = max_cpu_s
        self._made: ParserPool | None = None

    @property
    def _pool(self) -> ParserPool:
        if self._made is None:  # most commands find all texts in the store, and start faster without the parsers
            from crawler.engine.parser_pool import ParserPool, default_parsers

            self._made = ParserPool(parsers=default_parsers(1))
        return self._made

    async def main_text(self, site: str, body: bytes, charset: str | None, content_type: str) -> MainText:
        """The text as :func:`crawler.page.main_text.main_text` reads it."""
        return await self._pool.ask(TextQuestion(self._max_cpu_s, site, body, charset, content_type))

    async def content(self, site: str, body: bytes, charset: str | None, content_type: str) -> Content | None:
        """The content as :func:`crawler.page.content.content_of` reads it."""
        return await self._pool.ask(ContentQuestion(self._max_cpu_s, site, body, charset, content_type))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._made is not None:
            await self._made.close()
