"""The base of the sections of a store: what they share, and the transactions in which they write."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from crawler.store.retrying import Retry
from crawler.store.sql.tables import StoreStatements
from crawler.store.statements import Queries

if TYPE_CHECKING:
    from crawler.store.sql.offers import Offers
    from crawler.store.sql.revisits import RevisitRows
    from crawler.store.sql.workers import Workers

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="_Writes")


class Transact(Protocol):
    """Executes ``work`` in one transaction, which is rolled back whole if anything fails in it.

    ``work`` awaits nothing but statements of the transaction. SQLite executes it on its own thread: it changes nothing
    that the event loop reads meanwhile, and reads nothing that the event loop changes.
    """

    async def __call__(self, work: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...


class _Writes(Protocol):
    @property
    def _transact(self) -> Transact: ...


def in_transaction(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Execute a method of a store in a transaction, as :class:`Transact` says. No such method calls another one."""

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


class Access(NamedTuple):
    """What a section uses of its store.

    ``read`` reads committed rows; ``control_read`` does so without waiting for a transaction or a statement. ``sql``
    and what follows belong to the one transaction that may be open. ``transact`` executes a function in it;
    ``writing()`` opens it for a caller that awaits something else meanwhile. ``name`` is the store's name in messages.
    """

    name: str
    read: Queries
    control_read: Queries
    transact: Transact
    writing: Callable[[], AbstractAsyncContextManager[None]]
    retry: Retry
    sql: StoreStatements
    offers: Offers
    workers: Workers
    revisits: RevisitRows


class StoreSection:
    """A section of a store, for one kind of client."""

    def __init__(self, access: Access) -> None:
        self._name = access.name
        self._read = access.read
        self._control_read = access.control_read
        self._transact = access.transact
        self._writing = access.writing
        self._retry = access.retry
        self._sql = access.sql
        self._offers = access.offers
        self._workers = access.workers
        self._revisits = access.revisits
