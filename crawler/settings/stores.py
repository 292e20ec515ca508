"""Opens the store that the settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from crawler.clock import Clock
from crawler.frontier.operator import Command, Order
from crawler.settings.settings import Settings
from crawler.store.location import is_url
from crawler.store.open import give_order_to_file, open_store_at

if TYPE_CHECKING:
    from crawler.store.sections import Store


async def open_store(
    settings: Settings,
    *,
    read_only: bool = False,
    may_make: bool = True,
    for_worker: bool = False,
    clock: Clock | None = None,
    to_copy_into: bool = False,
) -> Store:
    """The store that ``settings`` name.

    Raises :class:`UsageError` if this version cannot open it, or if it is an unfinished copy.
    """
    return await open_store_at(
        settings.store.db,
        settings.politeness,
        read_only=read_only,
        may_make=may_make,
        lease_s=settings.lease_s,
        reconnect_s=settings.workers.patience_s,
        for_worker=for_worker,
        clock=clock,
        to_copy_into=to_copy_into,
    )


@asynccontextmanager
async def existing_store(settings: Settings, *, read_only: bool = True) -> AsyncIterator[Store]:
    """The store that ``settings`` name, open while inside. A store that does not exist is not made.

    Raises what :func:`open_store` raises, and :class:`UsageError` if there is no store.
    """
    store = await open_store(settings, read_only=read_only, may_make=False)
    try:
        yield store
    finally:
        await store.close()


async def order(settings: Settings, command: Command, name: str, clock: Clock, because: str = "") -> Order:
    """Give an order to the crawl on the store that ``settings`` name. The crawl may run in another process.

    Raises what :func:`existing_store` raises, and :class:`UsageError` if there is no run to stop.
    """
    if is_url(settings.store.db):
        async with existing_store(settings, read_only=False) as store:
            return await store.control.give(command, name, clock, because)
    return await give_order_to_file(settings.store.db, command, name, clock, because)
