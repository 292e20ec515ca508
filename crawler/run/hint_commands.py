"""``crawler hint``: tells the crawl that URLs have changed, from any source that knows."""

from __future__ import annotations

import sys
from shlex import quote

import click

from crawler.cli.console import console
from crawler.cli.on_store import on_store, show
from crawler.cli.output import tell
from crawler.cli.shared import cli, db_option, json_option
from crawler.errors import UsageError
from crawler.formatting import many
from crawler.frontier.hints import HintKind
from crawler.run.hints import HintsGiven, give_hints
from crawler.settings.seeds import read_seeds, require_good, seed_lines
from crawler.store.location import db_argument

_SHOWN = 3  # refused URLs


@cli.command()
@click.argument("urls", nargs=-1, metavar="URL...|-")
@click.option("--gone", is_flag=True, help="The URLs are gone. Without this option they are new or have changed.")
@click.option(
    "--source",
    default="user",
    hidden=True,
    help="The source of the hints. Those of the user are due now; the crawl records how often others are right.",
)
@db_option
@json_option
def hint(urls: tuple[str, ...], gone: bool, source: str, db: str, as_json: bool) -> None:
    """Tell the crawl that URLs have changed, and `crawler run --revisit` visits them first.

    With - in place of URLs, they are read from standard input, one a line; # starts a comment.
    """
    if not urls:
        raise UsageError("say which URLs have changed: as arguments, or - for standard input")
    if urls == ("-",):
        if sys.stdin is None:
            raise UsageError("standard input is closed")
        good, bad = read_seeds(seed_lines(sys.stdin.buffer))
        require_good(bad, "standard input", "no hint was stored", unit="line")
    else:
        good, bad = read_seeds(text.encode(errors="surrogatepass") for text in urls)
        require_good(bad, "command line", "no hint was stored", unit="URL")

    kind = HintKind.GONE if gone else HintKind.CHANGED
    given = on_store(db, lambda store: give_hints(store, good, kind, source), writes=True)
    show(as_json, given.as_json, lambda: _render(given, db))


def _render(given: HintsGiven, db: str) -> None:
    counts, refused = given.counts, given.refused
    due = f"; `crawler run --revisit{db_argument(db)}` makes them" if counts.moved or counts.new else ""
    console.print(
        f"{many(counts.moved, 'visit')} brought forward, {many(counts.new, 'URL')} new, "
        f"{counts.ignored:,} ignored{due}",
        soft_wrap=True,
    )
    for url, reason in list(refused.items())[:_SHOWN]:
        tell(f"{url} is ignored: {reason}; `crawler control queue {quote(url)}{db_argument(db)}` makes it a seed")
    if len(refused) > _SHOWN:
        tell(f"{len(refused) - _SHOWN:,} more URLs are ignored: --json names them")
