"""The Remote Update Protocol's part of the SQLite store; see :class:`crawler.store.subscriptions.SubscriptionStore`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from crawler.rup.protocol.forms import Preferences
from crawler.rup.protocol.info import RupInfo
from crawler.rup.protocol.robot import Server
from crawler.rup.protocol.subscription import FoundInfo, MailRow, Subscription
from crawler.rup.protocol.units import Span, read_span
from crawler.store.retrying import Again, lasting
from crawler.store.sqlite.connection import Database, Read

_MAILS_KEPT = 100_000
_OFFER = "url, found_at, cgi, authentifier, latencies, exclude, include_only, max_query_span"
_SERVER = (
    "site, cgi, key, email, latency, registered_at, units, max_query_span, sequence_number, digest, good_until,"
    " heard_at, quiet, refused, exclude, include_only, question, lost, given_up, unreached, silent_at"
)


class SqliteRup:
    """On the one connection of a store, whose ``writing`` makes a transaction."""

    def __init__(
        self, read: Read, db: Database, writing: Callable[[], AbstractAsyncContextManager[None]], again: Again
    ) -> None:
        self._read = read
        self._db = db
        self._writing = writing
        self._again = again

    async def offered(self, site: str) -> FoundInfo | None:
        row = next(iter(await self._read(f"SELECT {_OFFER} FROM rup_offer WHERE site = ?", (site,))), None)
        if row is None:
            return None
        url, found_at, cgi, authentifier, units, exclude, include_only, span = row
        info = RupInfo(cgi, authentifier, _tuple(units), _tuple(exclude), _tuple(include_only), _span(span))
        return FoundInfo(url, found_at, info)

    @lasting
    async def put_offered(self, offered: FoundInfo) -> None:
        async with self._writing():
            await write_offer(self._db, offered)

    async def subscriptions(self) -> list[Subscription]:
        return [_subscription(row) for row in await self._read(f"SELECT {_SERVER} FROM rup_server")]

    @lasting
    async def put(self, changed: Sequence[Subscription], mails: Sequence[MailRow], now: float) -> None:
        async with self._writing():
            for row in map(_row, changed):
                await self._db.execute(_upsert("rup_server", _SERVER), row)
            for m in mails:
                await self._db.execute(
                    "INSERT INTO rup_mail (digest, taken_at, site, sequence_number, verdict, changes, refused)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (m.digest, now, m.site, m.sequence_number, m.verdict, m.changes, m.refused),
                )
            if mails:
                await self._db.execute(
                    "DELETE FROM rup_mail WHERE id <= (SELECT max(id) FROM rup_mail) - ?", (_MAILS_KEPT,)
                )

    @lasting
    async def remove(self, site: str) -> None:
        async with self._writing():
            await self._db.execute("DELETE FROM rup_server WHERE site = ?", (site,))

    async def read_before(self, digests: Iterable[bytes]) -> set[bytes]:
        wanted = list(digests)
        sql = f"SELECT digest FROM rup_mail WHERE digest IN ({', '.join('?' * len(wanted))})"
        return {row[0] for row in await self._read(sql, wanted)}


async def write_offer(db: Database, offered: FoundInfo) -> None:
    """Within a transaction."""
    info = offered.info
    lists = map(json.dumps, (info.latencies, info.exclude, info.include_only))
    span = None if info.max_query_span is None else str(info.max_query_span)
    await db.execute(
        _upsert("rup_offer", f"site, {_OFFER}"),
        (offered.site, offered.url, offered.found_at, info.cgi, info.authentifier, *lists, span),
    )


def _upsert(table: str, columns: str) -> str:
    """Put a row for a site into a table, in the place of what was there of it."""
    names = [name.strip() for name in columns.split(",")]
    places, rest = ", ".join("?" * len(names)), ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    return f"INSERT INTO {table} ({columns}) VALUES ({places}) ON CONFLICT (site) DO UPDATE SET {rest}"


def _subscription(row: Sequence[Any]) -> Subscription:
    site, cgi, key, email, latency, registered_at, units, most, *numbers = row[:14]
    exclude, include_only, question, lost, given_up, unreached, _ = row[14:]
    latency = _span(latency)
    assert latency is not None, "we wrote it"
    server = Server(site, cgi, key, email, latency, registered_at, _tuple(units), _span(most), *numbers)
    preferences = Preferences(latency, _tuple(exclude) or None, _tuple(include_only) or None)
    return Subscription(server, preferences, question, lost, given_up, unreached)


def _row(subscription: Subscription) -> tuple[object, ...]:
    server, preferences = subscription.server, subscription.preferences
    return (
        server.site, server.cgi, server.key, server.email, str(server.latency), server.registered_at,
        json.dumps(server.units), None if server.max_query_span is None else str(server.max_query_span),
        server.sequence_number, server.digest, server.good_until, server.heard_at, server.quiet, server.refused,
        json.dumps(preferences.exclude or ()), json.dumps(preferences.include_only or ()),
        subscription.question, subscription.lost, subscription.given_up, subscription.unreached,
        subscription.silent_at,
    )  # fmt: skip


def _tuple(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _span(text: str | None) -> Span | None:
    return None if text is None else read_span(text)
