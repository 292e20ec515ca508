"""Retrying writes after a lost connection, or after a conflict of two transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from crawler.errors import StoreError, StoreFull

if TYPE_CHECKING:
    from crawler.store.sql.section import StoreSection
    from crawler.store.sql.store import Store

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Store | StoreSection")

LOOK_FOR_ROOM_S = 1.0


class TransactionConflict(StoreError):
    """Two transactions were in conflict, and the database rolled this one back."""


async def while_full(attempt: Callable[[], Awaitable[T]], waits: Callable[[StoreFull], bool]) -> T:
    """Make an attempt, again and again while it raises :class:`StoreFull` and ``waits`` returns true for the error."""
    while True:
        try:
            return await attempt()
        except StoreFull as error:
            if not waits(error):
                raise
        await asyncio.sleep(LOOK_FOR_ROOM_S)


def retrying(
    method: Callable[Concatenate[S, P], Awaitable[T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Retry a method of a store by the ``_retry`` of its object.

    An attempt may have been committed and its answer lost: the method must have the same effect if it runs twice.
    """

    @wraps(method)
    async def retried(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._retry(lambda: method(self, *args, **kwargs))

    return retried
