"""The scope that the settings of a crawl give: for its runs, and for commands that queue or explain URLs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from crawler.frontier.scope import Scope, adopt_mains
from crawler.settings.settings import Settings
from crawler.url import address_for, is_loopback

if TYPE_CHECKING:
    from crawler.store.sections import Store


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


async def adopt_known(store: Store, scope: Scope) -> None:
    """Add to the scope the main sites of all known mirrors, and the hosts that take the place of seeds."""
    heard = await store.heard()
    adopt_mains(scope, heard.mirrors)
    if scope.settings.follow_seed_redirects:
        scope.adopt_hosts(heard.adopted_hosts)


def may_contact(settings: Settings, host: str) -> bool:
    """Whether requests to a host are allowed: without a contact, only to loopback and to names that resolve to it."""
    return bool(settings.identity.contact) or is_loopback(address_for(host, settings.fetch.resolve) or host)
