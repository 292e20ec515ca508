"""The questions to a parser process about the text and the content of a stored document, with answers and limits."""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

from crawler.engine.messages import Question, T
from crawler.page.texts import Content, MainText

#: Processor time that the text of one document may take, and its content, in seconds. Nearly all take less than 0.02.
MAX_CPU_S = 2.0


class TextUnread(Exception):
    """The text or the content of a document was not read; the message is the reason."""


class _TextQuestion(Question[T], frozen=True):
    """A stored document to be read."""

    charset: str | None
    content_type: str

    def prepare(self) -> None:
        """Load the libraries, which takes longer than to read one document."""
        _load(type(self), self.content_type)

    def unread(self, why: str) -> NoReturn:
        """Raises :class:`TextUnread`."""
        raise TextUnread(why)

    def fault(self, bug: str) -> Exception:
        """A document that brings a bug to light is unread."""
        return TextUnread(f"a bug in the crawler ({bug})")


class TextQuestion(_TextQuestion[MainText], frozen=True, tag=True):
    """A stored document whose text is to be read."""

    def read(self) -> MainText:
        """The text of the document."""
        from crawler.page.main_text import main_text  # only a process that reads a text loads its parsers

        return main_text(self.body, self.charset, self.content_type)

    @classmethod
    def answers(cls) -> Any:
        """See :class:`Question`."""
        return MainText


class ContentQuestion(_TextQuestion[Content | None], frozen=True, tag=True):
    """A stored document whose content is to be read."""

    def read(self) -> Content | None:
        """The content of the document; ``None`` without the libraries that read it."""
        from crawler.page.content import content_of  # as above

        return content_of(self.body, self.charset, self.content_type)

    @classmethod
    def answers(cls) -> Any:
        """See :class:`Question`."""
        return Content | None


@cache
def _load(kind: type[_TextQuestion[Any]], content_type: str) -> None:
    kind(MAX_CPU_S, "", b"", None, content_type).read()
