"""The questions to a parser process about the text and the content of a stored document, with answers and limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec

from crawler.page.texts import Content, MainText

#: Processor time that the text of one document may take, and its content, in seconds. Nearly all take less than 0.02.
MAX_CPU_S = 2.0


class TextUnread(Exception):
    """The text or the content of a document was not read; the message is the reason."""


class TextQuestion(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A stored document whose text is to be read. ``url`` is the address of the document, or of its site."""

    max_cpu_s: float
    url: str
    charset: str | None
    content_type: str
    body: bytes


class ContentQuestion(TextQuestion, frozen=True, array_like=True, tag=True):
    """A stored document whose content is to be read."""


#: The text in a message, or the description of a bug. Raises :class:`msgspec.DecodeError` if neither.
unpack_text: Callable[[bytes], MainText | str] = msgspec.msgpack.Decoder(MainText | str).decode
#: The content in a message, as above; ``None`` without the libraries that read it.
unpack_content: Callable[[bytes], Content | str | None] = msgspec.msgpack.Decoder(Content | str | None).decode


@cache
def load_reader(kind: type[TextQuestion], content_type: str) -> None:
    """Load the libraries that answer questions of a kind, which takes longer than to read one document."""
    question = kind(MAX_CPU_S, "", None, content_type, b"")
    if isinstance(question, ContentQuestion):
        read_content(question)
    else:
        read_text(question)


def read_text(question: TextQuestion) -> MainText:
    """The text of a document. Raises :class:`MemoryError` if the parser runs out of memory."""
    from crawler.page.main_text import main_text  # only a process that reads a text loads its parsers

    return main_text(question.body, question.charset, question.content_type)


def read_content(question: ContentQuestion) -> Content | None:
    """The content of a document; ``None`` without the libraries. Raises :class:`MemoryError` as :func:`read_text`."""
    from crawler.page.content import content_of  # as above

    return content_of(question.body, question.charset, question.content_type)
