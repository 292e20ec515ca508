"""The commands ``crawler index`` and ``crawler search``."""

from __future__ import annotations

import re
from dataclasses import asdict

import click
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from crawler.cli.console import PrintableConsole, console
from crawler.cli.output import print_json, tell
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.formatting import many
from crawler.search.build_index import build_index
from crawler.search.excerpt import Marked
from crawler.search.results import Filters, SearchResult, search
from crawler.settings.stores import existing_store
from crawler.store.location import db_argument
from crawler.texts.reader import TextReader


@cli.command("index")
@db_option
@json_option
def index_command(db: str, as_json: bool) -> int:
    """Build or update the search index; only changed pages are read."""

    async def build() -> int:
        async with existing_store(store_at(db), read_only=False) as store, TextReader() as reader:
            with progress_line("looking for changed pages") as say:
                built = await build_index(db, store, reader, lambda done, total: say("pages checked", done, total))
        if as_json:
            print_json(asdict(built))
        else:
            console.print(
                f"{many(built.pages, 'page')} in the index: {built.changed:,} read, {built.removed:,} removed"
                + (f"; the text of {many(built.unread, 'page')} was too costly to read" if built.unread else "")
            )
        return 0

    return run_async(build())


class _SearchCommand(click.Command):
    """Reads words that begin with "-" after ``--``, or within an argument of several words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; click calls this. The error about an unknown option says how to leave words out."""
        end = args.index("--") if "--" in args else len(args)
        # No option contains a blank before its "=". With a blank in front, click reads the argument as words.
        read = [f" {arg}" if arg.startswith("-") and _HAS_BLANK.match(arg) else arg for arg in args[:end]]
        try:
            return super().parse_args(ctx, [*read, *args[end:]])
        except click.NoSuchOption as error:
            text = error.format_message().rstrip(".")
            raise click.UsageError(
                f"{text}. Words to leave out come after `--` (search word -- -other), or in quotes with other words "
                "(search 'word -other').",
                ctx,
            ) from None


_HAS_BLANK = re.compile(r"[^=\s]*\s")


@cli.command("search", cls=_SearchCommand)
@click.argument("words", nargs=-1, required=True)
@db_option
@json_option
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="Most results.")
@click.option("--site", metavar="S", help="Only this host (example.org, with or without port) and its subdomains.")
@click.option("--similar-to", metavar="URL", help="Only near-duplicates of this page, each that has the words.")
def search_command(
    words: tuple[str, ...], db: str, as_json: bool, limit: int, site: str | None, similar_to: str | None
) -> int:
    """Search the pages crawled, after `crawler index`.

    WORDS are the words to search for. 'wor*' matches any word that begins so, '"a phrase"' matches these words in this
    order (the inner quotes are for the crawler, the outer ones for the shell), and -word excludes pages with that word,
    unless a page has it with the hyphen, as in 'kill -9'.
    Words that begin with - come after --, or in quotes with other words: 'parser -lexer'.
    Pages with all the words come first. If there are few of them, pages with some of the words follow. Of
    near-duplicates that `crawler duplicates` has found, the best one is shown.
    """
    query = " ".join(words).strip()

    async def run() -> int:
        async with existing_store(store_at(db)) as store:
            found = await search(
                store, query, now=SystemClock().now(), limit=limit, filters=Filters(site, similar_to=similar_to)
            )
        if found.note:
            tell(found.note)
        if as_json:
            print_json({"query": query, **asdict(found)})
        else:
            _render(found, console, one_cluster=similar_to is not None)
            if found.hits and all(hit.pagerank is None for hit in found.hits):
                tell(f"none of these pages has a rank yet: run `crawler rank{db_argument(db)}` first for PageRank")
        return 0

    return run_async(run())


def _render(found: SearchResult, console: PrintableConsole, *, one_cluster: bool) -> None:
    """Print results for people: title, address and excerpt, with the matches in bold."""
    console.print(f"{'more than ' if found.is_more else ''}{many(found.total, 'page')} with all the words")
    if found.excluded:
        console.print(f"without pages that have {' or '.join(found.excluded)}", markup=False)
    if found.as_typed is not None:
        console.print(f"Results for {found.suggestion} (to search as typed: {found.as_typed})", markup=False)
    elif found.suggestion is not None:
        console.print(f"Did you mean: {found.suggestion}", markup=False)
    parted = False
    for position, hit in enumerate(found.hits, 1):
        if not hit.all_words and not parted:
            parted = True
            console.print("\nWith some of the words:")
        console.print()
        console.print(Text.assemble(f"{position}. ", _bold(hit.title) if hit.title.text else Text(hit.url)))
        lines = [Text(hit.url, style="green", overflow="fold"), _bold(hit.excerpt)]
        if hit.anchor is not None:
            lines.insert(1, Text.assemble("a link to it says “", _bold(hit.anchor), "”"))
        if hit.similar and not one_cluster:
            lines.append(Text(f"and {many(hit.similar, 'similar page')} (--similar-to shows them)", style="dim"))
        console.print(Padding(Group(*lines), (0, 0, 0, 3)))


def _bold(marked: Marked) -> Text:
    text = Text(marked.text)
    for start, end in marked.marks:
        text.stylize("bold", start, end)
    return text
