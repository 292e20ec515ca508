"""The command ``crawler demo``."""

from __future__ import annotations

from pathlib import Path

import click

from crawler.cli.console import console
from crawler.cli.shared import STOPPED, cli, run_async
from crawler.cli.signals import Signals
from crawler.demo.show import run_demo
from crawler.errors import UsageError
from crawler.reasons import EndCode
from crawler.store.location import is_url, shown


@cli.command()
@click.option("--db", default="demo.db", show_default=True, metavar="PATH", help="The store; replaced at each start.")
@click.option("--no-progress", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON summary at the end.")
def demo(db: str, no_progress: bool, as_json: bool) -> int:
    """Crawl a small built-in web on loopback with the real engine, and show the result."""
    if is_url(db):
        raise UsageError(f"--db {shown(db)}: the demo needs a file for its store; give a path")

    async def show() -> int:
        signals = Signals(EndCode.DEMO)
        live = not no_progress and not as_json
        code = await run_demo(Path(db), console, live=live, as_json=as_json, on_crawl=signals.stop_from_now_on)
        return STOPPED if signals.came else code

    return run_async(show())
