"""Reading pages without being held up: one that could tie up the HTML parser is read in a process that can be killed.

Tree construction as the HTML Standard prescribes it is quadratic in places, and lexbor cannot be
interrupted: 0.5 MB of nested ``<div>`` take it 40 s. :func:`crawler.page.guard.is_light` tells the many
pages that cannot do harm; the few others go to a child, which has 0.7 s for each.

The child is :mod:`crawler.engine.parser_process`.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import selectors
import subprocess
import sys
import threading
from typing import IO, Any

from crawler.engine import parser_process as page_process
from crawler.engine.messages import receive, send
from crawler.engine.parser_process import PATIENCE_S
from crawler.errors import Fault
from crawler.model import Fetched, NotModified, PageFacts, Reading
from crawler.page.guard import is_light
from crawler.page.html import header_facts, meant, read_page, unread_page
from crawler.page.tags import Said

_WALL_S = 10.0  # for the child's answer, on a machine however busy; it ends itself when it has worked for too long
_START_S = 30.0
# What a tree of megabytes took is given back to the system (glibc; elsewhere it means nothing).
_LITTLE_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "4194304", "MALLOC_TRIM_THRESHOLD_": "4194304"}
_HTML_TYPES = ("", "text/html", "application/xhtml+xml")


class PageReader:
    """Reads what was fetched. Close it, or its child outlives it."""

    def __init__(self, token: str, reading: Reading, *, hash_text: bool = False) -> None:
        self._token = token
        self._reading = reading
        self._hash_text = hash_text
        self._child = _Child()
        self._one_at_a_time = asyncio.Lock()

    async def read(self, result: Fetched) -> PageFacts:
        """What a fetched document says; the event loop is never held up by a hostile one."""
        if result.content_type not in _HTML_TYPES:
            return self.header_facts(result)
        arguments, plain = self._arguments(result), result.plain
        if plain is not None and is_light(plain):
            return read_page(plain, charset=result.charset, hash_text=self._hash_text, **arguments)
        how = (plain is None, result.charset, self._hash_text)
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._child.read, plain or result.gzipped or b"", how, arguments)

    def header_facts(self, result: Fetched | NotModified) -> PageFacts:
        """What the headers alone say."""
        return header_facts(**self._arguments(result))

    def _arguments(self, result: Fetched | NotModified) -> dict[str, Any]:
        return {
            "url": result.url,
            "headers": result.headers,
            "token": self._token,
            "reading": self._reading,
            "now": result.finished_at,
        }

    def close(self) -> None:
        self._child.close()


def read_within(body: bytes, charset: str | None, **arguments: Any) -> PageFacts:
    """:func:`read_page`, held to :data:`PATIENCE_S` where the page is not light. Waits; for use without a loop."""
    if is_light(body):
        return read_page(body, charset=charset, **arguments)
    child = _Child()
    try:
        return child.read(body, (False, charset, False), arguments)
    finally:
        child.close()


class _Child:
    """The process that reads heavy pages, started when the first one comes. One page at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()
        self._asking = threading.Lock()  # a reader who is cancelled leaves a thread that waits for the answer still

    def read(self, body: bytes, how: tuple[bool, str | None, bool], arguments: dict[str, Any]) -> PageFacts:
        """``how`` is what the child is told of the page, ``arguments`` are those of an unread page too."""
        with self._asking:
            answer = None if self._closed.is_set() else self._ask(pickle.dumps(how), body)
        if answer is None:
            return unread_page(f"the parser did not end within {PATIENCE_S:g} s, or ran out of memory", **arguments)
        said = pickle.loads(answer)
        if isinstance(said, Fault):
            raise said
        assert isinstance(said, Said)
        return meant(said, **arguments)

    def close(self) -> None:
        """End for good; a read that is under way gets no answer."""
        self._closed.set()
        if (process := self._process) is not None:
            process.kill()  # so that nobody asks for long
        with self._asking:
            self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ask(self, about: bytes, body: bytes) -> bytes | None:
        """The child's answer; ``None`` where it took too long or died. One that owes an answer is not asked again."""
        answer = None
        try:
            process = self._process or self._start()
            if process is not None and process.stdin is not None and process.stdout is not None:
                send(process.stdin, about)
                send(process.stdin, body)
                if _answers(process.stdout, _WALL_S):
                    answer = receive(process.stdout)
        except (OSError, EOFError):
            pass  # it died: out of memory, most likely
        finally:
            if answer is None:
                self._stop()
        return answer

    def _start(self) -> subprocess.Popen[bytes] | None:
        """A child that has greeted: from then on, its time is the page's. ``None`` where it does not in time."""
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", page_process.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | _LITTLE_MEMORY,
            start_new_session=True,  # Ctrl-C is for the crawler, which ends its child itself
        )
        assert process.stdout is not None
        if self._closed.is_set() or not _answers(process.stdout, _START_S):
            return None
        receive(process.stdout)
        return process


def _answers(stream: IO[bytes], wait_s: float) -> bool:
    """Whether something comes within so many seconds, if only the end. (``select`` takes no file above 1,023.)"""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(wait_s))
