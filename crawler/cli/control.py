"""``crawler control``: what the operator asks of a crawl, whether it is running now or not."""

from __future__ import annotations

import click

from crawler.assemble import order
from crawler.cli.base import cli, console, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.frontier.operator import Command, blockable
from crawler.url import NotCrawlable

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
@click.option("--db", default="crawl.db", show_default=True, metavar="PATH", help="The crawl's store.")
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
    run_async(_ask(asked, name, db))
    console.print(_SAID[asked].format(name=name), markup=False, soft_wrap=True)
    return 0


async def _ask(asked: Command, name: str, db: str) -> int:
    await order(store_at(db), asked, name, SystemClock())
    return 0
