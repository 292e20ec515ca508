"""The registrations with servers of the Remote Update Protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from crawler.rup.protocol.info import FoundInfo, RupInfo
from crawler.rup.protocol.subscription import MailRow, Subscription
from crawler.rup.protocol.units import Span, read_span
from crawler.store.retrying import retrying
from crawler.store.sql.commit import rup_offer_row
from crawler.store.sql.section import StoreSection, in_transaction

_MAILS_KEPT = 100_000

#: The fields of a registration, each a column; those that the store keeps as JSON, and as the text of a span.
_FIELDS = [field.name for field in fields(Subscription)]
_TEXTS, _SPANS = ("units", "exclude", "include_only"), ("latency", "max_query_span")


class Subscriptions(StoreSection):
    """The registrations with servers. Each write is one transaction."""

    async def offered(self, site: str) -> FoundInfo | None:
        row = await self._read.fetch_one("rup_offer", site=site)
        if row is None:
            return None
        info = RupInfo(
            row.cgi,
            row.authentifier,
            _texts(row.latencies),
            _texts(row.exclude),
            _texts(row.include_only),
            _span(row.max_query_span),
        )
        return FoundInfo(row.url, row.found_at, info)

    @retrying
    @in_transaction
    async def put_offered(self, offered: FoundInfo) -> None:
        await self._sql.insert("rup_offer", [rup_offer_row(offered)], known="replaced")

    async def subscriptions(self) -> list[Subscription]:
        """All registrations."""
        return [_subscription(row) for row in await self._read.fetch("rup_servers")]

    @retrying
    @in_transaction
    async def put(self, changed: Sequence[Subscription], mails: Sequence[MailRow], now: float) -> None:
        """Store the new state of registrations and the verdicts on mails, in one transaction."""
        await self._sql.insert("rup_server", map(_server_row, changed), known="replaced")
        await self._sql.insert("rup_mail", [_mail_row(mail, now) for mail in mails], known="kept")
        if mails:
            await self._sql.execute("trim_rup_mails", kept=_MAILS_KEPT)

    @retrying
    @in_transaction
    async def remove(self, site: str) -> None:
        """Delete a registration."""
        await self._sql.delete("rup_server", "site", [site])

    async def read_before(self, digests: Iterable[bytes]) -> set[bytes]:
        """The digests of the mails that were read before."""
        return {digest for digest in digests if await self._read.fetch("is_mail_read", digest=digest)}


def _subscription(row: Any) -> Subscription:
    kept = {name: getattr(row, name) for name in _FIELDS}
    texts = {name: _texts(kept[name]) for name in _TEXTS}
    return Subscription(**kept | texts | {name: _span(kept[name]) for name in _SPANS})


def _server_row(subscription: Subscription) -> dict[str, object]:
    kept = {name: getattr(subscription, name) for name in _FIELDS}
    texts = {name: json.dumps(kept[name]) for name in _TEXTS}
    spans = {name: kept[name] and str(kept[name]) for name in _SPANS}
    return kept | texts | spans | {"silent_at": subscription.silent_at}


def _mail_row(mail: MailRow, taken_at: float) -> dict[str, object]:
    return asdict(mail) | {"taken_at": taken_at, "verdict_code": mail.verdict.code, "verdict": mail.verdict.sentence}


def _texts(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _span(text: str | None) -> Span | None:
    return None if text is None else read_span(text)
