"""The commands ``crawler run``, ``plan``, ``control`` and ``hint``, each of which loads what it needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from crawler.cli.options import config_option, setting_options
from crawler.cli.shared import OneOf, because_option, cli, db_option, json_option, run_async
from crawler.errors import UsageError
from crawler.frontier.hints import HintKind
from crawler.frontier.operator import Command
from crawler.settings.keys import KEYS

#: The options that the help lists, the common ones first. The others work, too, and the reference of settings has them.
_COMMON = (
    "seeds.file",
    "identity.contact",
    "scope.mode",
    "scope.include",
    "scope.exclude",
    "limits.max_pages",
    "limits.max_pages_per_site",
    "limits.max_depth",
    "limits.max_time",
    "politeness.delay",
    "limits.concurrency",
    "workers.count",
    "output.warc",
    "sample.size",
    "identity.agent",
    "robots.reading",
    "fetch.resolve",
    "fetch.allow_private",
    "seeds.skip_bad",
    "output.progress",
    "output.json",
)


_RARE = tuple(key.name for key in KEYS.values() if key.option and key.name not in ("store.db", *_COMMON))


@cli.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@setting_options("store.db", *_COMMON)
@config_option()
@setting_options(*_RARE, hidden=True)
@click.option("--refresh", is_flag=True, help="Visit SITEs or URLs again, named as SEEDs; or all.")
def run(seeds: tuple[str, ...], config: Path | None, refresh: bool, **options: Any) -> int:
    """Start a crawl from SEEDs, or continue the crawl in the store.

    A run on a store with a crawl adds SEEDS to it, and goes on with its settings; `crawler settings` lists them.
    Options and the configuration file change what they name. docs/settings.md has all settings and rarer options.
    """
    from crawler.run import execution

    return execution.run(seeds, config, refresh, options)


@cli.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@setting_options("store.db", *_COMMON, *_RARE, hidden=True)
@config_option(hidden=True)
def plan(seeds: tuple[str, ...], config: Path | None, **options: Any) -> int:
    """Tell what a crawl from SEEDs would send, and how long it would take. Nothing is requested or stored.

    Takes the options of `crawler run`: put `plan` in place of `run`.
    """
    from crawler.run.plan import print_plan

    return print_plan(seeds, config, options)


@cli.command()
@click.argument("command", type=OneOf([command.value for command in Command]))
@click.argument("names", metavar="[SITE|URL]...", nargs=-1)
@because_option
@db_option
def control(command: str, names: tuple[str, ...], because: str | None, db: str) -> int:
    """Pause, resume or stop a crawl, block or unblock a SITE, or queue a URL.

    SITE is a host (example.org, with any scheme and port) or one site (https://example.org). A pause and a block last
    until they are lifted, over restarts too. So block a site whose owner asks you to leave it alone, and note that with
    --because. A stop ends only the run that is under way. A URL that is queued becomes a seed.
    """
    from crawler.run.control import carry_out

    return run_async(carry_out(Command(command), names, db, because))


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
    from crawler.cli.on_store import on_store, show
    from crawler.run.hints import give_hints, render
    from crawler.settings.seeds import read_seeds, require_good, seed_lines

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
    show(as_json, given.as_json, lambda: render(given, db))
