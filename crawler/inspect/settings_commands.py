"""The commands ``crawler settings show`` and ``crawler settings diff``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from crawler.cli.on_store import on_store
from crawler.cli.output import print_json, say
from crawler.cli.shared import cli, db_option, json_option
from crawler.errors import UsageError
from crawler.settings.keys import KEYS, Key
from crawler.settings.loading import load_file
from crawler.settings.settings import Settings
from crawler.settings.stored import differing, stored_settings
from crawler.store.location import shown


@cli.group()
def settings() -> None:
    """Show the settings that a store remembers of its crawl."""


@settings.command()
@db_option
@json_option
def show(db: str, as_json: bool) -> None:
    """Show the settings with which `crawler run` goes on, as a TOML file."""
    kept = _remembered(db)
    _print([(key, key.value(kept), None) for key in KEYS.values() if key.is_remembered], as_json)


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
    _print(there, as_json, before="default" if config is None else "now")


def _remembered(db: str) -> Settings:
    kept = on_store(db, stored_settings)
    if kept is None:
        raise UsageError(f"{shown(db)} holds no crawl, so it remembers no settings")
    return kept


def _print(there: Iterable[tuple[Key, Any, Any]], as_json: bool, before: str = "") -> None:
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
