"""What many pages and requests share, stored once each: preferences about use, facts of answers and of connections.

Most pages state no preferences, the pages of a site often have the same headers, and its requests the same certificate.
So a page or a request names a number, which is made from the content: no row has to be looked up, and writing it again
changes nothing. The rows come in the order of their numbers, so that no writers block.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from crawler.model import NO_ANSWER, AnswerFacts, Preference, TlsFacts
from crawler.store.sql.tables import Row

if TYPE_CHECKING:
    from crawler.frontier.decide import Outcome
    from crawler.store.rows import RequestRow


def _number_of(content: str) -> int:
    """63 bits of a SHA-256."""
    return int.from_bytes(sha256(content.encode()).digest()[:8]) >> 1


def _in_order(rows: dict[int | None, Row]) -> list[Row]:
    return [{"id": number, **rows[number]} for number in sorted(n for n in rows if n is not None)]


@lru_cache(maxsize=256)
def _said(preferences: tuple[Preference, ...]) -> str:
    return json.dumps([one._asdict() for one in preferences], ensure_ascii=False)


@lru_cache(maxsize=256)
def set_id(preferences: tuple[Preference, ...] | None) -> int | None:
    """The number of a set of preferences; ``None`` for the empty set and for ``None``."""
    return _number_of(_said(preferences)) if preferences else None


def set_rows(outcomes: Iterable[Outcome]) -> list[Row]:
    """The sets that these outcomes name."""
    sets = {said for o in outcomes for said in (o.own_preferences, o.robots_preferences) if said}
    return _in_order({set_id(said): {"said": _said(said)} for said in sets})


@lru_cache(maxsize=4096)
def answer_id(answer: AnswerFacts) -> int | None:
    """The number of the facts of an answer; ``None`` if nothing is kept of it."""
    return None if answer == NO_ANSWER else _number_of(repr(tuple(answer)))


def answer_rows(outcomes: Iterable[Outcome]) -> list[Row]:
    """The facts of answers that these outcomes name."""
    return _in_order({answer_id(o.page.answer): o.page.answer._asdict() for o in outcomes if o.page is not None})


@lru_cache(maxsize=4096)
def tls_id(facts: TlsFacts | None) -> int | None:
    """The number of the facts of a connection; ``None`` for ``None``."""
    return None if facts is None else _number_of(repr(tuple(facts)))


def tls_rows(requests: Collection[RequestRow]) -> list[Row]:
    """The facts of connections that these requests name."""
    return _in_order({tls_id(row.tls): row.tls._asdict() for row in requests if row.tls is not None})
