"""The questions to a parser process about the text and the content of a stored document, with answers and limits."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec

from crawler.page.texts import Content, MainText

#: Processor time that the text of one document may take, and its content, in seconds. Nearly all take less than 0.02.
MAX_CPU_S = 2.0


class TextUnread(Exception):
    """The text or the content of a document was not read; the message is the reason."""


class TextQuestion(NamedTuple):
    """A stored document whose text is to be read. ``url`` is the address of the document, or of its site."""

    max_cpu_s: float
    url: str
    charset: str | None
    content_type: str
    body: bytes


class ContentQuestion(NamedTuple):
    """A stored document whose content is to be read, with the fields of :class:`TextQuestion`."""

    max_cpu_s: float
    url: str
    charset: str | None
    content_type: str
    body: bytes


_TEXT: msgspec.msgpack.Decoder[MainText | str] = msgspec.msgpack.Decoder(MainText | str)
_CONTENT: msgspec.msgpack.Decoder[Content | str | None] = msgspec.msgpack.Decoder(Content | str | None)


@cache
def load_reader(content_type: str, *, is_text: bool) -> None:
    """Load the libraries that read a text, or else a content, which takes longer than to read one."""
    if is_text:
        read_text(TextQuestion(MAX_CPU_S, "", None, content_type, b""))
    else:
        read_content(ContentQuestion(MAX_CPU_S, "", None, content_type, b""))


def read_text(question: TextQuestion) -> MainText:
    """The text of a document. Raises :class:`MemoryError` if the parser runs out of memory."""
    from crawler.page.main_text import main_text  # only a process that reads a text loads its parsers

    return main_text(question.body, question.charset, question.content_type)


def read_content(question: ContentQuestion) -> Content | None:
    """The content of a document; ``None`` without the libraries. Raises :class:`MemoryError` as :func:`read_text`."""
    from crawler.page.content import content_of  # as above

    return content_of(question.body, question.charset, question.content_type)


def unpack_text(message: bytes) -> MainText | str:
    """The answer in a message: the text, or the description of a bug. Raises :class:`msgspec.DecodeError` if none."""
    return _TEXT.decode(message)


def unpack_content(message: bytes) -> Content | str | None:
    """The content in a message, or the description of a bug. Raises :class:`msgspec.DecodeError` if neither."""
    return _CONTENT.decode(message)
