"""The facts about TLS connections, stored once each.

All requests to a site have the same facts until its certificate changes. So a request names the number of its facts,
which is made from them, as a page names its preferences (:mod:`crawler.store.sql.preferences`).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from hashlib import sha256

from crawler.model import TlsFacts
from crawler.store.rows import RequestRow


@lru_cache(maxsize=4096)
def tls_id(facts: TlsFacts | None) -> int | None:
    """The number of the facts: 63 bits of a SHA-256. ``None`` for ``None``."""
    return None if facts is None else int.from_bytes(sha256(repr(tuple(facts)).encode()).digest()[:8]) >> 1


def tls_rows(requests: Collection[RequestRow]) -> list[dict[str, object]]:
    """The facts of these requests, each once and in the order of their numbers, so that no writers block."""
    numbered = {tls_id(row.tls): row.tls for row in requests if row.tls is not None}
    return [{"id": number, **facts._asdict()} for number, facts in sorted(numbered.items())]
