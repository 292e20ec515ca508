"""The commands ``crawler index``, ``refresh-search``, ``search`` and ``serve-search``; each loads what it needs."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from crawler.cli.on_store import on_rows, show
from crawler.cli.output import say, tell
from crawler.cli.serving import listen_option, serve
from crawler.cli.shared import cli, db_option, json_option, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError, requiring
from crawler.fields.kinds import SECONDS
from crawler.store.computed import REFRESH, Computed
from crawler.store.location import db_argument

if TYPE_CHECKING:
    from crawler.search.build_index import IndexSummary
    from crawler.search.results import SearchResult
    from crawler.store.sections import Store


@cli.command("index")
@db_option
@json_option
def index_command(db: str, as_json: bool) -> None:
    """Build or update the search index; only changed pages are read."""
    from crawler.cli.progress import progress_line
    from crawler.search.build_index import build_index
    from crawler.texts.reader import TextReader

    async def build(store: Store) -> IndexSummary:
        async with TextReader() as reader:
            with progress_line("looking for changed pages") as doing:
                return await build_index(db, store, reader, partial(doing, "pages checked"))

    built = on_rows(db, build, writes=True)
    show(as_json, lambda: asdict(built), lambda: say(str(built)))


@cli.command("refresh-search")
@db_option
@json_option
def refresh_search(db: str, as_json: bool) -> None:
    """Bring near-duplicates, ranks and the search index up to date with the crawl.

    Does what `crawler duplicates`, `crawler rank` and `crawler index` do, and leaves out those whose result is up to
    date, and the ranks if the extra `rank` is missing. The search answers meanwhile. For a timer after each run.
    """
    from crawler.cli.console import console
    from crawler.cli.progress import progress_line
    from crawler.search.refresh import refresh, without_ranks
    from crawler.texts.reader import TextReader

    async def run(store: Store) -> dict[Computed, Any]:
        async with TextReader() as reader:
            with progress_line("looking for changed pages") as say:
                return await refresh(db, store, reader, say)

    done = on_rows(db, run, writes=True)
    lines = {each: f"{each.label}: {done.get(each, 'up to date')}" for each in Computed}
    if why := without_ranks():
        lines[Computed.RANKS] = f"ranks: none, {why}"
    show(
        as_json,
        lambda: {each.value: asdict(done[each]) if each in done else None for each in Computed},
        lambda: console.print("\n".join(lines.values()), soft_wrap=True),
    )


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
                f"{text}. Words that begin with a hyphen come after `--`: `search -- --word` finds one, and "
                "`search word -- -other` or `search 'word -other'` leaves one out.",
                ctx,
            ) from None


_HAS_BLANK = re.compile(r"[^=\s]*\s")


@cli.command("search", cls=_SearchCommand)
@click.argument("words", nargs=-1, required=True)
@db_option
@json_option
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="Most results.")
@click.option("--site", metavar="S", help="Only this host (example.org, with or without port) and its subdomains.")
@click.option("--language", metavar="L", help="Only pages that state this language, as in en or de.")
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Only pages so many links from a seed.")
@click.option("--since", metavar="TIME", help='Only pages fetched within this time, such as "7 days".')
@click.option("--similar-to", metavar="URL", help="Only near-duplicates of this page, each that has the words.")
def search_command(
    words: tuple[str, ...], db: str, as_json: bool, limit: int, since: str | None, **bounds: Any
) -> None:
    """Search the pages crawled, after `crawler refresh-search`.

    WORDS are the words to search for. 'wor*' matches any word that begins so, '"a phrase"' matches these words in this
    order (the inner quotes are for the crawler, the outer ones for the shell), and -word excludes pages with that word,
    unless a page has it with the hyphen, as in 'kill -9'.
    Words that begin with - come after --, or in quotes with other words: 'parser -lexer'.
    Pages with some of the words rank below like pages with all of them; rare words count more. Of near-duplicates, the
    best one is shown.
    """
    from crawler.cli.console import console
    from crawler.search.rendering import render
    from crawler.search.results import Filters, search

    query, now = " ".join(words).strip(), SystemClock().now()
    try:
        from_s = None if since is None else now - SECONDS.read(since)
    except ValueError as error:
        raise UsageError(f"--since {error}") from None
    filters = Filters(since=from_s, **bounds)

    async def run(store: Store) -> tuple[SearchResult, bool]:
        found = await search(store, db, query, now=now, limit=limit, filters=filters)
        return found, Computed.RANKS in await store.computed()

    found, is_ranked = on_rows(db, run)
    if found.note:
        tell(found.note)
    one_cluster = filters.similar_to is not None
    show(as_json, lambda: {"query": query, **asdict(found)}, lambda: render(found, console, one_cluster=one_cluster))
    if not as_json and found.hits and not is_ranked:
        tell(f"no page has a rank yet: run `{REFRESH}{db_argument(db)}` first for PageRank")


@cli.command("serve-search")
@db_option
@listen_option("127.0.0.1:8788")
@click.option("--title", default="Search", hidden=True, help="The name of the search page.")
@click.option(
    "--base-url",
    metavar="URL",
    help="The address at which users reach the page, if a proxy serves it; browsers need it to add the search.",
)
def serve_search(db: str, listen: str, title: str, base_url: str | None) -> None:
    """Serve a search page over the index that `crawler refresh-search` built; it only reads.

    The page needs no script. The same address answers programs in JSON (?q=WORDS&format=json). It has no password: on
    other addresses than 127.0.0.1 everyone who reaches it can search.
    """
    with requiring("search", "`crawler serve-search`"):
        from crawler.search.page_server import serving_search
    address = None if base_url is None else _base_url(base_url)
    page = partial(serving_search, store_at(db), clock=SystemClock(), name=title, base_url=address)
    serve(listen, page, db, "the search page")


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"--base-url {text[:200]}: write an address like https://search.example.org/ without ? and #")
    return text if parts.path else f"{text}/"
