"""The documents that wait to be read, and the share of them that one registered domain may have.

Like the slots of requests (:mod:`crawler.engine.workbench`), they are shared by the dynamic threshold of A. Choudhury
and E. Hahne, IEEE/ACM Transactions on Networking 6(2), 1998.
"""

from __future__ import annotations

from typing import NamedTuple

#: When this many documents, or this many bytes of them, have been handed over and not answered, no further page
#: should be requested. Those already requested are accepted.
MAX_DOCUMENTS = 64
MAX_BYTES = 32 << 20
_FREE_PER_HELD = 3


class _Held(NamedTuple):
    documents: int = 0
    bytes: int = 0


_NOTHING = _Held()


class Backlog:
    """Documents that have been handed over and not answered, by registered domain.

    A domain has room while it holds less than a third of what is free. If a domain is alone, that ends at a quarter of
    all; n domains that take all they can leave 3 of n + 3 parts free.
    """

    def __init__(self) -> None:
        self._all = _NOTHING
        self._by_domain: dict[str, _Held] = {}

    def add(self, domain: str, size: int) -> None:
        """A document of ``size`` bytes is handed over."""
        self._all = _Held(self._all.documents + 1, self._all.bytes + size)
        held = self._by_domain.get(domain, _NOTHING)
        self._by_domain[domain] = _Held(held.documents + 1, held.bytes + size)

    def remove(self, domain: str, size: int) -> None:
        """A document of ``size`` bytes has been answered."""
        self._all = _Held(self._all.documents - 1, self._all.bytes - size)
        held = self._by_domain[domain]
        if held.documents == 1:
            del self._by_domain[domain]
        else:
            self._by_domain[domain] = _Held(held.documents - 1, held.bytes - size)

    def has_room(self, domain: str, times: int = 1) -> bool:
        """Whether ``domain`` should request another page, if the limits were ``times`` as large."""
        free_documents = times * MAX_DOCUMENTS - self._all.documents
        free_bytes = times * MAX_BYTES - self._all.bytes
        if free_documents <= 0 or free_bytes <= 0:
            return False
        held = self._by_domain.get(domain, _NOTHING)
        return _FREE_PER_HELD * held.documents < free_documents and _FREE_PER_HELD * held.bytes < free_bytes
