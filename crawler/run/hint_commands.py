"""``crawler hint``: whoever hears of changes, by whatever way, tells the crawl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, BinaryIO

import click

from crawler.cli.output import print_json
from crawler.cli.shared import cli, console, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.formatting import many
from crawler.frontier.hints import Heeded, Hint, HintKind
from crawler.frontier.revisit import RevisitSettings
from crawler.inspect.why import scope_of
from crawler.settings.seeds import read_seeds, require_good, seed_lines
from crawler.settings.stores import existing_store
from crawler.store.protocols import Store

_AT_ONCE = 5000


@cli.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--from", "file", type=click.File("rb"), metavar="FILE|-", help="URLs from a file: one a line, # comments."
)
@click.option("--gone", is_flag=True, help="They are gone; else: new, or changed.")
@click.option("--source", default="user", show_default=True, metavar="NAME", help="Who says so: its record is kept.")
@db_option
@json_option
def hint(urls: tuple[str, ...], file: BinaryIO | None, gone: bool, source: str, db: str, as_json: bool) -> int:
    """Tell the crawl that URLs have changed: `crawler run --revisit` visits them first."""
    good, bad = read_seeds(text.encode(errors="surrogatepass") for text in urls)
    require_good(bad, "command line", "no hint was taken", unit="URL")
    if file is not None:
        more, bad = read_seeds(seed_lines(file))
        require_good(bad, f"--from {file.name}", "no hint was taken", unit="line")
        good += more

    async def take() -> int:
        async with existing_store(store_at(db), read_only=False) as store:
            heeded = await take_hints(store, good, HintKind.GONE if gone else HintKind.CHANGED, source)
        if as_json:
            print_json(heeded._asdict())
        else:
            console.print(
                f"{many(heeded.moved, 'visit')} brought forward, {many(heeded.new, 'URL')} new,"
                f" {heeded.ignored:,} ignored"
            )
        return 0

    return run_async(take())


async def take_hints(store: Store, urls: Iterable[str], kind: HintKind, source: str) -> Heeded:
    """Hand hints about ``urls`` in, under scope and settings of the last run."""
    now, settings = SystemClock().now(), await store.last_settings() or {}
    scope, total = await scope_of(store, settings, now), Heeded()
    for batch in _batches(urls):
        hints = [Hint(url, kind, now, source) for url in batch]
        heeded = await store.take_hints(hints, revisit_settings(settings), now, scope.refusal)
        total = total.plus(heeded)
    return total


def revisit_settings(settings: dict[str, Any]) -> RevisitSettings:
    """Those of the last run, and the defaults for what it did not have."""
    said = settings.get("revisit", {})
    return RevisitSettings(**{f.name: said[f.name] for f in fields(RevisitSettings) if f.name in said})


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    rest = list(urls)
    while rest:
        yield rest[:_AT_ONCE]
        rest = rest[_AT_ONCE:]
