"""The process in which heavy pages are read, so that it can be killed: ``python -m crawler.loops.page_process``.

Pickled (whether the page is gzipped, the other arguments of :func:`crawler.page.html.read_page`) and then the page come
in on standard input, each with its length before it; pickled :class:`crawler.model.PageFacts` go out, or a
:class:`crawler.errors.Fault`. What it imports is all the memory it takes while it waits, so asyncio is not among it.
"""

from __future__ import annotations

import pickle
import signal
import sys
from typing import BinaryIO

from crawler.errors import Fault, fault
from crawler.gunzip import gunzip
from crawler.loops.messages import receive, send
from crawler.model import PageFacts
from crawler.page.html import parsed, read_page

#: What a page may take, in seconds of processor time; an ordinary one of 1 MB takes 0.05.
PATIENCE_S = 0.7

_MAX_MEMORY_BYTES = 2 << 30


def _bound_memory() -> None:
    """A page of 100 kB can make a tree of gigabytes: the child dies of it, nothing else does."""
    try:
        import resource
    except ImportError:
        return  # no such bound on this system
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))


def _end_after(seconds: float) -> None:
    """The system ends this process when it has worked for so long; 0 for never. It cannot be done from within."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _read_next(questions: BinaryIO) -> PageFacts:
    """Read the page that comes next. Raises :class:`EOFError` where none does."""
    is_gzipped, arguments = pickle.loads(receive(questions))
    page = receive(questions)
    _end_after(PATIENCE_S)
    try:
        tree = parsed(gunzip(page) if is_gzipped else page, arguments["charset"])
        del page  # reading takes memory too, and the tree is nine times as large as the page
        return read_page(tree, **arguments)
    finally:
        _end_after(0)


def _serve() -> None:
    _bound_memory()
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # whoever started the crawler may have had it ignored
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    send(answers, b"ready")
    while True:
        answer: PageFacts | Fault
        try:
            answer = _read_next(questions)
        except (EOFError, MemoryError):
            return
        except Exception as error:
            answer = Fault(fault(error))
        send(answers, pickle.dumps(answer))


if __name__ == "__main__":
    _serve()
