"""The settings that a store keeps: those of each run, and those with which the next run goes on.

The store keeps the settings of each run as JSON. Those of the last run stand between the defaults and the configuration
file, except the settings of one run or process (:attr:`crawler.settings.keys.Key.is_remembered`).
:func:`stored_settings` is the one way to read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crawler.errors import NoStore
from crawler.settings.keys import KEYS, Key
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.location import is_url, shown

if TYPE_CHECKING:
    from crawler.store.sections import Store


def to_record(settings: Settings) -> dict[str, Any]:
    """The settings of a run as the store keeps them: without passwords, and without the address of a webhook."""
    store, output = replace(settings.store, db=shown(settings.store.db)), replace(settings.output, notify="")
    return asdict(replace(settings, store=store, output=output))


def recorded(run: Mapping[str, Any]) -> Settings:
    """The settings of a run, from what :func:`to_record` made of them, through JSON.

    An unknown key is ignored, and a missing one has its default. Raises :class:`msgspec.ValidationError` for a value of
    another type.
    """
    return msgspec.convert({name: section for name, section in run.items() if section is not None}, Settings)


async def stored_settings(store: Store) -> Settings | None:
    """The settings with which the crawl in ``store`` goes on; ``None`` if no run began in it.

    They are those of the last run. The settings of one run or process have their defaults.
    """
    run = await store.last_run()
    if run is None:
        return None
    last, settings = recorded(json.loads(run["settings"])), Settings()
    for key in KEYS.values():
        if not key.is_remembered:
            forgotten = replace(getattr(last, key.section), **{key.field: key.value(settings)})
            last = replace(last, **{key.section: forgotten})
    return last


async def settings_stored_at(settings: Settings) -> Settings | None:
    """As :func:`stored_settings`, for the store that ``settings`` name; ``None`` if it does not exist.

    Raises what :func:`crawler.settings.stores.existing_store` raises for any other reason.
    """
    db = settings.store.db
    if not is_url(db) and not Path(db).exists():
        return None
    try:
        async with existing_store(settings) as store:
            return await stored_settings(store)
    except NoStore:
        return None


def differing(settings: Settings, others: Settings) -> Iterator[Key]:
    """The remembered keys that have different values in ``settings`` and ``others``."""
    return (key for key in KEYS.values() if key.is_remembered and key.value(settings) != key.value(others))
