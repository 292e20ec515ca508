"""The command ``crawler store copy``."""

from __future__ import annotations

from dataclasses import asdict
from shlex import quote

import click
from rich.table import Table

from crawler.cli.output import console, print_json
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.settings.stores import existing_store, open_store
from crawler.store.copy import copy_store
from crawler.store.location import shown


@cli.group()
def store() -> None:
    """Copy a store."""


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy(source: str, target: str, as_json: bool) -> int:
    """Copy the store FROM (a file, or postgresql://user@host/name) into TO, which is empty or a part of that copy.

    The same command continues a copy that was cut off. In the end the tables of both are compared by checksums. The
    search index is not copied: `crawler index` builds it.
    """

    async def work() -> int:
        async with existing_store(store_at(source)) as ours:
            theirs = await open_store(store_at(target), to_copy_into=True)
            try:
                with progress_line("beginning") as say:
                    copied = await copy_store(
                        ours,
                        theirs,
                        SystemClock().now(),
                        lambda table, rows, what: say(f"{table}: {rows:,} rows {what}"),
                    )
            finally:
                await theirs.close()
        if as_json:
            print_json([asdict(each) for each in copied])
            return 0
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for name in ("table", "rows", "copied now", "checksum of both"):
            table.add_column(name, justify="left" if name in ("table", "checksum of both") else "right")
        for each in filter(lambda each: each.rows, copied):
            table.add_row(each.table, f"{each.rows:,}", f"{each.new:,}", each.checksum)
        console.print(table)
        name = shown(target)
        console.print(
            f"{name} is a complete copy; `crawler run --db {quote(name)}` with the options of the crawl continues it",
            soft_wrap=True,
        )
        return 0

    return run_async(work())
