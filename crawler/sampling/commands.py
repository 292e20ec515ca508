"""The command ``crawler sample``."""

from __future__ import annotations

from crawler.cli.output import console, print_json
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.sampling import load
from crawler.settings.stores import existing_store


@cli.command()
@db_option
@json_option
def sample(db: str, as_json: bool) -> int:
    """Print estimates from the sample of `run --sample N`, with 95 % confidence intervals."""
    surveys, terminal = load("survey"), load("terminal")

    async def run() -> int:
        async with existing_store(store_at(db)) as store:
            survey = await surveys.survey(store, SystemClock().now())
        if as_json:
            print_json(survey.as_json())
        else:
            terminal.render(survey, console)
        return 0

    return run_async(run())
