"""The child process that reads main texts for exports: ``python -m crawler.export.text_process``.

For each document on standard input it writes its blocks, or the beginning of its text, to standard output, in order.
The system kills it at the limit of processor time or memory of one document, and it is confined, as a parser process of
the crawl (:mod:`crawler.engine.parser_process`).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import msgspec
from selectolax.lexbor import SelectolaxError

from crawler.engine.messages import receive, send
from crawler.engine.page_messages import OUT_OF_MEMORY
from crawler.engine.parser_process import limit_memory, limit_time
from crawler.engine.sandbox import confine
from crawler.errors import fault
from crawler.export.main_text import Block, blocks
from crawler.page.main_text import main_text


class Question(msgspec.Struct, array_like=True):
    """A document, and what is wanted of it: its blocks, or ``most_chars`` of its text. ``max_cpu_s`` bounds it."""

    max_cpu_s: float
    body: bytes
    charset: str | None
    content_type: str
    most_chars: int | None


class Answer(msgspec.Struct, array_like=True):
    """What was read, or the description of a bug that came to light."""

    blocks: list[Block] | None = None
    text: str | None = None
    bug: str | None = None


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not stand among the answers
    limit_memory()
    confine()
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            question = msgspec.msgpack.decode(receive(sys.stdin.buffer), type=Question)
            limit_time(question.max_cpu_s)
            send(answers, _answer(question))


def _answer(question: Question) -> bytes:
    about = (question.body, question.charset, question.content_type)
    try:
        if question.most_chars is None:
            return msgspec.msgpack.encode(Answer(blocks=blocks(*about)))
        return msgspec.msgpack.encode(Answer(text=main_text(*about).text[: question.most_chars]))
    except (MemoryError, SelectolaxError):
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        return msgspec.msgpack.encode(Answer(bug=fault(error)))


if __name__ == "__main__":
    main()
