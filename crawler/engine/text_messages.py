"""The question to a parser process about the text of a stored document, the answer, and the limits on one document."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec

from crawler.page.texts import MainText

#: Processor time that the text of one document may take, in seconds. Nearly all take less than 0.02.
MAX_CPU_S = 2.0


class TextUnread(Exception):
    """The text of a document was not read; the message is the reason."""


class TextQuestion(NamedTuple):
    """A stored document whose text is to be read. ``url`` is the address of the document, or of its site."""

    max_cpu_s: float
    url: str
    charset: str | None
    content_type: str
    body: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[MainText | str] = msgspec.msgpack.Decoder(MainText | str)


@cache
def load_reader(content_type: str) -> None:
    """Load the libraries that read such documents, which takes longer than to read one."""
    _read_text(b"", None, content_type)


def read_text(question: TextQuestion) -> MainText:
    """The text of a document. Raises :class:`MemoryError` if the parser runs out of memory."""
    return _read_text(question.body, question.charset, question.content_type)


def _read_text(body: bytes, charset: str | None, content_type: str) -> MainText:
    from crawler.page.main_text import main_text  # only a process that reads a text loads its parsers

    return main_text(body, charset, content_type)


def pack_text(answer: MainText) -> bytes:
    """The text of a document as one message."""
    return _ENCODER.encode(answer)


def unpack_text(message: bytes) -> MainText | str:
    """The answer in a message: the text, or the description of a bug. Raises :class:`msgspec.DecodeError` if none."""
    return _DECODER.decode(message)
