"""How often the intervals of samples contain the true value, on webs that are known, for each design.

The draws are made on arrays, without a crawl; the estimators are those of `crawler sample`.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawler.frontier.sample_design import SitesBy, draw_sites, number_of
from crawler.sampling.estimators import Estimate, Sample
from crawler.sampling.random_walk import undirected, walk
from crawler.sampling.survey import Measure, Unit
from tests.bench.table import Row

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

TOTAL = "total: "
#: The share of the unmarked intervals that must contain the true value.
MUST = 0.94


class Web:
    """The pages of sites of unequal size. ``values`` has a quantity or a property of each page.

    Totals are of the pages in ``counted``, seven of ten; the others have no value then. A page that does not answer has
    no value in a sample, but it counts in the true value.
    """

    def __init__(
        self, name: str, *, hubs: float = 0.0, silent: float = 0.0, sites: int = 60, pages: int = 4000
    ) -> None:
        chance = np.random.default_rng(20)
        sizes = np.maximum(6, chance.lognormal(np.log(pages / sites), 0.8, sites)).astype(int)
        self.name, self.site = name, np.repeat(np.arange(sites), sizes)
        self.pages = len(self.site)
        own = chance.normal(0, 0.4, sites)[self.site]
        is_hub = chance.random(self.pages) < hubs
        size = chance.lognormal(9.5 + own, 1.2)
        #: Large pages and whole sites stay silent, so those that answer differ from the others.
        heavy = np.argsort(np.argsort(size)) / self.pages
        dead = (np.arange(sites) % max(int(2 / silent), 1) == 0)[self.site] if silent else np.zeros(self.pages, bool)
        self.answers = ~dead & (chance.random(self.pages) >= silent * heavy)
        self.values = {
            "size": size * np.where(is_hub, 20, 1),
            "links": np.floor(chance.lognormal(2.8 + own, 0.9)) + 300 * is_hub,
            "English": (chance.random(self.pages) < 1 / (1 + np.exp(-0.5 - 2 * own))).astype(np.float64),
            "1 in 50": (chance.random(self.pages) < 0.02).astype(np.float64),
            "1 in 500": (chance.random(self.pages) < 0.002).astype(np.float64),
        }
        source = np.repeat(np.arange(self.pages), np.minimum(self.values["links"].astype(int), 60))
        start = np.concatenate([[0], np.cumsum(sizes)])
        inside = start[self.site[source]] + (chance.random(len(source)) * sizes[self.site[source]]).astype(int)
        far = chance.integers(0, self.pages, len(source))
        self.counted = np.random.default_rng(5).random(self.pages) < 0.7
        self.graph = undirected(self.pages, source, np.where(chance.random(len(source)) < 0.9, inside, far))


WEBS: dict[str, Callable[[], Web]] = {
    "skewed sizes": lambda: Web("skewed sizes"),
    "hubs": lambda: Web("hubs", hubs=0.01),
    "nonresponse": lambda: Web("nonresponse", silent=0.1),
}

#: The same with many sites.
WIDE_WEBS: dict[str, Callable[[], Web]] = {
    "skewed sizes, 300 sites": lambda: Web("skewed sizes, 300 sites", sites=300, pages=20_000),
    "hubs, 300 sites": lambda: Web("hubs, 300 sites", hubs=0.01, sites=300, pages=20_000),
    "nonresponse, 300 sites": lambda: Web("nonresponse, 300 sites", silent=0.1, sites=300, pages=20_000),
}

#: A draw: the places of the drawn pages, and the design with the answers of these pages.
Draw = Callable[[Web, int], tuple[Places, Sample]]


def _uniform(size: int) -> Draw:
    def draw(web: Web, seed: int) -> tuple[Places, Sample]:
        drawn = np.random.default_rng(seed).choice(web.pages, size, replace=False)
        return drawn, Sample(np.full(size, size / web.pages), answered=web.answers[drawn])

    return draw


def _smallest(strata: Places, sizes: Places, seed: int) -> tuple[Places, Floats]:
    """From each stratum as many places as ``sizes`` says, by random keys, and the probability of each."""
    keys = np.random.default_rng(seed).random(len(strata))
    order = np.lexsort((keys, strata))
    among = np.bincount(strata)
    rank = np.arange(len(strata)) - np.repeat(np.concatenate([[0], np.cumsum(among)[:-1]]), among)
    drawn = order[rank < sizes[strata[order]]]
    return drawn, (np.minimum(sizes, among) / among)[strata[drawn]]


def _of_each_site(size: int) -> Draw:
    def draw(web: Web, seed: int) -> tuple[Places, Sample]:
        drawn, probability = _smallest(web.site, np.full(web.site[-1] + 1, size), seed)
        return drawn, Sample(probability, strata=web.site[drawn], answered=web.answers[drawn])

    return draw


def _stratified(size: int) -> Draw:
    """A third of the sample from the first 100 pages, a third from the next 900, a third from the rest."""

    def draw(web: Web, seed: int) -> tuple[Places, Sample]:
        mixed = np.random.default_rng(0).permutation(web.pages)
        strata = np.searchsorted([100, 1000], mixed, side="right")
        drawn, probability = _smallest(strata, np.full(3, size // 3), seed)
        return drawn, Sample(probability, strata=strata[drawn], answered=web.answers[drawn])

    return draw


def _sites_first(sites: int, size: int, by: SitesBy = SitesBy.EQUAL, share: float = 1.0) -> Draw:
    def draw(web: Web, seed: int) -> tuple[Places, Sample]:
        there = np.bincount(web.site)
        taken = draw_sites({str(site): int(pages) for site, pages in enumerate(there)}, sites, by, seed)
        first, sizes = np.zeros(len(there)), np.zeros(len(there), np.int64)
        for site, probability in taken.items():
            first[int(site)] = probability
            sizes[int(site)] = number_of(int(there[int(site)]), size, share)
        drawn, within = _smallest(web.site, sizes, seed)
        of_site = first[web.site[drawn]]
        sample = Sample(
            within * of_site, clusters=web.site[drawn], cluster_probability=of_site, answered=web.answers[drawn]
        )
        return drawn, sample

    return draw


def _walks(size: int) -> Draw:
    def draw(web: Web, seed: int) -> tuple[Places, Sample]:
        steps = list(walk(web.graph, size, seed))
        drawn = np.array([step.node for step in steps])
        sample = Sample(
            [step.probability for step in steps],
            clusters=[step.walk for step in steps],
            answered=web.answers[drawn],
        )
        return drawn, sample

    return draw


DESIGNS: dict[str, Draw] = {
    "uniform 50": _uniform(50),
    "uniform 200": _uniform(200),
    "uniform 600": _uniform(600),
    "2 of each of 60 sites": _of_each_site(2),
    "3 of each of 60 sites": _of_each_site(3),
    "5 of each of 60 sites": _of_each_site(5),
    "10 of each of 60 sites": _of_each_site(10),
    "20 of each of 60 sites": _of_each_site(20),
    "30 in 3 strata": _stratified(30),
    "300 in 3 strata": _stratified(300),
    "5 of each of 20 sites drawn": _sites_first(20, 5),
    "20 of each of 40 sites drawn": _sites_first(40, 20),
    "20 % of each of 40 sites drawn": _sites_first(40, 1000, share=0.2),
    "5 of each of 20 sites by size": _sites_first(20, 5, SitesBy.SIZE),
    "20 of each of 40 sites by size": _sites_first(40, 20, SitesBy.SIZE),
    "walks of 100": _walks(100),
    "walks of 500": _walks(500),
}

#: Designs for webs of many sites.
WIDE_DESIGNS: dict[str, Draw] = {
    "10 of each of 60 of 300 sites drawn": _sites_first(60, 10),
    "10 % of each of 60 of 300 sites drawn": _sites_first(60, 1000, share=0.1),
    "10 of each of 60 of 300 sites by size": _sites_first(60, 10, SitesBy.SIZE),
    "5 of each of 150 of 300 sites by size": _sites_first(150, 5, SitesBy.SIZE),
}


@dataclass(slots=True)
class Coverage:
    """How many intervals of ``draws`` contained the true value. ``marked`` may contain it less often."""

    draws: int = 0
    held: int = 0
    marked: int = 0
    unmarked_held: int = 0

    def add(self, estimate: Estimate, truth: float) -> None:
        """Count the interval of one draw. If units are missing, the bounds of a share are judged."""
        has_bounds = estimate.lowest is not None and estimate.highest is not None
        low, high = (estimate.lowest, estimate.highest) if has_bounds else (estimate.low, estimate.high)
        holds = bool(low <= truth <= high)
        is_marked = estimate.may_be_too_narrow and not has_bounds
        self.draws += 1
        self.held += holds
        self.marked += is_marked
        self.unmarked_held += holds and not is_marked

    @property
    def unmarked(self) -> int:
        return self.draws - self.marked

    def share(self) -> tuple[float, float, float]:
        """The share of the intervals that held, of the unmarked if there are any, with its own exact interval."""
        from scipy.stats import binomtest  # takes a second

        held, of = (self.unmarked_held, self.unmarked) if self.unmarked else (self.held, self.draws)
        interval = binomtest(held, of).proportion_ci()
        return held / of, float(interval.low), float(interval.high)

    def __str__(self) -> str:
        share, low, high = (f"{100 * part:.1f}" for part in self.share())
        return f"{share} ({low}–{high})" if self.unmarked else f"*{share}*"


def row_of(measure: str, found: Iterable[Coverage]) -> Row:
    """The estimate whose unmarked intervals surely held least often; it misses if its own interval is too low."""
    unmarked = [each for each in found if each.unmarked]
    share, _, high = min((each.share() for each in unmarked), key=lambda share: share[2], default=(1.0, 1.0, 1.0))
    note = f"the least of the estimates; {sum(each.unmarked for each in unmarked):,} intervals are unmarked"
    return Row(measure, 100 * share, "%", must=f"≥ {100 * MUST:.0f} %", ok=high >= MUST, note=note)


def measure(web: Web, draw: Draw, draws: int) -> dict[str, Coverage]:
    """The coverage of each figure and of its total over so many draws. A total is marked if its mean is."""
    found = {of + name: Coverage() for of in ("", TOTAL) for name in web.values}
    for seed in range(draws):
        drawn, sample = draw(web, seed)
        for name, values in web.values.items():
            unit = Unit.NUMBER if name in ("size", "links") else Unit.SHARE
            found[name].add(Measure(name, "pages", unit, values[drawn].tolist()).of(sample).estimate, values.mean())
            counted = np.where(web.counted[drawn], values[drawn], np.nan).tolist()
            total = Measure(name, "pages", unit, counted).of(sample, web.pages).total
            assert total is not None
            found[TOTAL + name].add(total.estimate, values[web.counted].sum())
    return found


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--draws", type=int, default=1000, help="samples of each design from each web")
    parser.add_argument("--only", default="", help="only designs whose names contain this text")


def run(options: Namespace) -> list[Row]:
    """Print the table of docs/samples.md; the rows are the least coverage of each design."""
    webs, wide = ([web() for web in each.values()] for each in (WEBS, WIDE_WEBS))
    columns = [of + name for of in ("", TOTAL) for name in webs[0].values]
    print("| design | web | " + " | ".join(columns) + " |\n| --- | --- |" + " ---: |" * len(columns))
    rows = []
    for name, draw in (DESIGNS | WIDE_DESIGNS).items():
        if options.only not in name:
            continue
        found: list[Coverage] = []
        for web in webs if name in DESIGNS else wide:
            measured = measure(web, draw, options.draws).values()
            print(f"| {name} | {web.name} | " + " | ".join(map(str, measured)) + " |", flush=True)
            found += measured
        rows.append(row_of(name, found))
    return rows
