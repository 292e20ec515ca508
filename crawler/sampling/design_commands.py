"""The commands ``crawler sample design`` and ``crawler sample plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crawler.cli.console import console
from crawler.cli.options import config_option, configured, named_seeds, setting_options
from crawler.cli.output import print_json
from crawler.cli.shared import json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import Setting, UsageError
from crawler.frontier.sample_design import Method
from crawler.sampling.commands import sample, variable_option
from crawler.sampling.design_file import design_of
from crawler.sampling.drawable import draw_seeds, require_drawable
from crawler.sampling.loading import load
from crawler.sampling.registration import design_of_settings, is_of_design
from crawler.settings.keys import KEYS
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.settings.stores import existing_store
from crawler.store.location import shown

_OPTIONS = tuple(
    key.name
    for key in KEYS.values()
    if key.option and (is_of_design(key) or key.section in ("seeds", "politeness") or key.name == "limits.concurrency")
)


@sample.command()
@setting_options(*_OPTIONS)
@config_option
@click.option("--db", metavar="PATH|URL", help="Begin with the design of the crawl in this store.")
def design(config: Path | None, db: str | None, **options: Any) -> int:
    """Print the design of a sample as a TOML file, by which `crawler run --config FILE` draws.

    The file has every setting that decides which URLs are drawn. Nothing is requested or stored.
    """

    async def work() -> int:
        settings, known = await _begun(db)
        settings = configured(settings, config, options)
        seeds = named_seeds(settings, ())
        _require_design(settings, seeds)
        kept = [
            (key, key.value(settings))
            for key in KEYS.values()
            if (is_of_design(key) and key.value(settings) != "")
            or (key.is_remembered and key.value(settings) != key.default)
        ]
        registered = design_of_settings(settings, seeds.urls or known, seeds.strata)
        console.print(design_of(settings, seeds, len(known), kept, registered), markup=False, soft_wrap=True, end="")
        return 0

    return run_async(work())


@sample.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@setting_options(*_OPTIONS)
@config_option
@click.option(
    "--pilot",
    metavar="PATH|URL",
    help="A store with a sample: begin with its settings and seeds, and forecast from what it found.",
)
@variable_option
@json_option
def plan(
    seeds: tuple[str, ...],
    config: Path | None,
    pilot: str | None,
    texts: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Tell how many requests and how much time a sample needs, and which precision to expect.

    Nothing is requested or stored.
    """
    variables = dict(load("variables").variable_of(text) for text in texts)
    if variables and pilot is None:
        raise UsageError("--variable is forecast from a pilot: give --pilot STORE, a store with a sample")
    plans = load("plan")

    async def work() -> int:
        settings, known = await _begun(pilot)
        settings = configured(settings, config, options)
        listed = named_seeds(settings, seeds)
        if not listed.urls and known and settings.sample.method is not Method.STRATIFIED:
            listed = Seeds(known, {})
        if not listed.urls:
            raise UsageError("no seeds to plan for: name URLs, or a file with ", Setting("seeds.file"))
        _require_design(settings, listed)
        found = None
        if pilot is not None:
            async with existing_store(store_at(pilot)) as store:
                found = await load("pilot").read_pilot(store, variables, SystemClock().now())
        made = plans.sample_plan(settings, listed, found)
        if as_json:
            print_json(plans.as_json(made, settings))
        else:
            plans.render(made, settings, console)
        return 0

    return run_async(work())


async def _begun(db: str | None) -> tuple[Settings, list[str]]:
    """The settings and the seeds of the crawl in the store ``db``; the defaults and no seeds without one."""
    if db is None:
        return Settings(), []
    async with existing_store(store_at(db)) as store:
        settings, seeds = await stored_settings(store), await store.seeds()
    if settings is None:
        raise UsageError(f"{shown(db)} holds no crawl, so it has no design")
    return settings, seeds


def _require_design(settings: Settings, seeds: Seeds) -> None:
    """Raise :class:`UsageError` if no sample, or one that cannot be drawn, is asked for."""
    if settings.sample.size is None:
        raise UsageError("a design says how many URLs to draw: give ", Setting("sample.size", "N"))
    require_drawable(settings, seeds.urls, seeds.strata)
    if settings.sample.method is Method.STRATIFIED and seeds.strata:
        draw_seeds(settings, seeds.strata)
