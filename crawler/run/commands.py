"""``crawler run``."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from shlex import quote
from typing import Any

import click

from crawler.cli.layout import many
from crawler.cli.output import print_json
from crawler.cli.shared import STOPPED, cli, collect_garbage_seldom, console, raise_file_limit, run_async, tell
from crawler.cli.signals import Signals
from crawler.clock import SystemClock
from crawler.engine.progress import Progress
from crawler.errors import UsageError
from crawler.frontier.sample_design import Method, Per
from crawler.model import Reading
from crawler.reasons import EndCode
from crawler.run.live_display import WaitNotes, Watch, Watched, print_summary, summary
from crawler.run.session import begun, crawl_session, look_back, require_alone, run_to_end
from crawler.run.team import Team, require_shares
from crawler.sampling import load
from crawler.settings.loading import KEYS, Settings, apply, read_file, settings_from
from crawler.settings.seeds import Seeds, all_seeds
from crawler.store.coordination import Awaited
from crawler.store.location import shown
from crawler.store.protocols import Store

#: Command-line options of ``crawler run`` -> the TOML key they set.
_RUN_KEYS = {
    "db": "store.db",
    "workers": "workers.count",
    "seeds_file": "seeds.file",
    "skip_bad_seeds": "seeds.skip_bad",
    "contact": "identity.contact",
    "agent": "identity.agent",
    "delay": "politeness.delay",
    "max_pages": "limits.max_pages",
    "max_pages_per_site": "limits.max_pages_per_site",
    "max_depth": "limits.max_depth",
    "max_time": "limits.max_time",
    "scope": "scope.mode",
    "include": "scope.include",
    "exclude": "scope.exclude",
    "concurrency": "limits.concurrency",
    "revisit": "revisit.enabled",
    "reading": "robots.reading",
    "resolve": "fetch.resolve",
    "allow_private": "fetch.allow_private",
    "json": "output.json",
    "warc": "output.warc",
    "sample": "sample.size",
    "per": "sample.per",
    "method": "sample.method",
    "seed": "sample.seed",
}


assert set(_RUN_KEYS.values()) <= set(KEYS)


def _number_or_text(value: str) -> float | str:
    """A duration as TOML has it: a number of seconds, or a text with a unit."""
    try:
        return float(value)
    except ValueError:
        return value


@cli.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@click.option(
    "--db", metavar="PATH|URL", help="The store: a file, or postgresql://user@host/name.  [default: crawl.db]"
)
@click.option("--seeds", "seeds_file", metavar="FILE|-", help="Seeds from a file: a URL a line, # comments; or CSV.")
@click.option("--skip-bad-seeds", is_flag=True, default=None, help="Pass over bad lines instead of stopping.")
@click.option("--config", metavar="FILE", type=click.Path(path_type=Path), help="A TOML file; options win over it.")
@click.option("--contact", metavar="URL|E-MAIL", help="Who crawls; needed outside loopback.")
@click.option("--agent", metavar="TOKEN", help="The product token robots.txt knows us by.  [default: PoliteCrawler]")
@click.option(
    "--delay", type=_number_or_text, metavar="S", help="Least pause between two requests to a site.  [default: 2]"
)
@click.option("--max-pages", type=int, metavar="N", help="Stop at N pages in the store; 0 is no limit.")
@click.option("--max-pages-per-site", type=int, metavar="N", help="Take at most N pages of a site; 0 is no limit.")
@click.option("--max-depth", type=int, metavar="N", help="Follow links N deep; seeds are at 0, -1 is no limit.")
@click.option("--max-time", type=_number_or_text, metavar="S", help="Stop after S seconds; 0 is no limit.")
@click.option(
    "--scope", type=click.Choice(["host", "domain", "prefix", "any"]), help="How far to go.  [default: domain]"
)
@click.option("--include", multiple=True, metavar="REGEX", help="Take only URLs that match one of these (seeds apart).")
@click.option("--exclude", multiple=True, metavar="REGEX", help="Leave out URLs that match one of these.")
@click.option("--concurrency", type=int, metavar="N", help="Requests in flight in all.  [default: 64]")
@click.option("--workers", type=int, metavar="N", help="Processes that share the crawl.  [default: 1]")
@click.option("--revisit", is_flag=True, default=None, help="Visit again what is due; ends when nothing is.")
@click.option(
    "--reading", type=click.Choice([r.value for r in Reading]), help="How robots.txt is read.  [default: strict]"
)
@click.option("--resolve", multiple=True, metavar="PATTERN=ADDRESS", help="Fix a name's address: '*.test=127.0.0.1'.")
@click.option("--allow-private", is_flag=True, default=None, help="Permit loopback and private addresses.")
@click.option("--warc", metavar="DIR", help="Record every request and answer in WARC files in this folder.")
@click.option("--sample", type=int, metavar="N", help="Draw N URLs at random, and estimate what the rest is like.")
@click.option(
    "--per",
    type=click.Choice([p.value for p in Per]),
    help="N of what: the whole crawl, or each site.  [default: crawl]",
)
@click.option("--method", type=click.Choice([m.value for m in Method]), help="How they are drawn.  [default: uniform]")
@click.option("--seed", type=int, metavar="K", help="The same K draws the same sample of the same web.  [default: 1]")
@click.option("--no-progress", is_flag=True, help="No live display.")
@click.option("--json", is_flag=True, default=None, help="A JSON summary at the end.")
@click.pass_context
def run(ctx: click.Context, /, seeds: tuple[str, ...], config: Path | None, no_progress: bool, **options: Any) -> int:
    """Start a crawl from SEEDs, or go on with the one in the store."""
    given = {_RUN_KEYS[name]: value for name, value in options.items() if value not in (None, ())}
    if no_progress:
        given["output.progress"] = False
    names = {_RUN_KEYS[option.name]: option.opts[0] for option in ctx.command.params if option.name in _RUN_KEYS}
    settings = settings_from(read_file(config), source=f"configuration {config}") if config else Settings()
    settings = apply(settings, given, source="command line", names=names)
    idle = [names[key] for key in given if key.startswith("sample.")]
    if idle and settings.sample.size is None:
        raise UsageError(f"{', '.join(idle)} without --sample N: say how many URLs to draw, or leave the option out")
    output = settings.output
    taken = all_seeds(seeds, output.seeds, source="command line", skip_bad=output.skip_bad_seeds, tell=tell)
    return run_async(_run(settings, taken))


async def _run(settings: Settings, seeds: Seeds) -> int:
    if settings.team.workers > 1:
        require_alone(settings, "leave out --workers, and let no other one join")
        require_shares(settings)
        return await _run_team(settings, seeds.urls)
    raise_file_limit()
    collect_garbage_seldom()
    clock, signals = SystemClock(), Signals()
    async with crawl_session(settings, seeds.urls, strata=seeds.strata, clock=clock, tell=tell) as (crawl, store):
        signals.stop_from_now_on(crawl, store)
        async with _shown(settings, crawl, store, store, clock, signals):
            end = await run_to_end(crawl, store, clock)
        result = summary(crawl, await store.counts(), end, shown(settings.output.db), clock.now())
        draw = await store.sample_draw() if settings.sample.size is not None else None
        survey = None if draw is None or not draw.stands else await load("survey").survey(store)
    _tell_end(settings, result if survey is None else result | {"sample": survey.as_json()})
    if not settings.output.json:
        if survey is not None:
            console.print()
            load("terminal").render(survey, console)
        elif settings.sample.size is not None:
            console.print("No sample yet: it is drawn when all that it is drawn of is known; the same command goes on")
    return _exit_code(crawl.progress, stopped=signals.came or crawl.progress.stopped_by_operator)


async def _run_team(settings: Settings, seeds: list[str]) -> int:
    """The same by several processes, with this one above them."""
    raise_file_limit()
    clock, signals = SystemClock(), Signals()
    async with begun(settings, seeds, clock, at_work=False, tell=tell) as (store, _):
        team = Team(settings, store, clock, tell)
        signals.stop_from_now_on(team, team)
        async with _shown(settings, team, team, store, clock, signals):
            end = await team.run()
            if not team.stopped:
                await look_back(team.progress, store, clock)
        await store.end_run(end, clock.now())
        result = summary(team, await store.counts(), end, shown(settings.output.db), clock.now())
    _tell_end(settings, result)
    return _exit_code(team.progress, stopped=signals.came or team.cut_short)


def _exit_code(progress: Progress, *, stopped: object) -> int:
    if faults := progress.faults:
        tell(
            f"{many(faults, 'answer')} met a bug of this crawler: the URLs failed by it, or wait for a robots.txt that "
            "met it; please report what `crawler status` says of them"
        )
    return STOPPED if stopped else 1 if faults else 0


def _shown(
    settings: Settings, crawl: Watched, awaited: Awaited, store: Store, clock: SystemClock, signals: Signals
) -> AbstractAsyncContextManager[None]:
    """What is seen of a crawl while it runs; ``awaited`` is its store, or who knows of all that wait for that."""
    if settings.output.progress and console.is_terminal and not settings.output.json:
        return Watch(crawl, store, clock, console, lambda: signals.came, settings.team.workers)
    return WaitNotes(crawl, awaited, clock, tell, lambda: signals.came, settings.team.patience_s)


def _tell_end(settings: Settings, result: dict[str, Any]) -> None:
    if result["ended_code"] == EndCode.SEEDS_LEFT_OUT:
        tell(f"nothing was crawled: {result['ended_by']}; `crawler why URL --db {quote(result['db'])}` tells why")
    if settings.output.json:
        print_json(result)
    else:
        print_summary(result, console)
