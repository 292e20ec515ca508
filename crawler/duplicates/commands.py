"""The command ``crawler duplicates``."""

from __future__ import annotations

from dataclasses import asdict

from crawler.cli.console import console
from crawler.cli.output import print_json
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.duplicates.find import find_duplicates
from crawler.formatting import many
from crawler.settings.stores import existing_store
from crawler.texts.reader import TextReader


@cli.command()
@db_option
@json_option
def duplicates(db: str, as_json: bool) -> int:
    """Find pages with nearly the same main text, into the view `near_duplicates`; only changed pages are read.

    Pages belong to one cluster if their texts have at least four fifths of their five-word sequences in common. What
    many pages of a site share, such as menus, does not count.
    """

    async def find() -> int:
        async with existing_store(store_at(db), read_only=False) as store, TextReader() as reader:
            with progress_line("looking for changed pages") as say:
                found = await find_duplicates(
                    store, reader, lambda done, total: say(f"{done:,} of {total:,} pages checked")
                )
        if as_json:
            print_json(asdict(found))
        else:
            console.print(
                f"{many(found.pages, 'page')} compared, {found.read:,} read: "
                f"{many(found.duplicates, 'near-duplicate')} in {many(found.clusters, 'cluster')}"
            )
        return 0

    return run_async(find())
