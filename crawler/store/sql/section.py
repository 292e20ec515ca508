"""The base of the sections of a store: what they share, and the transactions in which they write."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from crawler.store.sql.tables import StoreStatements

if TYPE_CHECKING:
    from crawler.store.sql.store import Store

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Store | StoreSection")


def in_transaction(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Execute a method in a transaction, as :meth:`Store._transact` says. No such method calls another one."""

    @wraps(method)
    async def executed(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._transact(lambda: method(self, *args, **kwargs))

    return executed


async def are_idle(sql: StoreStatements) -> bool:
    """Whether no worker is at work, within a transaction. Then none begins before the end of the transaction."""
    if await sql.fetch("workers_not_ended"):
        return False
    await sql.execute("lock_workers")
    return not await sql.fetch("workers_not_ended")


class StoreSection:
    """A section of a store, for one kind of client, with what it uses of its store.

    ``_read`` reads committed rows; ``_control_read`` does so without waiting for a transaction or a statement.
    ``_sql``, ``_offers``, ``_workers`` and ``_revisits`` belong to the one transaction that may be open. ``_transact``
    executes a function in it; ``_writing()`` opens it for a caller that awaits something else meanwhile.
    """

    def __init__(self, store: Store) -> None:
        self._name = store.name  # in messages
        self._read = store._read
        self._control_read = store._control_read
        self._transact = store._transact
        self._writing = store._writing
        self._retry = store._retry
        self._sql = store._sql
        self._offers = store._offers
        self._workers = store._workers
        self._revisits = store._revisits
