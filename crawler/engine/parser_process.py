"""The child process that reads pages, sitemaps and large robots.txt files: ``python -m crawler.engine.parser_process``.

The process receives one question for each document on standard input: a
:class:`~crawler.engine.page_messages.Question` about a page, a
:class:`~crawler.engine.robots_messages.RobotsQuestion` about a robots.txt, a
:class:`~crawler.engine.sitemap_messages.SitemapQuestion` about a sitemap, a
:class:`~crawler.engine.text_messages.TextQuestion` about the text of a stored document, or a
:class:`~crawler.engine.text_messages.ContentQuestion` about its content. It writes one answer to standard output,
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
from hashlib import sha256
from typing import Any

from msgspec.structs import replace
from selectolax.lexbor import SelectolaxError

from crawler.engine.messages import MAX_ANSWER_BYTES, pack_answer, receive, send
from crawler.engine.page_messages import MAX_MEMORY_BYTES, OUT_OF_MEMORY, Question
from crawler.engine.parser_messages import AnyQuestion, unpack_question
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.sandbox import confine
from crawler.engine.sitemap_messages import SitemapQuestion, read_sitemap_of
from crawler.engine.text_messages import ContentQuestion, TextQuestion, load_reader, read_content, read_text
from crawler.errors import fault
from crawler.fetch.decoding import decode_gzip
from crawler.gunzip import gunzip
from crawler.model import PageFacts, Reading
from crawler.page.charset import encoding_of
from crawler.page.headers import header_facts
from crawler.page.html import read_page
from crawler.reasons import RequestError

_READ_BYTES = 1 << 18


def read_document(question: Question) -> PageFacts:
    """Read a document as it was received. Raises :class:`MemoryError` if the parser runs out of memory."""
    if question.unchecked is None:
        return _read(question, gunzip(question.body) if question.is_gzipped else question.body)
    decoded = decode_gzip(question.body, question.unchecked)
    if isinstance(decoded, RequestError):
        return PageFacts(broken=decoded)
    body, is_one_gzip = decoded
    facts = _read(question, body)
    return facts if is_one_gzip else replace(facts, is_one_gzip=False)


def _read(question: Question, body: bytes) -> PageFacts:
    """Read a decoded document."""
    about: dict[str, Any] = {
        "url": question.url,
        "headers": question.headers,
        "token": question.token,
        "reading": Reading(question.reading),
        "now": question.now,
    }
    if question.is_html:
        about |= {"resources": question.resources, "shingles": question.shingles}
        return read_page(body, charset=question.charset, **about)
    charset = encoding_of(question.charset) if question.charset else None
    facts = replace(header_facts(**about), charset=charset, body_sha256=sha256(body).digest(), body_bytes=len(body))
    return _with_pdf(facts, body) if question.is_pdf else facts


def _with_pdf(facts: PageFacts, body: bytes) -> PageFacts:
    """The facts with the title of a PDF file. The text is read to learn that it can be read within the limits."""
    from crawler.page.main_text import MAX_TEXT_CHARS  # few crawls take PDF files
    from crawler.page.pdf import read_pdf

    try:
        read = read_pdf(body, MAX_TEXT_CHARS)
    except ModuleNotFoundError:
        return facts
    if read is None:
        return replace(facts, note="not a readable PDF file")
    return replace(facts, title=read.title if facts.index else None)


def answer_to(question: AnyQuestion) -> bytes:
    """The answer to a question, as one message. Raises :class:`MemoryError` if the parser runs out of memory."""
    if isinstance(question, RobotsQuestion):
        from crawler.engine.robots_reading import pack_rules, read_robots  # few sites have a large robots.txt

        return pack_rules(read_robots(question))
    if isinstance(question, SitemapQuestion):
        return pack_answer(read_sitemap_of(question))
    if isinstance(question, ContentQuestion):
        return pack_answer(read_content(question))
    if isinstance(question, TextQuestion):
        return pack_answer(read_text(question))
    return pack_answer(read_document(question))


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
        if isinstance(question, TextQuestion):
            load_reader(type(question), question.content_type)
        limit_time(question.max_cpu_s)
        answer = answer_to(question)
    except (MemoryError, SelectolaxError):
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        return pack_answer(fault(error))
    # The limits on what is taken from a page keep each answer below this.
    return answer if len(answer) <= MAX_ANSWER_BYTES else pack_answer(f"an answer of {len(answer):,} bytes")


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
