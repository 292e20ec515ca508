"""The command ``crawler rounds``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

import click

from crawler.cli.console import console
from crawler.cli.options import config_option, configured, named_seeds, setting_options
from crawler.cli.output import print_json, say, tell
from crawler.cli.progress import Say, progress_line
from crawler.cli.shared import STOPPED, cli, run_async
from crawler.cli.signals import ForcedEnd, Signals
from crawler.dataset.clock import StorageClock
from crawler.dataset.objects import Objects
from crawler.dataset.records import Dataset, Head, make
from crawler.errors import UsageError, joined
from crawler.formatting import many
from crawler.frontier.sample_design import SampleSettings
from crawler.reasons import EndCode, RunEnd
from crawler.sampling.of_dataset import require_uniform
from crawler.session.nothing_crawled import NOTHING_CRAWLED, causes_of
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.store.location import db_argument, shown


@cli.command("rounds")
@click.argument("location", metavar="DATASET")
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@setting_options("seeds.file", "identity.contact", "output.json")
@config_option()
def rounds(location: str, seeds: tuple[str, ...], config: Path | None, **options: Any) -> int:
    """Crawl from SEEDs in rounds, over a DATASET: a folder, or s3://bucket/prefix. Or continue its crawl.

    For crawls that are too large for one database. The crawl is divided by registered domain into buckets
    (`rounds.buckets`), each with a store of its own. The dataset keeps settings and seeds: go on without them.
    """
    dataset = _dataset(location, seeds, config, options)
    from crawler.rounds.driver import Driver
    from crawler.rounds.runners import RUNNERS

    async def run(show: Say | None) -> int:
        clock = StorageClock(dataset.objects)
        runner = RUNNERS[dataset.settings.rounds.runner](clock)
        driver = Driver(dataset, runner, clock, tell, show, before_round=clock.look)
        Signals(forced_end=forced_end).stop_from_now_on(driver, end_within_s=None)
        try:
            end = await driver.run()
        finally:
            await runner.close()
        states = Counter[str]()
        for bucket in chain.from_iterable(last.buckets.values() for last in driver.manifests[-1:]):
            states.update(bucket.states)
        pages = sum(rows["pages"] for manifest in driver.manifests for rows in manifest.parts.values())
        if options.get("output_json"):
            print_json(
                {
                    "dataset": shown(location),
                    "rounds": len(driver.manifests),
                    "pages": pages,
                    "states": states,
                    "ended_by": end.sentence,
                    "ended_code": end.code.value,
                }
            )
        else:
            say(f"{end.message(terminal_name)}: {many(pages, 'page')} in {many(len(driver.manifests), 'round')}")
            counted = ", ".join(f"{n:,} {state}" for state, n in states.most_common())
            say(f"{counted or 'no URL is left'}; `crawler status{db_argument(location)}` counts the excluded URLs, too")
        if end.code is EndCode.SIGNAL:
            return STOPPED
        if pages:
            return 0
        tell(_why_nothing(location, dataset, end))
        return NOTHING_CRAWLED

    with ForcedEnd() as forced_end:
        forced_end.last_words = partial(tell, "the workers write their results, and end by themselves")
        if not dataset.settings.output.progress or not console.is_terminal:
            return run_async(run(None))
        with progress_line("beginning") as show:
            return run_async(run(show))


def _why_nothing(location: str, dataset: Dataset, end: RunEnd) -> str:
    """The sentence that says why the rounds crawled nothing."""
    from crawler.inspect.of_dataset import seed_causes

    seeds = dataset.head.seeds
    causes = causes_of(seed_causes(location), has_one_seed=len(seeds) == 1)
    reason = "; ".join(map(str, causes)) or end.message(terminal_name)
    return f"nothing was crawled: {reason}; `crawler why {quote(seeds[0])}{db_argument(location)}` explains it"


def _dataset(location: str, seeds: tuple[str, ...], config: Path | None, options: dict[str, Any]) -> Dataset:
    """The dataset at ``location``, which is made if it does not exist. Raises :class:`UsageError`."""
    from crawler.session.refusals import refusals, require_alone
    from crawler.settings.stored import to_record

    settings = configured(Settings(), config, options)
    named = named_seeds(settings, seeds)
    if not named.urls:
        if config is not None:
            raise UsageError("--config: a dataset keeps its settings; go on without it, or name another dataset")
        return Dataset(Objects(location))
    require_uniform(settings)
    if settings.store.bodies:
        raise UsageError("a dataset keeps the bodies itself; leave the setting out", key="store.bodies")
    require_alone(replace(settings, sample=SampleSettings()), "a dataset has no place for it")
    if mistakes := list(refusals(settings, named.urls, {})):
        raise joined(mistakes)
    objects = Objects(location, may_make=True)
    return make(objects, Head(settings.rounds.buckets, to_record(settings), named.urls, sorted(named.domains)))
