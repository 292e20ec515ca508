"""The scope that the settings of a crawl give: for its runs, and for commands that queue or explain URLs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from crawler.frontier.scope import Scope
from crawler.settings.settings import Settings
from crawler.url import address_for, is_loopback


def crawl_scope(settings: Settings, places: Sequence[str], now: float) -> Scope:
    """The scope of a crawl with these ``settings`` from ``places``, at ``now`` in epoch seconds."""
    return Scope(
        settings.scope,
        places,
        partial(may_contact, settings),
        settings.traps.enabled,
        now,
        settings.limits.max_depth,
        settings.politeness.sites,
    )


def may_contact(settings: Settings, host: str) -> bool:
    """Whether requests to a host are allowed: without a contact, only to loopback and to names that resolve to it."""
    return bool(settings.identity.contact) or is_loopback(address_for(host, settings.fetch.resolve) or host)
