"""For the robot side of the Remote Update Protocol: the registrations with servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from crawler.rup.protocol.info import FoundInfo
    from crawler.rup.protocol.subscription import MailRow, Subscription


class SubscriptionStore(Protocol):
    """Every method raises :class:`crawler.errors.StoreError` if the store fails. Each write is one transaction."""

    async def offered(self, site: str) -> FoundInfo | None: ...

    async def put_offered(self, offered: FoundInfo) -> None: ...

    async def subscriptions(self) -> list[Subscription]:
        """All registrations."""
        ...

    async def put(self, changed: Sequence[Subscription], mails: Sequence[MailRow], now: float) -> None:
        """Store the new state of registrations and the verdicts on mails, in one transaction."""
        ...

    async def remove(self, site: str) -> None:
        """Delete a registration."""
        ...

    async def read_before(self, digests: Iterable[bytes]) -> set[bytes]:
        """The digests of the mails that were read before."""
        ...
