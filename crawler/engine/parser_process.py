"""The child process that reads pages, sitemaps and large robots.txt files: ``python -m crawler.engine.parser_process``.

The process receives one :class:`~crawler.engine.messages.Question` for each document on standard input: about a page,
a robots.txt, a sitemap, or the text or the content of a stored document. It writes one answer to standard output,
in the order of the questions. Its first message says that it is ready, and what confines it
(:mod:`crawler.engine.sandbox`): it confines itself before it reads anything. It ends when standard input ends, so it
outlives a killed crawler by the time of one document at most.

Each document is bounded:

* The system kills the process with SIGPROF when one document has taken as much processor time as its question allows.
  The process cannot interrupt itself, because lexbor does not return to Python.
* The address space of the process is limited to ``MAX_MEMORY_BYTES``. When a document exceeds the limit, the process
  ends with the exit code ``OUT_OF_MEMORY``.
* If the machine runs out of memory all the same, Linux kills this process before the crawler.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import TypeAlias

import msgspec
from msgspec.structs import replace
from selectolax.lexbor import SelectolaxError

import crawler.engine.page_reading  # noqa: F401, before the first page
from crawler.engine.messages import MAX_ANSWER_BYTES, pack_answer, receive, send
from crawler.engine.page_messages import MAX_MEMORY_BYTES, OUT_OF_MEMORY, PageQuestion
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.sandbox import confine
from crawler.engine.sitemap_messages import SitemapQuestion
from crawler.engine.text_messages import ContentQuestion, TextQuestion
from crawler.errors import fault

_READ_BYTES = 1 << 18


AnyQuestion: TypeAlias = PageQuestion | RobotsQuestion | SitemapQuestion | TextQuestion | ContentQuestion
_DECODER: msgspec.msgpack.Decoder[AnyQuestion] = msgspec.msgpack.Decoder(AnyQuestion)


def unpack_question(message: bytes, body: bytes) -> AnyQuestion:
    """The question in two messages."""
    return replace(_DECODER.decode(message), body=body)


def answer_to(question: AnyQuestion) -> bytes:
    """The answer to a question, as one message. Raises :class:`MemoryError` if the parser runs out of memory."""
    answer = pack_answer(question.read())
    if len(answer) > MAX_ANSWER_BYTES:
        answer = pack_answer(question.unread(f"an answer of more than {MAX_ANSWER_BYTES >> 20} MB"))
    return answer


def main() -> None:
    """Answer questions until standard input ends."""
    questions = open(sys.stdin.fileno(), "rb", buffering=_READ_BYTES, closefd=False)  # noqa: SIM115, for good
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not stand among the answers
    limit_memory()
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the crawler may have been started with the signal ignored
    gc.freeze()
    gc.set_threshold(50_000)  # pages leave hardly any cycles behind
    with suppress(BrokenPipeError, EOFError):
        send(answers, str(confine()).encode())
        while True:
            send(answers, _answer(receive(questions), receive(questions)))


def _answer(message: bytes, body: bytes) -> bytes:
    """The answer to a question."""
    try:
        question = unpack_question(message, body)
        question.prepare()
        limit_time(question.max_cpu_s)
        return answer_to(question)
    except (MemoryError, SelectolaxError):
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        return pack_answer(fault(error))


def limit_time(most_s: float) -> None:
    """Have the system end this process when it has taken ``most_s`` of processor time from now on.

    Between two documents the process only waits, which takes no processor time.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, most_s)


def limit_memory() -> None:
    """Limit the address space of this process to ``MAX_MEMORY_BYTES``, and have Linux kill it before others."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")
    try:
        import resource
    except ImportError:
        return  # this system has no such limit
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MAX_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MAX_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    main()
