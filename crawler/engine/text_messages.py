"""The question to a parser process about the text of a stored document, the answer, and the limits on one document."""

from __future__ import annotations

import marshal
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from crawler.page.blocks import Block, blocks
from crawler.page.main_text import MainText, Section, main_text

#: Processor time that the text of one document may take, in seconds. Nearly all take less than 0.02.
MAX_CPU_S = 2.0
#: The first value of such a question, which tells it from others.
KIND = "text"


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

    def packed(self) -> bytes:
        """The question as one message."""
        return marshal.dumps((KIND, *self))


@cache
def load_reader(in_blocks: bool, content_type: str) -> None:
    """Load the library that reads such documents, which takes longer than to read one."""
    with suppress(ModuleNotFoundError):
        (blocks if in_blocks else main_text)(b"", None, content_type)


def read_text(question: TextQuestion) -> MainText | list[Block]:
    """The text of a document. Raises :class:`MemoryError` if the parser runs out of memory."""
    read = blocks if question.in_blocks else main_text
    return read(question.body, question.charset, question.content_type)


def pack_text(answer: MainText | list[Block] | str) -> bytes:
    """The text of a document, or the description of a bug that it brought to light, as one message."""
    if isinstance(answer, str):
        return marshal.dumps(answer)
    if isinstance(answer, MainText):
        sections = [(each.start, each.level, each.heading, each.anchor) for each in answer.sections]
        return marshal.dumps((answer.headings, answer.text, sections, answer.language))
    return marshal.dumps([(each.kind, each.text, each.level) for each in answer])


def unpack_main_text(message: bytes) -> MainText | str:
    """The answer to a question about the text as it is indexed."""
    answer = marshal.loads(message)
    if isinstance(answer, str):
        return answer
    headings, text, sections, language = answer
    return MainText(headings, text, tuple(Section(*each) for each in sections), language)


def unpack_blocks(message: bytes) -> list[Block] | str:
    """The answer to a question about blocks."""
    answer = marshal.loads(message)
    return answer if isinstance(answer, str) else [Block(*each) for each in answer]
