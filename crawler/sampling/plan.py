"""``crawler sample plan``: the requests, the time and the precision of a sample, before it is drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np

from crawler.cli.console import PrintableConsole
from crawler.cli.layout import Fact, facts
from crawler.formatting import duration, many
from crawler.frontier.domain_addresses import ROUNDS, addresses
from crawler.frontier.politeness import group_name
from crawler.frontier.sample_design import (
    Method,
    Per,
    Sampler,
    SampleSettings,
    allocate,
    amount_of,
    number_of,
    site_probabilities,
)
from crawler.frontier.scope import ScopeMode
from crawler.frontier.site_settings import pages_allowed
from crawler.frontier.time_left import QUICK_S, DepthCount, GroupBacklog, Limits, TimeLeft, time_left
from crawler.sampling.drawable import draw_seeds
from crawler.sampling.forecast import Stratum, precision_of, without_pilot
from crawler.sampling.pilot import Pilot
from crawler.sampling.rendering import print_columns, shown
from crawler.sampling.survey import Unit, plain
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.url import host_of, split

_UNKNOWN = 1e12  # the size of a population that is not known: none of it is drawn
_DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests in all (``most`` is ``None`` without an upper bound), and to each site for the range of the time."""

    least: int
    most: int | None
    least_of: Mapping[str, float]
    most_of: Mapping[str, float]


def sample_plan(settings: Settings, seeds: Seeds, pilot: Pilot | None) -> dict[str, Any]:
    """The plan of a sample from ``seeds``, of which there is one at least, as one JSON object.

    The sample can be drawn as asked. Times in seconds; ``None`` is an unknown size or bound. ``pilot_requests`` took
    ``pilot_s``; both are 0 without a pilot. ``notes`` are the limitations, in sentences.
    """
    return _Forecast(settings, seeds, pilot).plan()


class _Forecast:
    """A design, and what is known of its sites: their seeds, and a pilot or ``None``."""

    def __init__(self, settings: Settings, seeds: Seeds, pilot: Pilot | None) -> None:
        assert settings.sample.size is not None
        self.settings, self.seeds, self.pilot = settings, seeds, pilot
        self.sample, self.size = settings.sample, settings.sample.size
        self.per_site = settings.sample.per is Per.SITE
        #: The number of seeds of each site.
        self.sites: Mapping[str, int] = Counter(split(url).site for url in seeds.urls)
        #: Whether the frame is the list of seeds.
        self.is_list = settings.sample.is_of_list or settings.limits.max_depth == 0
        #: The pilot, if its frame was built as this one is.
        self.alike = None if self.is_list or pilot is None or pilot.draw.method == Method.STRATIFIED else pilot
        if self.alike is not None and _frame_of(self.alike.settings) != _frame_of(settings):
            self.alike = None
        self.draws = without_pilot() if pilot is None else pilot.drawn

    @cached_property
    def drawn_of_list(self) -> Sequence[str]:
        """The URLs that are drawn if the frame is the list of seeds."""
        sample = self.sample
        if sample.method is Method.STRATIFIED:
            return [each.url for each in draw_seeds(self.settings, self.seeds.strata)]
        sampler = Sampler(self.size, sample.seed, share=sample.share, sites=sample.sites, sites_by=sample.sites_by)
        for url in self.seeds.urls:
            sampler.offer(url, split(url).site if self.per_site else "")
        return [each.url for each in sampler.drawn()]

    def number_of(self, there: int) -> int:
        """How many of so many URLs are drawn, of a site or of all."""
        return number_of(there, self.size, self.sample.share)

    def plan(self) -> dict[str, Any]:
        seeds, sample, pilot = self.seeds, self.sample, self.pilot
        if self.is_list:
            cost = self._cost_of_list()
        elif self.alike is not None:
            cost = self._cost_by_pilot(self.alike)
        else:
            cost = self._cost_unknown()
        if self.alike is None:  # the pilot's requests contain them
            cost = self._with_other_addresses(cost)
        answer_s = QUICK_S if pilot is None else pilot.answer_s
        least = self._time(cost.least_of, 0.0 if pilot is None else answer_s)
        bounds = [self._time(cost.most_of, answer_s).most_s] if cost.most_of else []
        if pilot is not None and cost.most is not None:  # its waits for sites that failed were a part of its time
            bounds.append(pilot.run_s * cost.most / max(pilot.requests, 1))
        strata, number = self._strata()
        frame = None if self.alike is None else round(self.alike.draw.frame * self._times(self.alike))
        if self.is_list:
            frame, drawn = len(seeds.urls), float(len(self.drawn_of_list))
        else:
            times = 1.0 if number is None else number / len(strata)
            sizes = {str(n): round(stratum.size) for n, stratum in enumerate(strata)}
            first = self._site_probabilities(sizes, times)
            drawn = sum(first[str(n)] * stratum.drawn for n, stratum in enumerate(strata)) * times
        precision = precision_of(self.draws, strata, number, sites=sample.sites, sites_by=sample.sites_by)
        return {
            **{name: getattr(sample, name) for name in ("method", "per", "size", "share", "sites_by", "seed")},
            "drawn_sites": sample.sites,
            "seeds": len(seeds.urls),
            "sites": len(self.sites),
            "frame": frame,
            "drawn": round(drawn),
            "least_requests": cost.least,
            "most_requests": cost.most,
            "least_s": least.least_s,
            "most_s": max((bound for bound in bounds if bound is not None), default=None),
            "slowest": least.slowest,
            "from_pilot": pilot is not None,
            "pilot_requests": 0 if pilot is None else pilot.requests,
            "pilot_s": 0.0 if pilot is None else pilot.run_s,
            "precision": [plain(each) for each in precision],
            "notes": list(self._notes()),
        }

    def _times(self, pilot: Pilot) -> float:
        """How many times as many sites the seeds have as those of the pilot."""
        return len(self.sites) / len(_seed_sites(pilot))

    def _site_probabilities(self, sizes: Mapping[str, int], times: float) -> Mapping[str, float]:
        """The probability with which each site is drawn, if the design has ``times`` as many sites of these sizes."""
        if self.sample.sites is None:
            return dict.fromkeys(sizes, 1.0)
        return site_probabilities(sizes, max(1, round(self.sample.sites / times)), self.sample.sites_by)

    def _cost_of_list(self) -> Cost:
        """The requests if the frame is the list of seeds: the draw is known before the crawl."""
        extra = self.settings.requests_before_pages
        drawn = Counter(split(url).site for url in self.drawn_of_list)
        sites = drawn if self.sample.method is Method.STRATIFIED else self.sites
        least = {site: number + extra for site, number in drawn.items()}
        most = {site: drawn[site] + extra for site in sites}
        return Cost(round(sum(least.values())), round(sum(most.values())), least, most)

    def _with_other_addresses(self, cost: Cost) -> Cost:
        """The cost if the domains of a rank list answer at their last address at worst.

        The robots.txt of each address before it is requested too. How long addresses that fail take is not known.
        """
        listed = self.drawn_of_list if self.sample.method is Method.STRATIFIED else self.seeds.urls
        tries = sum(len(addresses(url)) - 1 for url in self.seeds.domains.intersection(listed))
        return replace(cost, most=cost.most + tries, most_of={}) if tries and cost.most is not None else cost

    def _cost_unknown(self) -> Cost:
        """The requests if nothing is known of the sites but their seeds. Links to other sites have no bound."""
        settings, extra = self.settings, self.settings.requests_before_pages
        least = {site: float(number + extra) for site, number in self.sites.items()}
        total = round(sum(least.values()))
        if settings.scope.mode is not ScopeMode.PREFIX:
            return Cost(total, None, least, {})
        if settings.limits.max_depth == 1:
            chosen = min(len(self.sites), self.sample.sites or len(self.sites)) if self.per_site else 1
            return Cost(total, total + self.size * chosen, least, {site: n + self.size for site, n in least.items()})
        rules, general = settings.politeness.sites, settings.limits.max_pages_per_site
        allowed = ((site, pages_allowed(host_of(site), rules, general)) for site in self.sites)
        most = {site: float(limit + extra) for site, limit in allowed if limit is not None}
        is_bounded = len(most) == len(self.sites)
        return Cost(total, round(sum(most.values())) if is_bounded else None, least, most if is_bounded else {})

    def _cost_by_pilot(self, pilot: Pilot) -> Cost:
        """The requests if the sites are those of the pilot or like them.

        For other sites than the pilot's, the range of the sum is the prediction interval of a sum of independent
        values.
        """
        own, times, sites = _seed_sites(pilot), self._times(pilot), self.sites
        is_same = own == set(sites)
        drawn_of_all = self.number_of(round(pilot.draw.frame * times))
        framed = {site: counts.frame for site, counts in pilot.sites.items() if counts.frame}
        first = self._site_probabilities(framed, times)
        needed: dict[str, float] = {}
        most: dict[str, float] = {}  # if the site is drawn
        variance = 0.0
        for site, counts in pilot.sites.items():
            share = counts.held / counts.frame if counts.frame else 0.0
            if self.per_site:
                drawn = self.number_of(counts.frame) * share
            else:
                drawn = drawn_of_all / times * counts.held / max(pilot.draw.frame, 1)
            chance = first.get(site, 0.0)
            asked = min(share * pilot.requests_per_drawn, 1.0)
            variance += chance * drawn * (1 - asked) * times
            variance += chance * (1 - chance) * (drawn * pilot.requests_per_drawn) ** 2 * times
            needed[site] = counts.requests + chance * drawn * pilot.requests_per_drawn
            most[site] = counts.requests + drawn * pilot.requests_per_drawn
        others = sum(number for site, number in needed.items() if site not in own)
        of_seeds = np.array([needed.get(site, 0.0) for site in own])
        total = times * (float(of_seeds.sum()) + others)
        if not is_same:
            alone = np.array([pilot.sites[site].requests if site in pilot.sites else 0 for site in own], np.float64)
            spread = of_seeds if self.per_site else alone
            if len(own) < 2:
                return replace(self._cost_unknown(), most=None, most_of={})
            variance += float(spread.var(ddof=1)) * (len(sites) + len(sites) ** 2 / len(own))
        away = _DEVIATIONS * math.sqrt(variance)
        floor = max(total - away, float(sum(sites.values()) + len(sites)))
        each_least, each_most = needed, most
        if self.sample.sites is not None:  # a site that is not drawn has the requests for the frame alone
            each_least = {site: float(counts.requests) for site, counts in pilot.sites.items()}
        if not is_same:
            each_least = dict.fromkeys(sites, min(each_least.get(site, 0.0) for site in own))
            each_most = dict.fromkeys(sites, max(each_most.get(site, 0.0) for site in own))
        return Cost(round(floor), max(round(total + away), round(floor)), each_least, each_most)

    def _time(self, requests: Mapping[str, float], answer_s: float) -> TimeLeft:
        settings, queued = self.settings, Counter[str]()
        for site, number in requests.items():
            queued[group_name(site, settings.politeness.group)] += max(1, round(number))
        backlogs = [GroupBacklog(group, number, 0, usual_s=answer_s) for group, number in queued.items()]
        limits = Limits(max_depth=0, slots=settings.limits.concurrency * settings.workers.count)
        depths = {0: DepthCount(queued=sum(queued.values()))}
        time = time_left(backlogs, depths, settings.politeness, limits, now=0.0, least_answers=0)
        assert time is not None, "there is a seed"
        return time

    def _strata(self) -> tuple[list[Stratum], int | None]:
        """The strata of the design, with the draws of the pilot that are like theirs; see :func:`precision_of`."""
        sample, alike = self.sample, self.alike
        everything = np.arange(len(self.draws.sites))
        if sample.method is Method.STRATIFIED:
            there = Counter(self.seeds.strata.values())
            drawn, of_stratum = allocate(self.size, there), _pools(self.draws.strata, everything)
            return [Stratum(number, drawn[name], of_stratum(name)) for name, number in sorted(there.items())], None
        if not self.is_list and alike is None:
            return [Stratum(_UNKNOWN, self.size, everything)] * (len(self.sites) if self.per_site else 1), None
        framed, number = self.sites, None
        if alike is not None:
            framed = {site: counts.frame for site, counts in alike.sites.items() if counts.frame}
            if _seed_sites(alike) != set(self.sites):
                number = max(1, round(len(framed) * self._times(alike)))
        if not self.per_site:
            size = len(self.seeds.urls) if alike is None else max(1, round(alike.draw.frame * self._times(alike)))
            return [Stratum(size, self.number_of(size), everything)], None
        of_site = _pools(self.draws.sites, None if sample.sites is not None else everything)
        return [Stratum(size, self.number_of(size), of_site(site)) for site, size in framed.items()], number

    def _notes(self) -> Iterator[str]:
        sample, pilot, alike = self.sample, self.pilot, self.alike
        if alike is None:
            also = "redirects and retries" if self.is_list else "redirects, retries, canonical URLs and sitemap files"
            yield f"Not in the requests: {also}. A URL that robots.txt closes is not requested"
        if alike is None and self.seeds.domains:
            yield (
                "A domain of the list may answer at its last address, after the robots.txt of up to three others. If "
                f"none answers, all are tried in {ROUNDS} rounds, and then the first is retried; these count as retries"
            )
        if pilot is None:
            yield "Without a pilot, the precision is that of shares if all sites have equally many URLs"
        elif alike is None and not self.is_list:
            yield "The pilot's frame has another depth, scope, limit or sitemaps: it tells the precision alone"
        if pilot is not None:
            yield (
                f"The forecast is from {many(len(pilot.drawn.sites), 'draw')}: sizes and links are less "
                "precise if these lack the largest pages"
            )
        if sample.method is Method.RANDOM_WALK:
            yield "The precision is that of a uniform sample; random walks are less precise"
        if sample.sites is not None and pilot is None:
            yield "Pages of one site are often alike. Then the precision is less, the fewer the sites"
        if alike is None and not self.is_list and self.settings.scope.mode is not ScopeMode.PREFIX:
            yield f'Links may lead to other sites, so there is no bound; scope.mode = "{ScopeMode.PREFIX}" sets one'
        if not self.is_list:
            yield (
                f"Sites that fail delay the draw by up to {duration(sample.frame_patience_s)} (sample.frame_patience)"
            )


def _frame_of(settings: Settings) -> tuple[object, ...]:
    """The settings that build the frame."""
    scope, limits = settings.scope, settings.limits
    bounds = limits.max_depth, limits.max_pages_per_site, settings.discovery.sitemaps
    return (scope.mode, scope.include, scope.exclude, *bounds)


def _seed_sites(pilot: Pilot) -> set[str]:
    return {split(url).site for url in pilot.seeds}


def _pools(labels: Sequence[str], everything: np.ndarray | None) -> Callable[[str], np.ndarray]:
    """The draws with a label. If none has it: ``everything``, or else those of the labels in turn."""
    found: dict[str, list[int]] = {}
    for n, label in enumerate(labels):
        found.setdefault(label, []).append(n)
    pools = {label: np.array(members) for label, members in found.items()}
    others = cycle(pools.values())

    def pool_of(label: str) -> np.ndarray:
        if label in pools:
            return pools[label]
        return next(others) if everything is None else everything

    return pool_of


def render(made: Mapping[str, Any], sample: SampleSettings, console: PrintableConsole) -> None:
    """Print a plan of a ``sample`` for people."""
    most = "" if made["most_requests"] is None else f", at most {made['most_requests']:,}"
    until = "no upper bound" if made["most_s"] is None else f"at most {duration(made['most_s'])}"
    rows: list[Fact] = [
        ("Design", f"{sample.method.value}, {amount_of(sample)}, seed {sample.seed}"),
        ("Seeds", f"{many(made['seeds'], 'seed')} on {many(made['sites'], 'site')}"),
        ("Frame", "unknown before the crawl" if made["frame"] is None else many(made["frame"], "URL")),
        ("Sample", f"{'at most ' * (made['frame'] is None)}{many(made['drawn'], 'URL')}"),
        ("Requests", f"at least {made['least_requests']:,}{most}"),
        ("Time", f"at least {duration(made['least_s'])}, for {made['slowest']}; {until}"),
    ]
    if made["from_pilot"]:
        rows.append(("Pilot", f"{many(made['pilot_requests'], 'request')} in {duration(made['pilot_s'])}"))
    console.print(facts(rows))
    console.print()
    known = [SimpleNamespace(**each) for each in made["precision"]]
    columns = {
        "in the pilot" if made["from_pilot"] else "share": [shown(each.value, each.unit) for each in known],
        "95 % interval": [_within(one.half_width, one.unit, " or wider" * one.may_be_too_narrow) for one in known],
        "9 of 10 samples": [_within(one.half_width_at_most, one.unit, " at most") for one in known],
    }
    print_columns(known, columns, console)
    for note in made["notes"]:
        console.print(note, soft_wrap=True)


def _within(half_width: float | None, unit: Unit, doubt: str) -> str:
    return "too few to tell" if half_width is None else f"± {shown(half_width, unit)}{doubt}"
