"""What the robot side of the Remote Update Protocol needs of a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from crawler.rup.protocol.subscription import FoundInfo, MailRow, Subscription


class SubscriptionStore(Protocol):
    """Raises :class:`crawler.errors.StoreError` where the store fails. Each method that writes is one transaction."""

    async def offered(self, site: str) -> FoundInfo | None: ...

    async def put_offered(self, offered: FoundInfo) -> None: ...

    async def subscriptions(self) -> list[Subscription]:
        """All of them, by site."""
        ...

    async def put(self, changed: Sequence[Subscription], mails: Sequence[MailRow], now: float) -> None:
        """Keep the new state of registrations and what became of mails, all or nothing."""
        ...

    async def remove(self, site: str) -> None:
        """Forget a registration."""
        ...

    async def read_before(self, digests: Iterable[bytes]) -> set[bytes]:
        """Which of these mails were read already."""
        ...
