"""Carries out ``crawler control``: orders to a crawl, whether it is running now or not."""

from __future__ import annotations

import re
from shlex import quote

from crawler.cli.console import console
from crawler.cli.shared import store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.frontier.operator import Command, standing, still_blocks, unmet
from crawler.session.refusals import require_contact
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.settings.stores import existing_store, order
from crawler.store.location import db_argument
from crawler.store.statements import load_statements
from crawler.url import NotCrawlable, canonicalise, split

_SAID = {
    Command.PAUSE: "paused: a running crawl stops sending within a second, and no crawl on this store sends until "
    "`crawler control resume{db}`; nothing is lost",
    Command.RESUME: "resumed",
    Command.STOP: "the crawl stops: requests in flight get a few seconds; the same command continues it",
    Command.BLOCK: "{name} is blocked: the crawl sends nothing there and excludes its queued URLs, until `crawler "
    "control unblock {name}{db}`",
    Command.UNBLOCK: "{name} is no longer blocked: the running crawl, or the next one, queues its URLs again, "
    "except those that `crawler store forget` took out",
    Command.QUEUE: "{name} is a seed: the running crawl, or the next one, requests it, also if it did before",
}
_OBJECTS = {Command.BLOCK: "SITE", Command.UNBLOCK: "SITE", Command.QUEUE: "URL"}


async def carry_out(asked: Command, given: tuple[str, ...], db: str, because: str | None) -> int:
    """Give an order about the sites or URLs that the user named; returns the exit code.

    Raises :class:`UsageError` for an order with the wrong arguments.
    """
    about = _OBJECTS.get(asked)
    if (about is None) is bool(given):
        raise UsageError(f"control {asked}: " + (f"name the {about}" if about else "takes no SITE"))
    if because is not None and asked is not Command.BLOCK:
        raise UsageError(f"control {asked}: --because says why a site is blocked")
    try:
        names = list(dict.fromkeys(map(asked.name_of, given or [""])))
        for site in given if about == "SITE" else ():
            if "://" in site and split(canonicalise(site)).path != "/":
                leave_out = f"`crawler run --exclude {quote('^' + re.escape(canonicalise(site)))}{db_argument(db)}`"
                raise UsageError(
                    f"control {asked}: a block is of a whole site: name {asked.name_of(site)}; {leave_out} leaves "
                    "out a folder"
                )
    except NotCrawlable as error:
        raise UsageError(f"control {asked}: {error}") from None
    if asked is Command.QUEUE:
        async with existing_store(store_at(db)) as store:
            require_contact(await stored_settings(store) or Settings(), names)
    for name in names:
        await order(store_at(db), asked, name, SystemClock(), because or "")
        said = _SAID[asked].format(name=name, db=db_argument(db))
        if asked in (Command.BLOCK, Command.UNBLOCK):
            async with existing_store(store_at(db)) as store:
                others = still_blocks(name, standing(await store.control.orders()).blocked)
                if asked is Command.UNBLOCK and others:
                    said = f"{name} is no longer blocked, but {', '.join(others)} still is"
                elif asked is Command.BLOCK:
                    sites = [row["site"] for row in await store.query(load_statements("crawler.run")["sites"])]
                    said += f". {found}" if (found := unmet(name, sites)) else ""
        console.print(said, soft_wrap=True)
    return 0
