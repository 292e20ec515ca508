"""Bias and coverage of samples that the crawler draws from crawls of a web that is known.

Many samples of each design are drawn from the stored frame of one whole crawl. Then whole crawls draw one sample each.
The crawls run on virtual time. All is done by the crawler: frame, draw, what became of the drawn URLs, and estimates.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from crawler.demo.pages import Page, Site, plain, redirect
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.sampling_frame import SamplingFrame
from crawler.frontier.sample_design import Method, Per, SampleSettings, SitesBy
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.sampling.draw import draw
from crawler.sampling.survey import drawn_of
from crawler.store.sections import Store
from crawler.store.sqlite.store import SqliteStore
from tests.bench.coverage import Coverage, row_of
from tests.bench.table import Row
from tests.simulation.crawls import Options, crawl, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DEPTH = 2
NOW = 1_900_000_000.0
OPTIONS = Options(scope=ScopeSettings(ScopeMode.HOST), limits=LimitSettings(max_depth=DEPTH))

DESIGNS = {
    "400 of all": SampleSettings(400),
    "8 of each site": SampleSettings(8, Per.SITE),
    "20 % of each of 30 sites, equal": SampleSettings(1000, Per.SITE, share=0.2, sites=30),
    "15 of each of 30 sites, by size": SampleSettings(15, Per.SITE, sites=30, sites_by=SitesBy.SIZE),
    "walks of 500": SampleSettings(500, method=Method.RANDOM_WALK),
}
#: Designs of whole crawls.
CRAWLED = ("400 of all", "15 of each of 30 sites, by size")


@dataclass(slots=True)
class KnownWeb:
    """Sites of unequal size: a start page, hubs, and leaves that the hubs link to.

    One leaf in seven is closed, one in 50 is heavy. The seed of every twelfth site redirects to its host with www.
    ``truth`` has the values of all that is estimated, by the names of the estimates; ``frame`` is the number of URLs.
    """

    sites: dict[str, Site] = field(default_factory=dict)
    seeds: list[str] = field(default_factory=list)
    truth: dict[str, float] = field(default_factory=dict)
    frame: int = 0

    @classmethod
    def of(cls, sites: int) -> KnownWeb:
        web, chance = cls(), np.random.default_rng(33)
        pages: list[tuple[int, int, bool]] = []  # size, links, whether in German
        closed = redirects = 0
        for n, leaves in enumerate(np.maximum(8, chance.lognormal(4.0, 0.8, sites)).astype(int).tolist()):
            host = f"s{n}.test"
            web.seeds.append(f"http://{host}/")
            if n % 12 == 5:
                web.sites[host] = {"/robots.txt": plain(""), "/": redirect(f"http://www.{host}/", 301)}
                host = f"www.{host}"
                redirects += 1
            site: Site = {"/robots.txt": plain("User-agent: *\nDisallow: /closed/\n")}
            paths = [f"/closed/{leaf}" if leaf % 7 == 3 else f"/{leaf}" for leaf in range(leaves)]
            hubs = [f"/h{hub}" for hub in range(1 + leaves // 40)]
            linked = {"/": hubs} | {hub: paths[place :: len(hubs)] for place, hub in enumerate(hubs)}
            german = chance.random() < 0.3
            for path in paths:
                near = chance.choice(leaves, size=min(leaves, 1 + int(chance.lognormal(1.0, 0.8))), replace=False)
                linked[path] = [paths[leaf] for leaf in near]
            for path, targets in linked.items():
                is_german = bool(chance.random() < (0.8 if german else 0.1))
                octets = int(chance.lognormal(6.5, 0.8)) * (10 if chance.random() < 0.02 else 1)
                links = "".join(f"<a href={target}>x</a>" for target in targets)
                body = f"<html lang={'de' if is_german else 'en'}>{links}<p>{'x' * octets}"
                site[path] = Page(body)
                if path.startswith("/closed/"):
                    closed += 1
                else:
                    pages.append((len(body), len(set(targets)), is_german))
            web.sites[host] = site
        sizes, links_of, are_german = (np.array(column, np.float64) for column in zip(*pages, strict=True))
        web.frame = closed + len(pages) + redirects
        web.truth = {
            "disallowed by robots.txt": closed / web.frame,
            "size": sizes.mean(),
            "links per page": links_of.mean(),
            "language de": are_german.mean(),
            "total: disallowed by robots.txt": closed,
            "total: size": sizes.sum(),
        }
        return web


@dataclass(slots=True)
class Trial:
    """The estimates of one quantity over many samples."""

    coverage: Coverage = field(default_factory=Coverage)
    values: list[float] = field(default_factory=list)

    def row(self, design: str, name: str, truth: float) -> str:
        """A row of the table: the bias with two standard errors, in percent of the true value, and the coverage."""
        values = np.array(self.values)
        bias = 100 * (values.mean() / truth - 1)
        error = 200 * values.std(ddof=1) / len(values) ** 0.5 / truth
        return f"| {design} | {name} | {truth:,.4g} | {bias:+.2f} ± {error:.2f} % | {self.coverage} |"


Trials = Mapping[str, Trial]


async def judge(store: Store, web: KnownWeb, trials: Trials) -> None:
    """Add the estimates of the sample in the store to ``trials``."""
    draw = await store.samples.drawn()
    assert draw is not None
    assert draw.frame == web.frame, "the frame has every URL of the web"
    drawn = await drawn_of(store, draw, {}, NOW)
    for measure in drawn.measures:
        figure = measure.of(drawn.sample, draw.frame)
        for name, made in ((measure.what, figure), (f"total: {measure.what}", figure.total)):
            if name in trials and made is not None:
                trials[name].values.append(made.estimate.value)
                trials[name].coverage.add(made.estimate, web.truth[name])


async def drawn_from_frame(db: Path, web: KnownWeb, settings: SampleSettings, draws: int) -> Trials:
    """Samples of one design from the frame in a store, by the seeds from 0."""
    trials = {name: Trial() for name in web.truth}
    store = await SqliteStore.open(db)
    try:
        for seed in range(draws):
            await draw(store, replace(settings, seed=seed), DEPTH, None, NOW)
            await judge(store, web, trials)
    finally:
        await store.close()
    return trials


async def crawled(clock: VirtualClock, folder: Path, web: KnownWeb, settings: SampleSettings, crawls: int) -> Trials:
    """Whole crawls of one design, by the seeds from 0, each with a store of its own."""
    trials = {name: Trial() for name in web.truth}
    for seed in range(crawls):
        db = folder / f"{seed}.db"
        await _crawl(clock, db, web, replace(settings, seed=seed), trials)
        db.unlink()
    return trials


async def _crawl(clock: VirtualClock, db: Path, web: KnownWeb, settings: SampleSettings, trials: Trials) -> None:
    def frame_of(store: Store) -> SamplingFrame:
        return SamplingFrame(store, DEPTH, lambda: draw(store, settings, DEPTH, None, NOW))

    served = SimulatedWeb(clock, web.sites)
    async with session(clock, db, served, web.seeds, OPTIONS, frame=frame_of) as (run, store):
        await store.end_run(await run.run(), clock.now())
        await judge(store, web, trials)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--sites", type=int, default=150, help="the sites of the web")
    parser.add_argument("--draws", type=int, default=1000, help="samples of each design from one stored frame")
    parser.add_argument("--crawls", type=int, default=45, help="whole crawls of two designs")


def run(options: Namespace) -> list[Row]:
    """Print the bias and the coverage of each estimate; the rows are the least coverage of unmarked intervals."""
    web = KnownWeb.of(options.sites)
    rows = []
    with TemporaryDirectory() as folder:
        db = Path(folder) / "whole.db"
        if options.draws:
            run_virtual(lambda clock: crawl(clock, db, SimulatedWeb(clock, web.sites), web.seeds, OPTIONS))
        print("| design | estimate | true value | bias | held |\n| --- | --- | ---: | ---: | ---: |")
        for name, settings in DESIGNS.items() if options.draws else ():
            rows.append(_shown(name, web, asyncio.run(drawn_from_frame(db, web, settings, options.draws))))
        for name in CRAWLED if options.crawls else ():
            settings = DESIGNS[name]
            made = run_virtual(lambda clock, own=settings: crawled(clock, Path(folder), web, own, options.crawls))
            rows.append(_shown(f"{name}: crawls", web, made))
    return rows


def _shown(design: str, web: KnownWeb, trials: Trials) -> Row:
    for name, trial in trials.items():
        print(trial.row(design, name, web.truth[name]), flush=True)
    return row_of(design, [trial.coverage for trial in trials.values()])
