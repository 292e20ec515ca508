"""The frame of a command on the store of a crawl: it opens the store, does its work, and shows the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.cli.output import print_json
from crawler.cli.shared import run_async, store_at
from crawler.cli.signals import Signals
from crawler.settings.stores import existing_store
from crawler.store.location import names_dataset

if TYPE_CHECKING:
    from crawler.store.sections import Store

Result = TypeVar("Result")


def on_store(db: str, work: Callable[[Store], Awaitable[Result]], *, writes: bool = False) -> Result:
    """The result of ``work`` on the store ``db``, which is open meanwhile; for writing if ``writes``.

    SIGINT and SIGTERM cancel ``work``, so that it leaves no half-written file. Raises what :func:`existing_store`
    raises.
    """

    async def run() -> Result:
        Signals()
        async with existing_store(store_at(db), read_only=not writes) as store:
            return await work(store)

    return run_async(run())


def on_rows(db: str, work: Callable[[Any], Awaitable[Result]], *, writes: bool = False) -> Result:
    """As :func:`on_store`, but ``db`` may also name a dataset: its views are read like those of a store.

    A dataset needs the extra `rounds`. Raises :class:`crawler.errors.UsageError` if there is no such dataset.
    """
    if not names_dataset(db):
        return on_store(db, work, writes=writes)
    from crawler.dataset.views import Views

    async def run() -> Result:
        Signals()
        with Views(db, computes=writes) as views:
            return await work(views)

    return run_async(run())


def show(as_json: bool, document: Callable[[], object], text: Callable[[], None]) -> None:
    """Print ``document`` as JSON if the user asked for it, else print the ``text`` for people."""
    if as_json:
        print_json(document())
    else:
        text()
