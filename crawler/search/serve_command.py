"""The command ``crawler serve-search``."""

from __future__ import annotations

import asyncio
import signal
from urllib.parse import urlsplit

import click

from crawler.cli.console import console
from crawler.cli.shared import browsable, cli, db_option, listen_address, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError, requiring
from crawler.store.location import shown as shown_db


@cli.command("serve-search")
@db_option
@click.option(
    "--listen",
    default="127.0.0.1:8788",
    show_default=True,
    metavar="HOST:PORT",
    help="The address to listen on; port 0 is any free port.",
)
@click.option("--title", default="Search", show_default=True, metavar="TEXT", help="The name of the search page.")
@click.option(
    "--base-url",
    metavar="URL",
    help="The address at which users reach the page, if a proxy serves it; browsers need it to add the search.",
)
def serve_search(db: str, listen: str, title: str, base_url: str | None) -> int:
    """Serve a search page over the index that `crawler index` built; it only reads.

    The page needs no script. The same address answers programs in JSON (?q=WORDS&format=json). It has no password: on
    other addresses than 127.0.0.1 everyone who reaches it can search.
    """
    host, port = listen_address(listen)
    if base_url is not None:
        base_url = _base_url(base_url)
    return run_async(_serve(db, host, port, title, base_url))


async def _serve(db: str, host: str, port: int, title: str, base_url: str | None) -> int:
    with requiring("search", "`crawler serve-search`", "jinja2"):
        from crawler.search.page_server import serving_search
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    async with serving_search(store_at(db), host, port, SystemClock(), name=title, base_url=base_url) as taken:
        console.print(f"{shown_db(db)}: http://{browsable(host)}:{taken}/", soft_wrap=True)
        console.print("Ctrl-C ends the search page", style="dim")
        await over.wait()
    return 0


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"--base-url {text[:200]}: write an address like https://search.example.org/ without ? and #")
    return text if parts.path else f"{text}/"
