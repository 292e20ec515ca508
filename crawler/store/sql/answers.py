"""The facts that many answers share, stored once each: the headers that are kept, the address, the version of TLS.

The pages of a site often share these. So a page names the number of its answer, which is made from the content, as it
names its preferences (:mod:`crawler.store.sql.preferences`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from crawler.frontier.decide import Outcome
from crawler.model import NO_ANSWER, AnswerFacts


@lru_cache(maxsize=4096)
def answer_id(answer: AnswerFacts) -> int | None:
    """The number of an answer: 63 bits of a SHA-256. ``None`` for an answer of which nothing is kept."""
    if answer == NO_ANSWER:
        return None
    return int.from_bytes(sha256(repr(tuple(answer)).encode()).digest()[:8]) >> 1


def answer_rows(outcomes: Iterable[Outcome]) -> list[dict[str, object]]:
    """The answers that these outcomes name, each once and in the order of their numbers, so that no writers block."""
    answers = {answer_id(o.page.answer): o.page.answer for o in outcomes if o.page is not None}
    return [{"id": n, **answers[n]._asdict()} for n in sorted(n for n in answers if n is not None)]
