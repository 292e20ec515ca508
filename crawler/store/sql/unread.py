"""Answers that were logged and not read yet, as rows of ``unread_answer``.

The log and the answer are committed together. So after a kill the answer is read from the store, and its URL is not
requested again. No view, export or copy has these rows, and the outcome of the URL deletes its row.
"""

from __future__ import annotations

import json
from typing import Any

from crawler.model import Exchange, Fetched, TlsFacts

_IN_COLUMNS = {"plain", "gzipped", "exchange"}
_FIELDS = tuple(name for name in Fetched.__struct_fields__ if name not in _IN_COLUMNS)


def unread_row(url_id: int, answer: Fetched) -> dict[str, object]:
    """The row of an answer."""
    facts: dict[str, Any] = {name: getattr(answer, name) for name in _FIELDS}
    exchange = answer.exchange
    if exchange is not None:
        facts["exchange"] = (exchange.address, exchange.complete)
    facts["is_gzipped"] = answer.plain is None
    return {
        "url_id": url_id,
        "facts": json.dumps(facts),
        "body": answer.gzipped if answer.plain is None else answer.plain,
        "request": None if exchange is None else exchange.request,
        "response": None if exchange is None else exchange.response,
    }


def answer_of(row: Any) -> Fetched:
    """The answer in a row."""
    facts: dict[str, Any] = json.loads(row.facts)
    body, is_gzipped, exchange = bytes(row.body), facts.pop("is_gzipped"), facts.pop("exchange", None)
    facts["headers"] = tuple((name, value) for name, value in facts["headers"])
    facts["tls"] = None if facts["tls"] is None else TlsFacts(*facts["tls"])
    return Fetched(
        **facts,
        plain=None if is_gzipped else body,
        gzipped=body if is_gzipped else None,
        exchange=None if exchange is None else Exchange(bytes(row.request), bytes(row.response), *exchange),
    )
