"""The commands ``crawler store copy``, ``crawler store grant-reader`` and ``crawler store sweep``."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote

import click
from rich.table import Table

from crawler.cli.console import console
from crawler.cli.output import print_json
from crawler.cli.progress import progress_line
from crawler.cli.shared import LazyGroup, cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.formatting import many
from crawler.inspect.parts import describe_unfinished
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.settings.stores import existing_store, open_store
from crawler.store.copy import copy_store
from crawler.store.location import shown
from crawler.store.merge import merge_parts
from crawler.store.open import grant_reader_at, is_there


class _Commands(LazyGroup):
    modules = dict.fromkeys(("copy", "merge", "grant-reader", "sweep"), "maintenance.store_commands") | dict.fromkeys(
        ("forget", "prune", "compact"), "maintenance.commands"
    )


@cli.group(cls=_Commands)
def store() -> None:
    """Take content out of a store, copy it, merge the parts of a crawl, or let a role read it."""


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy(source: str, target: str, as_json: bool) -> int:
    """Copy the store FROM (a file, or postgresql://user@host/name) into TO, which is empty or an earlier copy of it.

    The same command continues a copy that was cut off, and brings a complete one up to date. In the end the tables of
    both are compared by checksums. The search index is not copied: `crawler index` builds it.
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


@store.command()
@click.argument("source", metavar="PART")
@click.argument("target", metavar="TO")
def merge(source: str, target: str) -> int:
    """Merge a crawl on several databases into the store TO, which is new. PART is the store of one of its parts.

    Every command that reads works on the merged store. `crawler index` builds its search index, and `crawler rank` its
    ranks. The stores of the parts stay as they are. To repeat an interrupted merge,
    run the same command.
    """

    async def work() -> int:
        async with AsyncExitStack() as stack:
            one = await stack.enter_async_context(existing_store(store_at(source)))
            if one.parts is None:
                raise UsageError(f"{one.name} has a whole crawl, and no part of one: there is nothing to merge")
            dbs = one.parts.dbs
            begun = [number for number, db in enumerate(dbs) if await is_there(db)]
            stores = [await stack.enter_async_context(existing_store(store_at(dbs[number]))) for number in begun]
            unfinished = await describe_unfinished(dict(zip(begun, stores, strict=True)), one.parts)
            # Under the crawl's own pauses: the default would lengthen those that are shorter.
            politeness = (await stored_settings(one) or Settings()).politeness
            merged = await open_store(replace(store_at(target), politeness=politeness), to_copy_into=True)
            stack.push_async_callback(merged.close)
            with progress_line("beginning") as say:
                await merge_parts(
                    stores,
                    merged,
                    SystemClock().now(),
                    lambda table, rows, what: say(f"{table}: {rows:,} rows {what}"),
                )
            counts = await merged.counts()
        name = shown(target)
        console.print(
            f"{name} has the crawl of {many(len(stores), 'part')}: {many(counts.pages, 'page')}, "
            f"{many(counts.links, 'link')}",
            soft_wrap=True,
        )
        if unfinished:
            again = f"the same command merges again later, with a new store in place of {name}"
            console.print(f"the crawl is not over: {unfinished}; {again}", soft_wrap=True)
        return 0

    return run_async(work())


@store.command()
@db_option
@json_option
def sweep(db: str, as_json: bool) -> int:
    """Delete the bodies outside the store that no page names.

    With `store.bodies`, a crash may leave such bodies. No crawl may be at work on the store.
    """

    async def work() -> int:
        async with existing_store(store_at(db), read_only=False) as store:
            with progress_line("comparing the bodies with the store"):
                await store.recover(SystemClock().now())
                swept = await store.bodies.sweep()
        if as_json:
            print_json(swept._asdict())
            return 0
        unfinished = f", and {many(swept.unfinished, 'unfinished object')}" if swept.unfinished else ""
        bodies = "body" if swept.deleted == 1 else "bodies"
        console.print(f"deleted {swept.deleted:,} {bodies}{unfinished}; {swept.left:,} left")
        return 0

    return run_async(work())


@store.command("grant-reader")
@db_option
@click.option("--role", default="crawl_reader", show_default=True, help="The role that may read the store.")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Set the role's password to the first line of this file.",
)
def grant_reader(db: str, role: str, password_file: Path | None) -> int:
    """Make a role on PostgreSQL that may read the store and do nothing else.

    If the role exists, everything else that it was granted on the store is revoked. --db names a role that owns the
    store. Commands that only read can then use postgresql://crawl_reader@host/name.
    """

    async def work() -> int:
        password = None if password_file is None else password_file.read_text("utf-8").partition("\n")[0]
        is_new = await grant_reader_at(store_at(db).store.db, role, password)
        console.print(f"{'made the role' if is_new else 'the role'} {role}, which may read {shown(db)}", soft_wrap=True)
        if is_new and password is None:
            console.print("it has no password; --password-file sets one")
        return 0

    return run_async(work())
