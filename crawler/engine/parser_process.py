"""The process in which heavy pages are read, so that it can be killed: ``python -m crawler.engine.parser_process``.

Pickled (whether the page is gzipped, its charset, whether its text is to be hashed) and then the page come in on
standard input, each with its length before it; a pickled :class:`crawler.page.tags.Said` goes out, or a
:class:`crawler.errors.Fault`. What it imports is all the memory it takes while it waits, so neither asyncio nor what
URLs and directives need is among it: what follows from what the page says is for whoever asks.
"""

from __future__ import annotations

import pickle
import signal
import sys
from typing import BinaryIO

from crawler.engine.messages import receive, send
from crawler.errors import Fault, fault
from crawler.gunzip import gunzip
from crawler.page.guard import MAX_TAGS
from crawler.page.tags import Said, heard, parsed

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


def _read_next(questions: BinaryIO) -> Said:
    """Read the page that comes next. Raises :class:`EOFError` where none does, :class:`MemoryError` where it says more
    than a light page could: to go through that would hold up whoever asks. (Links are bounded as they are.)"""
    is_gzipped, charset, hash_text = pickle.loads(receive(questions))
    page = receive(questions)
    _end_after(PATIENCE_S)
    try:
        if is_gzipped:
            page = gunzip(page)
        tree = parsed(page, charset)
        del page  # reading takes memory too, and the tree is nine times as large as the page
        said = heard(tree, hash_text=hash_text)
        if len(said.metas) + len(said.canonicals) > MAX_TAGS:
            raise MemoryError
        return said
    finally:
        _end_after(0)


def _serve() -> None:
    _bound_memory()
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # whoever started the crawler may have had it ignored
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    send(answers, b"ready")
    while True:
        answer: Said | Fault
        try:
            answer = _read_next(questions)
        except (EOFError, MemoryError):
            return
        except Exception as error:
            answer = Fault(fault(error))
        send(answers, pickle.dumps(answer))


if __name__ == "__main__":
    _serve()
