"""Assembles the robot's side of the Remote Update Protocol on the store of a crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from crawler.clock import SystemClock
from crawler.engine.lease import Lease
from crawler.engine.parser_pool import ParserPool, ReadingOptions
from crawler.engine.polite_client import PoliteClient
from crawler.engine.tasks import required_task
from crawler.errors import UsageError
from crawler.fetch.client import HttpFetcher
from crawler.inspect.why import scope_of
from crawler.reasons import EndCode, RunEnd
from crawler.rup.robot.hints import StoreHints
from crawler.rup.robot.subscribe import Subscriber
from crawler.session.crawl_session import crawl_policy, fetch_settings
from crawler.session.refusals import request_signer, require_contact, require_usable_proxy
from crawler.settings.keys import KEYS
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings, to_record
from crawler.settings.stores import open_store

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: Settings that decide the reading of robots.txt and the politeness groups: all users of one store must agree on them.
_FIXED = ("identity.agent", "robots.reading", "politeness.group")


@asynccontextmanager
async def robot(
    settings: Settings, site: str | None, tell: Callable[[str], None], *, make: bool = False
) -> AsyncIterator[Subscriber]:
    """A subscriber that may send requests, and logs them as a run of its own.

    ``site``: the site concerned; ``None``: all.

    ``make``: create a missing store. Raises the errors of :func:`crawler.settings.stores.open_store`, and
    :class:`UsageError` if the settings name no contact, exclude a proxy, or differ from those of the crawl in the
    store.
    """
    require_usable_proxy(settings)
    signer = request_signer(settings)
    if site is not None:
        require_contact(settings, [f"{site}/"])
    clock = SystemClock()
    async with _store(settings, make) as store:
        if (last := await stored_settings(store)) is not None:
            _require_same(last, settings)
        policy = crawl_policy(settings)
        scope = await scope_of(store, settings, clock.now())
        await store.start_run({**to_record(settings), "auxiliary_run": "rup"}, clock.now())
        try:
            lease = Lease(store, clock, policy.fetch.total_timeout_s)
            async with (
                HttpFetcher(fetch_settings(settings), clock, lease.may_send, signer=signer) as fetcher,
                required_task(lease.keep()),
                ParserPool(ReadingOptions(policy.robots.token, policy.robots.settings.reading)) as reader,
            ):
                client = PoliteClient(
                    store, fetcher, clock, policy.politeness, policy.robots, lease, fetcher.book, reader
                )
                hints = StoreHints(store, settings.revisit, settings.limits.max_pages_per_site, scope.refusal)
                elsewhere = settings.updates.cgi_elsewhere
                yield Subscriber(store.rup, hints, client, clock, tell, cgi_elsewhere=elsewhere, db=settings.store.db)
        finally:
            await store.end_run(RunEnd(EndCode.AUXILIARY, "crawler rup"), clock.now())


@asynccontextmanager
async def _store(settings: Settings, make: bool) -> AsyncIterator[Store]:
    """Open for writing until the context ends."""
    store = await open_store(settings, may_make=make)
    try:
        yield store
    finally:
        await store.close()


def _require_same(last: Settings, settings: Settings) -> None:
    for name in _FIXED:
        before = KEYS[name].value(last)
        if before != KEYS[name].value(settings):
            raise UsageError(f"the crawl in this store has {before!s}; use the same, or another store", key=name)
