"""The commands ``crawler sample``, ``sample design`` and ``sample plan``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from crawler.atomic_files import AtomicFiles
from crawler.cli.console import console
from crawler.cli.on_store import on_rows, on_store, show
from crawler.cli.options import Command, config_option, configured, named_seeds, setting_options
from crawler.cli.output import tell
from crawler.cli.shared import cli, db_option, json_option, store_at
from crawler.clock import SystemClock
from crawler.errors import Setting, UsageError
from crawler.formatting import many
from crawler.frontier.sample_design import Method
from crawler.sampling import draw_seeds, load, require_drawable
from crawler.sampling.design_file import design_of
from crawler.settings.keys import KEYS
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.settings.stores import existing_store
from crawler.store.location import names_dataset, shown

if TYPE_CHECKING:
    from crawler.sampling.survey import Survey
    from crawler.store.sections import Store

#: The settings that the commands about a design take as options, those of `crawler run`; the help lists few of them.
_OF_DESIGN = tuple(
    key.name for key in KEYS.values() if key.option and key.section not in ("store", "output", "workers", "search")
)

variable_option = click.option(
    "--variable",
    "texts",
    multiple=True,
    metavar="NAME=SQL",
    help="Estimate an expression over the columns of the view pages too, as in chars=length(title). "
    "NAME?=SQL: its NULL is a missing value. NAME=@FILE.csv: hand codes; NAME=@FILE.py: a function of a page.",
)

by_option = click.option(
    "--by",
    metavar="PARTS",
    help="Estimate everything for each stratum, site, or value of a column or variable too.",
)


@cli.group(invoke_without_command=True)
@db_option
@variable_option
@by_option
@click.option(
    "--only",
    multiple=True,
    metavar="TEXT",
    help="Only the estimates in whose name, such as `size (pages)`, TEXT stands. May be repeated.",
)
@click.option("--since", metavar="STORE", help="A store with an earlier wave of the same sample: estimate the changes.")
@click.option(
    "--out",
    "outs",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Also write the estimates as a figure (.svg, .pdf; needs the extra `figure`) or a table (.csv, .tex). "
    "May be repeated.",
)
@json_option
@click.pass_context
def sample(
    context: click.Context,
    db: str,
    texts: tuple[str, ...],
    by: str | None,
    only: tuple[str, ...],
    since: str | None,
    outs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Print estimates from the sample of `run --sample N`, with 95 % confidence intervals."""
    if command := context.invoked_subcommand:
        if any(context.get_parameter_source(name) is not ParameterSource.DEFAULT for name in context.params):
            raise UsageError(f"write the options behind the command: `crawler sample {command} …`")
        return
    survey = _estimates(db, texts, by, since).only(only)
    made = [(out, load("publication").publish(survey, out.suffix)) for out in outs]
    with AtomicFiles() as files:
        for out, content in made:
            files.open(out).file.write(content)
    for out in outs:
        tell(f"{out}: {many(len(survey.figures), 'estimate')}")
    show(as_json, survey.as_json, lambda: load("rendering").render(survey, console))


def _estimates(db: str, texts: tuple[str, ...], by: str | None, since: str | None) -> Survey:
    surveys = load("survey")
    variables = variables_of(texts)

    async def estimate(store: Store) -> Survey:
        if names_dataset(db):
            await load("of_dataset").draw_sample(store)
        async with AsyncExitStack() as opened:
            earlier = None if since is None else await opened.enter_async_context(existing_store(store_at(since)))
            made: Survey = await surveys.survey(store, SystemClock().now(), variables, by, earlier)
            return made

    return on_rows(db, estimate)


def _design_options(*listed: str) -> Callable[[Command], Command]:
    """The options of `crawler run` that make a design; the help has the ``listed`` ones."""

    def add(command: Command) -> Command:
        rest = setting_options(*(name for name in _OF_DESIGN if name not in listed), hidden=True)
        return setting_options(*listed)(config_option(hidden=True)(rest(command)))

    return add


@sample.command()
@_design_options("sample.size", "sample.per", "sample.method", "sample.seed")
@click.option("--db", metavar="PATH|URL", help="Begin with the design of the crawl in this store.")
def design(config: Path | None, db: str | None, **options: Any) -> None:
    """Print the design of a sample as a TOML file, by which `crawler run --config FILE` draws.

    The file has every setting that decides which URLs are drawn. Nothing is requested or stored. The command also takes
    the other options of `crawler run` that decide this, such as --seeds, --max-depth and --config.
    """
    settings, known = _begun(db)
    settings = configured(settings, config, options)
    seeds = named_seeds(settings, ())
    _require_design(settings, seeds)
    console.print(design_of(settings, seeds, known), soft_wrap=True, end="")


@sample.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@_design_options()
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
) -> None:
    """Tell how many requests and how much time a sample needs, and which precision to expect.

    Takes SEEDs and options as `crawler run --sample` does. Nothing is requested or stored.
    """
    variables = variables_of(texts)
    if variables and pilot is None:
        raise UsageError("--variable is forecast from a pilot: give --pilot STORE, a store with a sample")
    plans = load("plan")
    settings, known = _begun(pilot)
    settings = configured(settings, config, options)
    listed = named_seeds(settings, seeds)
    if not listed.urls and known and settings.sample.method is not Method.STRATIFIED:
        listed = Seeds(known, {})
    if not listed.urls:
        raise UsageError("no seeds to plan for: name URLs, or a file with ", Setting("seeds.file"))
    _require_design(settings, listed)
    found = None
    if pilot is not None:
        found = on_store(pilot, lambda store: load("pilot").read_pilot(store, variables, SystemClock().now()))
    made = plans.sample_plan(settings, listed, found)
    show(as_json, lambda: made, lambda: plans.render(made, settings.sample, console))


def variables_of(texts: Iterable[str]) -> dict[str, str]:
    """The variables of several ``--variable``."""
    return dict(load("variables").variable_of(text) for text in texts)


def _begun(db: str | None) -> tuple[Settings, list[str]]:
    """The settings and the seeds of the crawl in the store ``db``; the defaults and no seeds without one."""
    if db is None:
        return Settings(), []

    async def read(store: Store) -> tuple[Settings | None, list[str]]:
        return await stored_settings(store), await store.seeds()

    settings, seeds = on_store(db, read)
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
