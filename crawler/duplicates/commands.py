"""The command ``crawler duplicates``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from crawler.cli.console import console
from crawler.cli.on_store import on_rows, show
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option
from crawler.duplicates.find import DuplicatesSummary, find_duplicates
from crawler.texts.reader import TextReader

if TYPE_CHECKING:
    from crawler.store.sections import Store


@cli.command()
@db_option
@json_option
def duplicates(db: str, as_json: bool) -> None:
    """Find pages with nearly the same main text, into the view `near_duplicates`; only changed pages are read.

    Pages belong to one cluster if their texts have at least four fifths of their five-word sequences in common, and
    they do not differ in title or in a main word. What many pages of a site share, such as menus, does not count.
    """

    async def find(store: Store) -> DuplicatesSummary:
        async with TextReader() as reader:
            with progress_line("looking for changed pages") as say:
                return await find_duplicates(store, reader, say)

    found = on_rows(db, find, writes=True)
    show(as_json, lambda: asdict(found), lambda: console.print(str(found)))
