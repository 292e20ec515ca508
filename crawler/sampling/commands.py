"""The command ``crawler sample``."""

from __future__ import annotations

from contextlib import AsyncExitStack

import click
from click.core import ParameterSource

from crawler.cli.console import console
from crawler.cli.output import print_json
from crawler.cli.shared import LazyGroup, cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.sampling.loading import load
from crawler.settings.stores import existing_store

variable_option = click.option(
    "--variable",
    "texts",
    multiple=True,
    metavar="NAME=SQL",
    help="Estimate an expression over the columns of the view pages too, as in chars=length(title). "
    "NAME?=SQL: its NULL is a missing value.",
)


class _Commands(LazyGroup):
    modules = dict.fromkeys(("design", "plan"), "sampling.design_commands")


@cli.group(cls=_Commands, invoke_without_command=True)
@db_option
@variable_option
@click.option("--by", type=click.Choice(["stratum", "site"]), help="Estimate everything for each of these parts too.")
@click.option("--since", metavar="STORE", help="A store with an earlier wave of the same sample: estimate the changes.")
@json_option
@click.pass_context
def sample(
    context: click.Context, db: str, texts: tuple[str, ...], by: str | None, since: str | None, as_json: bool
) -> int:
    """Print estimates from the sample of `run --sample N`, with 95 % confidence intervals."""
    if command := context.invoked_subcommand:
        if any(context.get_parameter_source(name) is not ParameterSource.DEFAULT for name in context.params):
            raise UsageError(f"write the options behind the command: `crawler sample {command} …`")
        return 0
    surveys, terminal = load("survey"), load("terminal")
    variables = dict(load("variables").variable_of(text) for text in texts)
    parts = None if by is None else surveys.By(by)

    async def run() -> int:
        async with AsyncExitStack() as opened:
            store = await opened.enter_async_context(existing_store(store_at(db)))
            earlier = None if since is None else await opened.enter_async_context(existing_store(store_at(since)))
            survey = await surveys.survey(store, SystemClock().now(), variables, parts, earlier)
        if as_json:
            print_json(survey.as_json())
        else:
            terminal.render(survey, console)
        return 0

    return run_async(run())
