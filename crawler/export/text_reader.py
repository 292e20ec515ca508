"""Reads the main texts of stored pages in a child process, which bounds the time and the memory of each.

The crawl has parsed each page within bounds, but resiliparse has others: nested elements take it quadratic time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import IO, Self, cast

import msgspec

from crawler.engine.messages import MAX_ANSWER_BYTES, MessageTooLong, receive, send
from crawler.engine.page_messages import MAX_MEMORY_BYTES, OUT_OF_MEMORY
from crawler.engine.sandbox import environment
from crawler.export.main_text import Block, require_library
from crawler.export.text_process import Answer, Question

#: Processor time that the main text of one page may take, in seconds. Nearly all pages take less than 0.02.
MAX_CPU_S = 2.0
_MAX_S = 120.0  # of a process that does not work at all
_PROCESS = "crawler.export.text_process"


class TextUnread(Exception):
    """The main text of a page was not read; the message is the reason."""


class TextReader:
    """Reads one document after the other. A context manager, which ends the process.

    The process is started for the first document, and for the first one after a document that exceeded a bound.
    """

    def __init__(self, max_cpu_s: float = MAX_CPU_S) -> None:
        self._max_cpu_s = max_cpu_s
        self._process: subprocess.Popen[bytes] | None = None

    async def read(self, body: bytes, charset: str | None, content_type: str) -> list[Block]:
        """The blocks of a document, as :func:`crawler.export.main_text.blocks` returns them.

        Raises :class:`TextUnread` for a document beyond the bounds, and :class:`crawler.errors.UsageError` if the
        library that reads it is missing.
        """
        require_library(content_type)
        return (await self._read(Question(self._max_cpu_s, body, charset, content_type, None))).blocks or []

    async def beginning(self, body: bytes, charset: str | None, content_type: str, most_chars: int) -> str:
        """The first characters of the text that :func:`crawler.page.main_text.main_text` finds, without a library.

        Raises :class:`TextUnread` for a document beyond the bounds.
        """
        return (await self._read(Question(self._max_cpu_s, body, charset, content_type, most_chars))).text or ""

    async def _read(self, question: Question) -> Answer:
        try:
            answer = await asyncio.wait_for(asyncio.to_thread(self._ask, question), _MAX_S)
        except TimeoutError:
            self.close()
            raise TextUnread("not read in time") from None
        if answer.bug is not None:
            raise TextUnread(f"a bug in the crawler ({answer.bug})")
        return answer

    def _ask(self, question: Question) -> Answer:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROCESS],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment(os.environ),
                start_new_session=True,  # Ctrl-C is sent to the export alone, which ends its child
            )
        process = self._process
        try:
            send(cast(IO[bytes], process.stdin), msgspec.msgpack.encode(question))
            answer = receive(cast(IO[bytes], process.stdout), MAX_ANSWER_BYTES)
            return msgspec.msgpack.decode(answer, type=Answer)
        except (MessageTooLong, msgspec.DecodeError):
            self.close()
            raise TextUnread("the process that read it sent what is no answer") from None
        except (EOFError, BrokenPipeError):
            code = process.wait()
            self.close()
            raise TextUnread(_why(code, self._max_cpu_s)) from None

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                cast(IO[bytes], pipe).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _why(code: int, max_cpu_s: float) -> str:
    """Why the process ended while it read a document, by its exit code."""
    if code == OUT_OF_MEMORY:
        return f"reading it takes more than {MAX_MEMORY_BYTES >> 20} MB of memory"
    if hasattr(signal, "SIGPROF") and code == -signal.SIGPROF:
        return f"reading it takes more than {max_cpu_s:g} s of processor time"
    return "the process that read it died"
