"""The commands ``crawler status``, ``why``, ``seeds`` and ``settings``, each of which loads what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from crawler.cli.on_store import on_store, show
from crawler.cli.output import say
from crawler.cli.shared import canonical, cli, db_option, json_option, run_async
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.settings.keys import KEYS, Key
from crawler.settings.loading import load_file
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
        from crawler.inspect import of_dataset

        found = of_dataset.read_status(db)
        show(as_json, lambda: found, lambda: of_dataset.render_status(found, SystemClock().now(), console))
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
        from crawler.inspect import of_dataset

        known = run_async(of_dataset.explain(db, target, SystemClock().now()))
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


@cli.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@db_option
@json_option
def settings(file: Path | None, db: str, as_json: bool) -> None:
    """Show the settings with which `crawler run` goes on, as a TOML file. With FILE, show those that FILE would change.

    A comment has the default of a setting that differs from it, or the value that FILE would replace.
    """
    kept = on_store(db, stored_settings)
    if kept is None:
        raise UsageError(f"{shown(db)} holds no crawl, so it remembers no settings")
    if file is None:
        there = [(key, key.value(kept), key.default) for key in KEYS.values() if key.is_remembered]
    else:
        changed = load_file(kept, file)
        there = [(key, key.value(changed), key.value(kept)) for key in differing(changed, kept)]
    compared = "default" if file is None else "now"
    show(as_json, lambda: _settings_json(there, compared), lambda: _render_settings(there, compared))


def _settings_json(there: Iterable[tuple[Key, Any, Any]], compared: str) -> dict[str, Any]:
    return {
        key.name: {"value": key.kind.written(value), compared: key.kind.written(other)} for key, value, other in there
    }


def _render_settings(there: Iterable[tuple[Key, Any, Any]], compared: str) -> None:
    for section, keys in groupby(there, key=lambda each: each[0].section):
        say(f"[{section}]")
        for key, value, other in keys:
            note = "" if value == other else f"  # {compared}: {key.kind.toml(other)}"
            say(f"{key.word} = {key.kind.toml(value)}{note}")
