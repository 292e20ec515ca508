"""Sets of preferences about use, stored once each.

Most pages state nothing, and the pages of a site often state the same. So a page names the number of its set, which is
made from the content of the set: no row has to be looked up, and writing a set again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from crawler.model import Preference

if TYPE_CHECKING:
    from crawler.frontier.decide import Outcome


def set_id(said: tuple[Preference, ...] | None) -> int | None:
    """The number of a set; ``None`` for the empty set and for ``None``."""
    return _stored(said)[0] if said else None


def set_rows(outcomes: Iterable[Outcome]) -> list[dict[str, object]]:
    """The sets that these outcomes name, each once and in the order of their numbers, so that no writers block."""
    sets = {said for o in outcomes for said in (o.own_preferences, o.robots_preferences) if said}
    return [{"id": number, "said": said} for number, said in sorted(map(_stored, sets))]


@lru_cache(maxsize=256)
def _stored(said: tuple[Preference, ...]) -> tuple[int, str]:
    """The number of a set, of 63 bits of its SHA-256, and its content in JSON."""
    content = json.dumps([one._asdict() for one in said], ensure_ascii=False)
    return int.from_bytes(sha256(content.encode()).digest()[:8]) >> 1, content
