"""``crawler hint``: tells the crawl that URLs have changed, from any source that knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO

import click

from crawler.cli.console import console
from crawler.cli.output import print_json, tell
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.formatting import many
from crawler.frontier.hints import Hint, HintCounts, HintKind
from crawler.inspect.why import scope_of
from crawler.reasons import Reason
from crawler.settings.keys import terminal_name
from crawler.settings.seeds import read_seeds, require_good, seed_lines
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.settings.stores import existing_store
from crawler.store.location import db_argument

if TYPE_CHECKING:
    from crawler.store.sections import Store

_AT_ONCE = 5000
_SHOWN = 3  # refused URLs


@cli.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--from",
    "file",
    type=click.File("rb"),
    metavar="FILE|-",
    help="Read URLs from a file, one a line; # starts a comment.",
)
@click.option("--gone", is_flag=True, help="The URLs are gone. Without this option they are new or have changed.")
@click.option(
    "--source",
    default="user",
    show_default=True,
    metavar="NAME",
    help="The source of the hints. Those of the user are due now; the crawl records how often others are right.",
)
@db_option
@json_option
def hint(urls: tuple[str, ...], file: BinaryIO | None, gone: bool, source: str, db: str, as_json: bool) -> int:
    """Tell the crawl that URLs have changed, and `crawler run --revisit` visits them first."""
    good, bad = read_seeds(text.encode(errors="surrogatepass") for text in urls)
    require_good(bad, "command line", "no hint was stored", unit="URL")
    if file is not None:
        more, bad = read_seeds(seed_lines(file))
        require_good(bad, f"--from {file.name}", "no hint was stored", unit="line")
        good += more

    if not urls and file is None:
        raise UsageError("say which URLs have changed: as arguments, or in a file with --from")

    async def apply() -> int:
        async with existing_store(store_at(db), read_only=False) as store:
            kind = HintKind.GONE if gone else HintKind.CHANGED
            counts, refused = await apply_hints(store, good, kind, source)
        if as_json:
            print_json(counts._asdict() | {"refused": refused})
        else:
            due = f"; `crawler run --revisit{db_argument(db)}` makes them" if counts.moved or counts.new else ""
            console.print(
                f"{many(counts.moved, 'visit')} brought forward, {many(counts.new, 'URL')} new,"
                f" {counts.ignored:,} ignored{due}",
                soft_wrap=True,
            )
            for url, reason in list(refused.items())[:_SHOWN]:
                tell(f"{url} is ignored: {reason}; `crawler run {quote(url)}{db_argument(db)}` adds a seed")
            if len(refused) > _SHOWN:
                tell(f"{len(refused) - _SHOWN:,} more URLs are ignored: --json names them")
        return 0

    return run_async(apply())


async def apply_hints(
    store: Store, urls: Iterable[str], kind: HintKind, source: str
) -> tuple[HintCounts, dict[str, str]]:
    """Give the store hints about ``urls``, under the scope and the settings of the last run.

    Also returns the new URLs that the scope refuses, each with the reason.
    """
    refused: dict[str, str] = {}

    def refusal(url: str, depth: int) -> Reason | None:
        found = scope.refusal(url, depth)
        if found is not None:
            refused[url] = found.code.message(found.sentence, terminal_name)
        return found

    now, settings = SystemClock().now(), (await stored_settings(store) or Settings())
    scope, revisit, total = await scope_of(store, settings, now), settings.revisit, HintCounts()
    for batch in _batches(urls):
        hints = [Hint(url, kind, now, source) for url in batch]
        counts = await store.revisits.apply_hints(hints, revisit, now, refusal)
        total = total.plus(counts)
    return total, refused


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    rest = list(urls)
    while rest:
        yield rest[:_AT_ONCE]
        rest = rest[_AT_ONCE:]
