"""The commands ``crawler run`` and ``crawler plan``, which load the engine and the HTTP client only when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crawler.cli.options import config_option, setting_options
from crawler.cli.shared import cli
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
