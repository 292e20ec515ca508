"""The commands ``crawler status``, ``why``, ``seeds`` and ``settings``, each of which loads what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from crawler.cli.on_store import on_store, show
from crawler.cli.output import print_json, say
from crawler.cli.shared import canonical, cli, db_option, json_option, run_async
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.settings.keys import KEYS, Key
from crawler.settings.loading import load_file
from crawler.settings.settings import Settings
from crawler.settings.stored import differing, stored_settings
from crawler.store.location import names_dataset, shown


@cli.command()
@db_option
@json_option
def status(db: str, as_json: bool) -> None:
    """Show the URLs in the store by state and site, and what the crawl waits for."""
    from crawler.cli.console import console
    from crawler.inspect import status as report

    if names_dataset(db):
        from crawler.rounds import reading

        found = reading.read_status(db)
        show(as_json, lambda: found, lambda: reading.render_status(found, SystemClock().now(), console))
        return
    read = on_store(db, lambda store: report.read_status(store, SystemClock().now()))
    show(as_json, lambda: report.as_json(read), lambda: report.render(read, db, console))


@cli.command()
@click.argument("url")
@db_option
@json_option
def why(url: str, db: str, as_json: bool) -> None:
    """Show everything that is known and decided about URL, with the evidence."""
    from crawler.cli.console import console
    from crawler.inspect import why as report

    target = canonical(url)
    if names_dataset(db):
        from crawler.rounds import reading

        known = run_async(reading.explain(db, target, SystemClock().now()))
    else:
        known = on_store(db, lambda store: report.explain(store, target, now=SystemClock().now()))
    show(as_json, lambda: known, lambda: report.render(known, db, console))


@cli.command()
@click.option("--all", "all_seeds", is_flag=True, help="List every seed, also those that need nothing.")
@db_option
@json_option
def seeds(all_seeds: bool, db: str, as_json: bool) -> None:
    """Show what became of each seed, those that need a person first, with the command that mends it."""
    from crawler.cli.console import console
    from crawler.inspect import seeds as ledger

    read = on_store(db, lambda store: ledger.read_ledger(store, db, SystemClock().now()))
    show(as_json, read.as_json, lambda: ledger.render(read, console, all_seeds=all_seeds))


@cli.group()
def settings() -> None:
    """Show the settings that a store remembers of its crawl."""


@settings.command("show")
@db_option
@json_option
def show_settings(db: str, as_json: bool) -> None:
    """Show the settings with which `crawler run` goes on, as a TOML file."""
    kept = _remembered(db)
    _show([(key, key.value(kept), None) for key in KEYS.values() if key.is_remembered], as_json)


@settings.command()
@db_option
@json_option
@click.option(
    "--config", metavar="FILE", type=click.Path(path_type=Path), help="Compare with what FILE would make of them."
)
def diff(db: str, as_json: bool, config: Path | None) -> None:
    """Show the settings of the crawl that differ from the defaults, or that a configuration file would change."""
    kept = _remembered(db)
    if config is None:
        there = [(key, key.value(kept), key.default) for key in differing(kept, Settings())]
    else:
        changed = load_file(kept, config)
        there = [(key, key.value(changed), key.value(kept)) for key in differing(changed, kept)]
    _show(there, as_json, before="default" if config is None else "now")


def _remembered(db: str) -> Settings:
    kept = on_store(db, stored_settings)
    if kept is None:
        raise UsageError(f"{shown(db)} holds no crawl, so it remembers no settings")
    return kept


def _show(there: Iterable[tuple[Key, Any, Any]], as_json: bool, before: str = "") -> None:
    """Print keys with their values, each with the value before it if ``before`` says what that is."""
    if as_json:
        print_json(
            {
                key.name: {"value": key.kind.written(value), before: key.kind.written(old)}
                if before
                else key.kind.written(value)
                for key, value, old in there
            }
        )
        return
    for section, keys in groupby(there, key=lambda each: each[0].section):
        say(f"[{section}]")
        for key, value, old in keys:
            was = f"  # {before}: {key.kind.toml(old)}" if before else ""
            say(f"{key.word} = {key.kind.toml(value)}{was}")
