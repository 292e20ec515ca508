"""The command ``crawler sample design``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from crawler.cli.options import SectionedCommand, given_settings, setting_options
from crawler.cli.output import console, tell
from crawler.cli.shared import run_async, store_at
from crawler.engine.changed_options import FRAME_KEYS
from crawler.errors import Setting, UsageError
from crawler.frontier.sample_design import Method
from crawler.run.sample_design import design_of
from crawler.run.session import draw_seeds, require_drawable
from crawler.sampling.commands import sample
from crawler.settings.keys import KEYS, Key
from crawler.settings.loading import apply, load_file
from crawler.settings.remembered import remembered_by
from crawler.settings.seeds import Seeds, all_seeds
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.location import shown


def is_of_design(key: Key) -> bool:
    """Whether a setting decides which URLs a sample is drawn from, or which are drawn."""
    return key.name == "seeds.file" or key.field in FRAME_KEYS or key.field.partition(".")[0] in FRAME_KEYS


_OPTIONS = tuple(
    key.name
    for key in KEYS.values()
    if key.option and (is_of_design(key) or key.section in ("seeds", "politeness") or key.name == "limits.concurrency")
)
_config_option = click.option(
    "--config", metavar="FILE", type=click.Path(path_type=Path), help="A TOML file of settings; options win over it."
)


@sample.command(cls=SectionedCommand)
@setting_options(*_OPTIONS)
@_config_option
@click.option("--db", metavar="PATH|URL", help="Begin with the design of the crawl in this store.")
def design(config: Path | None, db: str | None, **options: Any) -> int:
    """Print the design of a sample as a TOML file, by which `crawler run --config FILE` draws.

    The file has every setting that decides which URLs are drawn. Nothing is requested or stored.
    """

    async def work() -> int:
        settings, known = await _begun(db)
        settings = _with_given(settings, config, options)
        seeds = _seeds(settings, ())
        _require_design(settings, seeds)
        kept = [
            (key, key.value(settings))
            for key in KEYS.values()
            if (is_of_design(key) and key.value(settings) != "")
            or (key.is_remembered and key.value(settings) != key.default)
        ]
        console.print(design_of(settings, seeds, len(known), kept), markup=False, soft_wrap=True, end="")
        return 0

    return run_async(work())


async def _begun(db: str | None) -> tuple[Settings, list[str]]:
    """The settings and the seeds of the crawl in the store ``db``; the defaults and no seeds without one."""
    if db is None:
        return Settings(), []
    async with existing_store(store_at(db)) as store:
        settings, seeds = await remembered_by(store), await store.seeds()
    if settings is None:
        raise UsageError(f"{shown(db)} holds no crawl, so it has no design")
    return settings, seeds


def _with_given(settings: Settings, config: Path | None, options: Mapping[str, Any]) -> Settings:
    settings = load_file(settings, config) if config else settings
    return apply(settings, given_settings(options), source="command line")


def _seeds(settings: Settings, texts: tuple[str, ...]) -> Seeds:
    output = settings.output
    return all_seeds(texts, output.seeds, source="command line", skip_bad=output.skip_bad_seeds, tell=tell)


def _require_design(settings: Settings, seeds: Seeds) -> None:
    """Raise :class:`UsageError` if no sample, or one that cannot be drawn, is asked for."""
    if settings.sample.size is None:
        raise UsageError("a design says how many URLs to draw: give ", Setting("sample.size", "N"))
    require_drawable(settings, seeds.urls, seeds.strata)
    if settings.sample.method is Method.STRATIFIED and seeds.strata:
        draw_seeds(settings, seeds.strata)
