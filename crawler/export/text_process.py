"""The child process that reads main texts for exports: ``python -m crawler.export.text_process``.

For each document on standard input it writes its blocks, or the beginning of its text, to standard output, in order.
The system kills it at the limit of processor time or memory of one document, as a parser process of the crawl
(:mod:`crawler.engine.parser_process`).
"""

from __future__ import annotations

import marshal
import os
import sys
from contextlib import suppress

from selectolax.lexbor import SelectolaxError

from crawler.engine.messages import receive, send
from crawler.engine.page_messages import OUT_OF_MEMORY
from crawler.engine.parser_process import limit_memory, limit_time
from crawler.errors import fault
from crawler.export.main_text import blocks
from crawler.page.main_text import main_text


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not stand among the answers
    limit_memory()
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            max_cpu_s, body, charset, content_type, most_chars = marshal.loads(receive(sys.stdin.buffer))
            limit_time(max_cpu_s)
            send(answers, _answer(body, charset, content_type, most_chars))


def _answer(body: bytes, charset: str | None, content_type: str, most_chars: int | None) -> bytes:
    """The blocks as plain tuples, or ``most_chars`` of the text; and the description of a bug that came to light."""
    try:
        if most_chars is not None:
            return marshal.dumps((main_text(body, charset, content_type).text[:most_chars], None))
        found = blocks(body, charset, content_type)
        return marshal.dumps(([(each.kind, each.text, each.level) for each in found], None))
    except (MemoryError, SelectolaxError):
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        return marshal.dumps((None, fault(error)))


if __name__ == "__main__":
    main()
