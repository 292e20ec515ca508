"""``crawler hint``: tells the crawl that URLs have changed, from any source that knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from crawler.cli.console import console
from crawler.cli.on_store import on_store, show
from crawler.cli.output import tell
from crawler.cli.shared import cli, db_option, json_option
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
def hint(urls: tuple[str, ...], file: BinaryIO | None, gone: bool, source: str, db: str, as_json: bool) -> None:
    """Tell the crawl that URLs have changed, and `crawler run --revisit` visits them first."""
    good, bad = read_seeds(text.encode(errors="surrogatepass") for text in urls)
    require_good(bad, "command line", "no hint was stored", unit="URL")
    if file is not None:
        more, bad = read_seeds(seed_lines(file))
        require_good(bad, f"--from {file.name}", "no hint was stored", unit="line")
        good += more

    if not urls and file is None:
        raise UsageError("say which URLs have changed: as arguments, or in a file with --from")

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
        tell(f"{url} is ignored: {reason}; `crawler run {quote(url)}{db_argument(db)}` adds a seed")
    if len(refused) > _SHOWN:
        tell(f"{len(refused) - _SHOWN:,} more URLs are ignored: --json names them")


@dataclass(frozen=True, slots=True)
class HintsGiven:
    """What hints came to; ``refused`` are new URLs that the scope refuses, each with the reason."""

    counts: HintCounts
    refused: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The counts and the refused URLs as one JSON object."""
        return self.counts._asdict() | {"refused": dict(self.refused)}


async def give_hints(store: Store, urls: Iterable[str], kind: HintKind, source: str) -> HintsGiven:
    """Give the store hints about ``urls``, under the scope and the settings of the last run."""
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
    return HintsGiven(total, refused)


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    rest = list(urls)
    while rest:
        yield rest[:_AT_ONCE]
        rest = rest[_AT_ONCE:]
