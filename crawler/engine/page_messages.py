"""The messages between the crawler and a parser process about one page, and the limits on one page.

Answers come from a process that has read the bytes of a stranger, so their codec builds nothing but the classes named
here, and checks the type of each value.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from crawler.model import Headers, PageFacts

#: Processor time that one page may take, in seconds. An ordinary page of 1 MB takes 0.05.
MAX_CPU_S = 0.7
#: Processor time after which the reading of a page is broken off, to be repeated where no other page waits for it.
FAST_CPU_S = 0.2
#: Address space of a parser process. About 40 MB are taken before the first page. One of 10 MB with 100,000 links and
#: some words at each takes up to 240 MB, and nearly all of :data:`MAX_CPU_S`.
MAX_MEMORY_BYTES = 256 << 20
#: Exit code of a parser process whose page exceeded the memory limit.
OUT_OF_MEMORY = 12


class Question(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A document to be read, and the facts that its reading needs. ``now`` is in epoch seconds.

    The system ends a process that takes more than ``max_cpu_s`` of processor time for the document.
    """

    max_cpu_s: float
    is_html: bool
    is_pdf: bool
    is_gzipped: bool
    resources: bool
    charset: str | None  # of the Content-Type header
    url: str
    headers: Headers
    token: str
    reading: str
    now: float
    body: bytes  # in gzip if ``is_gzipped``; one member, unless ``unchecked`` bounds the decoded body
    unchecked: int | None = None
    shingles: bool = False


#: The answer in a message: the facts, or a bug. Raises :class:`msgspec.DecodeError` if there is none.
unpack_answer: Callable[[bytes], PageFacts | str] = msgspec.msgpack.Decoder(PageFacts | str).decode
