"""The base of the sections of a store: the connections, and the transactions in which a section writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from crawler.store.retrying import Retry
from crawler.store.sql.tables import StoreStatements
from crawler.store.statements import Queries


class Access(NamedTuple):
    """The way of a section to its database.

    ``read`` reads committed rows. ``sql`` belongs to the one transaction that may be open, and ``writing()`` opens it;
    it is rolled back whole if anything fails in it. ``name`` is the store's name in messages.
    """

    name: str
    sql: StoreStatements
    read: Queries
    writing: Callable[[], AbstractAsyncContextManager[None]]
    retry: Retry


class StoreSection:
    """A section of a store, for one kind of client."""

    def __init__(self, access: Access) -> None:
        self._name = access.name
        self._sql = access.sql
        self._read = access.read
        self._writing = access.writing
        self._retry = access.retry
