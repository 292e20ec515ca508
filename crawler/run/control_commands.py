"""``crawler control``: what the operator asks of a crawl, whether it is running now or not."""

from __future__ import annotations

from difflib import get_close_matches

import click

from crawler.cli.shared import cli, console, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.frontier.operator import Blocks, Command, blockable, standing, still_blocks
from crawler.settings.stores import existing_store, order
from crawler.store.protocols import Store
from crawler.url import NotCrawlable, host_of

_SAID = {
    Command.PAUSE: "paused: a running crawl sends nothing new within a second, and none does until `crawler control "
    "resume`; nothing is lost",
    Command.RESUME: "going on",
    Command.STOP: "asked to stop: requests in flight get a few seconds, and the same command goes on",
    Command.BLOCK: "{name} is blocked: nothing is sent there, its queued URLs end as excluded, until `crawler control "
    "unblock {name}`",
    Command.UNBLOCK: "{name} is blocked no more: its URLs are queued again by the crawl that runs, or by the next",
}


@cli.command()
@click.argument("command", type=click.Choice([command.value for command in Command]))
@click.argument("site", required=False)
@click.option("--db", default="crawl.db", show_default=True, metavar="PATH|URL", help="The crawl's store.")
def control(command: str, site: str | None, db: str) -> int:
    """Pause a crawl, let it go on, stop it, block a SITE or lift the block.

    SITE is a host (example.org: with any scheme and port), or one site (https://example.org). Pauses and blocks last,
    also over a restart; stop ends the run that is on, and no later one.
    """
    asked = Command(command)
    about_site = asked in (Command.BLOCK, Command.UNBLOCK)
    if about_site is (site is None):
        raise UsageError(f"control {command}: name the SITE" if about_site else f"control {command}: takes no SITE")
    try:
        name = "" if site is None else blockable(site)
    except NotCrawlable as error:
        raise UsageError(f"control {command}: {error}") from None
    return run_async(_ask(asked, name, db))


async def _ask(asked: Command, name: str, db: str) -> int:
    await order(store_at(db), asked, name, SystemClock())
    said = _SAID[asked].format(name=name)
    if name:
        async with existing_store(store_at(db)) as store:
            others = still_blocks(name, standing(await store.control.orders()).blocked)
            if asked is Command.UNBLOCK and others:
                said = f"{name} is blocked no more, but {', '.join(others)} still is"
            elif asked is Command.BLOCK:
                said += await _unmet(store, name)
    console.print(said, markup=False, soft_wrap=True)
    return 0


async def _unmet(store: Store, name: str) -> str:
    """What to add where the crawl knows no site that a block is of: it may be a slip of the pen."""
    sites = [row["name"] for row in await store.query("SELECT name FROM site")]
    blocks = Blocks()
    blocks.names = frozenset([name])
    if any(blocks.covers(f"{site}/") for site in sites):
        return ""
    known = sites if "://" in name else [host_of(site) for site in sites]
    near = get_close_matches(name, dict.fromkeys(known), n=3, cutoff=0.8)
    return ". No site of this crawl is matched by it yet" + (f" (near: {', '.join(near)})" if near else "")
