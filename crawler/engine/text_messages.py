"""The question to a parser process about the text of a stored document, the answer, and the limits on one document."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import msgspec

from crawler.page.texts import Block, MainText

#: Processor time that the text of one document may take, in seconds. Nearly all take less than 0.02.
MAX_CPU_S = 2.0


class TextUnread(Exception):
    """The text of a document was not read; the message is the reason."""


class TextQuestion(NamedTuple):
    """A stored document whose text is to be read.

    ``in_blocks`` asks for the blocks of the main text (:func:`crawler.page.blocks.blocks`), else the text is read as
    it is indexed (:func:`crawler.page.main_text.main_text`). ``url`` is the address of the document, or of its site.
    """

    max_cpu_s: float
    url: str
    in_blocks: bool
    charset: str | None
    content_type: str
    body: bytes


_ENCODER = msgspec.msgpack.Encoder()
_TEXT_DECODER: msgspec.msgpack.Decoder[MainText | str] = msgspec.msgpack.Decoder(MainText | str)
_BLOCKS_DECODER: msgspec.msgpack.Decoder[list[Block] | str] = msgspec.msgpack.Decoder(list[Block] | str)


@cache
def load_reader(in_blocks: bool, content_type: str) -> None:
    """Load the library that reads such documents, which takes longer than to read one."""
    with suppress(ModuleNotFoundError):
        _reader(in_blocks)(b"", None, content_type)


def read_text(question: TextQuestion) -> MainText | list[Block]:
    """The text of a document. Raises :class:`MemoryError` if the parser runs out of memory."""
    return _reader(question.in_blocks)(question.body, question.charset, question.content_type)


def _reader(in_blocks: bool) -> Callable[[bytes, str | None, str], MainText | list[Block]]:
    """The function that reads such texts. Only a process that reads one loads its parser."""
    if in_blocks:
        from crawler.page.blocks import blocks

        return blocks
    from crawler.page.main_text import main_text

    return main_text


def pack_text(answer: MainText | list[Block]) -> bytes:
    """The text of a document as one message."""
    return _ENCODER.encode(answer)


def unpack_text(message: bytes, *, in_blocks: bool) -> MainText | list[Block] | str:
    """The answer in a message: the text, or the description of a bug. Raises :class:`msgspec.DecodeError` if none."""
    return _BLOCKS_DECODER.decode(message) if in_blocks else _TEXT_DECODER.decode(message)
