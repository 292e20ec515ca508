"""The settings that a store remembers of its crawl, so that a run without options goes on as the crawl was begun.

The store keeps the settings of each run. Those of the last run stand between the defaults and the configuration file,
except the settings of one run or process (:attr:`crawler.settings.keys.Key.is_remembered`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from crawler.errors import NoStore
from crawler.settings.keys import KEYS, Key
from crawler.settings.loading import recorded
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.location import is_url
from crawler.store.protocols import Overview


async def remembered(settings: Settings) -> Settings | None:
    """What the store that ``settings`` name remembers of its crawl; the rest has its default.

    ``None`` if there is no store, or no run began in it. Raises what :func:`crawler.settings.stores.existing_store`
    raises.
    """
    db = settings.store.db
    if not is_url(db) and not Path(db).exists():
        return None
    try:
        async with existing_store(settings) as store:
            return await remembered_by(store)
    except NoStore:
        return None


async def remembered_by(store: Overview) -> Settings | None:
    """As :func:`remembered`, for a store that is open."""
    run = await store.last_run()
    if run is None:
        return None
    last, settings = recorded(json.loads(run["settings"])), Settings()
    for key in KEYS.values():
        if key.is_remembered:
            changed = replace(getattr(settings, key.section), **{key.field: key.value(last)})
            settings = replace(settings, **{key.section: changed})
    return settings


def differing(settings: Settings, others: Settings) -> Iterator[Key]:
    """The remembered keys that have different values in ``settings`` and ``others``."""
    return (key for key in KEYS.values() if key.is_remembered and key.value(settings) != key.value(others))
