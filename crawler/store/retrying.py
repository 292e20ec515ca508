"""Doing some writing again, where the database was away for a while or two writers were in each other's way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="_Persistent")


class Again(Protocol):
    """Makes an attempt, and another one as long as it may yet succeed."""

    async def __call__(self, attempt: Callable[[], Awaitable[T]], /) -> T: ...


class _Persistent(Protocol):
    @property
    def _again(self) -> Again: ...


def lasting(method: Callable[Concatenate[S, P], Awaitable[T]]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A method of a store that is done again by the store's ``_again``.

    An attempt may have been committed, and its answer lost: done twice, it has to come to the same.
    """

    @wraps(method)
    async def done(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._again(lambda: method(self, *args, **kwargs))

    return done
