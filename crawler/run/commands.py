"""The commands ``crawler run`` and ``crawler plan``, which load the engine and the HTTP client only when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crawler.cli.options import SectionedCommand, config_option, setting_options
from crawler.cli.shared import cli
from crawler.settings.keys import KEYS

_OPTIONS = tuple(key.name for key in KEYS.values() if key.option)


@cli.command(cls=SectionedCommand)
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@setting_options(*_OPTIONS)
@config_option
@click.option(
    "--refresh",
    is_flag=True,
    help="Visit again what the crawl has visited: each SITE or URL that is named in place of SEEDs, or all.",
)
def run(seeds: tuple[str, ...], config: Path | None, refresh: bool, **options: Any) -> int:
    """Start a crawl from SEEDs, or continue the crawl in the store.

    A run that names no seeds goes on with the settings of the last run into its store; `crawler settings show` lists
    them. Options and the configuration file change them.
    """
    from crawler.run import execution

    return execution.run(seeds, config, refresh, options)


@cli.command(cls=SectionedCommand)
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@setting_options(*_OPTIONS)
@config_option
def plan(seeds: tuple[str, ...], config: Path | None, **options: Any) -> int:
    """Tell what a crawl from SEEDs would send, and how long it would take. Nothing is requested or stored."""
    from crawler.run import execution

    return execution.plan(seeds, config, options)
