"""``crawler sample plan``: the requests, the time and the precision of a sample, before it is drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from math import isfinite
from typing import Any

import numpy as np

from crawler.cli.console import PrintableConsole
from crawler.cli.layout import Align, Fact, facts, table
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
from crawler.frontier.time_left import QUICK_S, DepthCount, GroupBacklog, Limits, TimeLeft, time_left
from crawler.sampling.drawable import draw_seeds
from crawler.sampling.forecast import Precision, Stratum, precision_of, without_pilot
from crawler.sampling.pilot import Pilot
from crawler.sampling.rendering import shown
from crawler.sampling.survey import DrawnUrls
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.url import split

_UNKNOWN = 1e12  # the size of a population that is not known: none of it is drawn
_DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests in all (``most`` is ``None`` without an upper bound), and to each site for the range of the time.

    ``tries`` are the most requests of ``most_of`` that fail before a domain of a rank list answers.
    """

    least: int
    most: int | None
    least_of: Mapping[str, float]
    most_of: Mapping[str, float]
    tries: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """What is known of a sample before it is drawn. Times in seconds; ``None`` is an unknown size or bound.

    ``notes`` are the limitations, in sentences.
    """

    seeds: int
    sites: int
    frame: int | None
    drawn: int
    cost: Cost
    least_s: float
    most_s: float | None
    slowest: str
    precision: Sequence[Precision]
    has_pilot: bool
    notes: Sequence[str]


def sample_plan(settings: Settings, seeds: Seeds, pilot: Pilot | None) -> SamplePlan:
    """The plan of a sample from ``seeds``, of which there is one at least. The sample can be drawn as asked."""
    sample = settings.sample
    assert sample.size is not None
    sites = Counter(split(url).site for url in seeds.urls)
    is_list = sample.method is Method.STRATIFIED or settings.limits.max_depth == 0
    alike = pilot if pilot is not None and not is_list and _is_alike(pilot, settings) else None
    if is_list:
        cost = _cost_of_list(settings, seeds, sites)
    elif alike is not None:
        cost = _cost_by_pilot(settings, sites, alike)
    else:
        cost = _cost_unknown(settings, sites)
    if alike is None:  # the pilot's requests contain them
        drawn_of_list = _drawn_of_list(settings, seeds) if sample.method is Method.STRATIFIED else seeds.urls
        cost = _with_other_addresses(cost, seeds.domains.intersection(drawn_of_list))
    answer_s = pilot.answer_s if pilot is not None else QUICK_S
    least = _time(settings, cost.least_of, answer_s if pilot is not None else 0.0)
    most_s = None if cost.most is None else _time(settings, cost.most_of, answer_s).most_s
    if most_s is not None:
        most_s += _time_of_tries(settings, cost.tries)
    strata, number = _strata(settings, seeds, sites, is_list=is_list, pilot=pilot, alike=alike)
    frame = len(seeds.urls) if is_list else None if alike is None else round(alike.frame * _times(sites, alike))
    times = 1.0 if number is None else number / len(strata)
    if is_list:
        drawn: float = len(_drawn_of_list(settings, seeds))
    else:
        sizes = {str(n): round(stratum.size) for n, stratum in enumerate(strata)}
        first = _site_probabilities(sample, sizes, times)
        drawn = sum(first[str(n)] * stratum.drawn for n, stratum in enumerate(strata)) * times
    return SamplePlan(
        seeds=len(seeds.urls),
        sites=len(sites),
        frame=frame,
        drawn=round(drawn),
        cost=cost,
        least_s=least.least_s,
        most_s=most_s,
        slowest=least.slowest,
        precision=precision_of(_draws(pilot), strata, number, sites=sample.sites, sites_by=sample.sites_by),
        has_pilot=pilot is not None,
        notes=list(_notes(settings, seeds, is_list=is_list, pilot=pilot, alike=alike)),
    )


def _draws(pilot: Pilot | None) -> DrawnUrls:
    return without_pilot() if pilot is None else pilot.drawn


def _is_alike(pilot: Pilot, settings: Settings) -> bool:
    """Whether the pilot's frame was built as this one is."""
    if pilot.draw.method == Method.STRATIFIED:
        return False
    before = pilot.settings
    return (
        (before.scope.mode, before.scope.include, before.scope.exclude, before.limits.max_depth)
        == (settings.scope.mode, settings.scope.include, settings.scope.exclude, settings.limits.max_depth)
        and before.discovery.sitemaps == settings.discovery.sitemaps
        and before.limits.max_pages_per_site == settings.limits.max_pages_per_site
    )


def _seed_sites(pilot: Pilot) -> set[str]:
    return {split(url).site for url in pilot.seeds}


def _times(sites: Mapping[str, int], pilot: Pilot) -> float:
    """How many times as many sites the seeds have as those of the pilot."""
    return len(sites) / len(_seed_sites(pilot))


def _site_probabilities(sample: SampleSettings, sizes: Mapping[str, int], times: float) -> Mapping[str, float]:
    """The probability with which each site is drawn, if the design has ``times`` as many sites of these ``sizes``."""
    if sample.sites is None:
        return dict.fromkeys(sizes, 1.0)
    return site_probabilities(sizes, max(1, round(sample.sites / times)), sample.sites_by)


def _drawn_of_list(settings: Settings, seeds: Seeds) -> list[str]:
    """The URLs that are drawn if the frame is the list of seeds."""
    sample = settings.sample
    assert sample.size is not None
    if sample.method is Method.STRATIFIED:
        return [each.url for each in draw_seeds(settings, seeds.strata)]
    sampler = Sampler(sample.size, sample.seed, share=sample.share, sites=sample.sites, sites_by=sample.sites_by)
    for url in seeds.urls:
        sampler.offer(url, split(url).site if sample.per is Per.SITE else "")
    return [each.url for each in sampler.drawn()]


def _cost_of_list(settings: Settings, seeds: Seeds, sites: Mapping[str, int]) -> Cost:
    """The requests if the frame is the list of seeds: the draw is known before the crawl."""
    extra = settings.requests_before_pages
    drawn = Counter(split(url).site for url in _drawn_of_list(settings, seeds))
    if settings.sample.method is Method.STRATIFIED:
        sites = drawn
    least = {site: number + extra for site, number in drawn.items()}
    most = {site: drawn[site] + extra for site in sites}
    return Cost(round(sum(least.values())), round(sum(most.values())), least, most)


def _with_other_addresses(cost: Cost, domains: Iterable[str]) -> Cost:
    """The cost if the ``domains`` of a rank list, given by their first addresses, answer at the last one at worst.

    The robots.txt of each address before it is requested too.
    """
    if cost.most is None:
        return cost
    tries = {split(url).site: len(addresses(url)) - 1 for url in domains}
    most_of = {site: number + tries.get(site, 0) for site, number in cost.most_of.items()}
    return replace(cost, most=cost.most + sum(tries.values()), most_of=most_of, tries=tries)


def _time_of_tries(settings: Settings, tries: Mapping[str, int]) -> float:
    """The most time for connections that fail, in seconds: for the time-outs, and for the pauses after them."""
    longest, slots = max(tries.values(), default=0), settings.limits.concurrency * settings.workers.count
    # A host is left after two failures at most. The pause after the first halves after an answer.
    pauses_s = longest * 1.5 * settings.politeness.backoff_first_s
    return pauses_s + settings.fetch.connect_timeout_s * max(longest, sum(tries.values()) / slots)


def _cost_unknown(settings: Settings, sites: Mapping[str, int]) -> Cost:
    """The requests if nothing is known of the sites but their seeds."""
    size, limit = settings.sample.size or 0, settings.limits.max_pages_per_site
    extra = settings.requests_before_pages
    least = {site: float(number + extra) for site, number in sites.items()}
    if settings.limits.max_depth == 1:
        most = {site: number + size for site, number in least.items()}
        chosen = min(len(sites), settings.sample.sites or len(sites))
        total = sum(least.values()) + size * (chosen if settings.sample.per is Per.SITE else 1)
        return Cost(round(sum(least.values())), round(total), least, most)
    if limit is not None:
        most = {site: float(limit + extra) for site in sites}
        return Cost(round(sum(least.values())), round(sum(most.values())), least, most)
    return Cost(round(sum(least.values())), None, least, {})


def _cost_by_pilot(settings: Settings, sites: Mapping[str, int], pilot: Pilot) -> Cost:
    """The requests if the sites are those of the pilot or like them.

    For other sites than the pilot's, the range of the sum is the prediction interval of a sum of independent values.
    """
    sample, per_site = settings.sample, settings.sample.per is Per.SITE
    size = sample.size or 0
    own, times = _seed_sites(pilot), _times(sites, pilot)
    is_same = own == set(sites)
    drawn_of_all = number_of(round(pilot.frame * times), size, sample.share)
    framed = {site: counts.frame for site, counts in pilot.sites.items() if counts.frame}
    first = _site_probabilities(sample, framed, times)
    needed: dict[str, float] = {}
    most: dict[str, float] = {}  # if the site is drawn
    variance = 0.0
    for site, counts in pilot.sites.items():
        share = counts.held / counts.frame if counts.frame else 0.0
        if per_site:
            drawn = number_of(counts.frame, size, sample.share) * share
        else:
            drawn = drawn_of_all / times * counts.held / max(pilot.frame, 1)
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
        spread = of_seeds if per_site else alone
        if len(own) < 2:
            least = {site: float(number + settings.requests_before_pages) for site, number in sites.items()}
            return Cost(round(sum(least.values())), None, least, {})
        variance += float(spread.var(ddof=1)) * (len(sites) + len(sites) ** 2 / len(own))
    away = _DEVIATIONS * math.sqrt(variance)
    floor = max(total - away, float(sum(sites.values()) + len(sites)))
    each_least, each_most = needed, most
    if sample.sites is not None:  # a site that is not drawn has the requests for the frame alone
        each_least = {site: float(counts.requests) for site, counts in pilot.sites.items()}
    if not is_same:
        each_least = dict.fromkeys(sites, min(each_least.get(site, 0.0) for site in own))
        each_most = dict.fromkeys(sites, max(each_most.get(site, 0.0) for site in own))
    return Cost(round(floor), max(round(total + away), round(floor)), each_least, each_most)


def _time(settings: Settings, requests: Mapping[str, float], answer_s: float) -> TimeLeft:
    queued: Counter[str] = Counter()
    for site, number in requests.items():
        queued[group_name(site, settings.politeness.group)] += max(1, round(number))
    backlogs = [GroupBacklog(group, number, 0, usual_s=answer_s) for group, number in queued.items()]
    limits = Limits(max_depth=0, slots=settings.limits.concurrency * settings.workers.count)
    depths = {0: DepthCount(queued=sum(queued.values()))}
    time = time_left(backlogs, depths, settings.politeness, limits, now=0.0, least_answers=0)
    assert time is not None, "there is a seed"
    return time


def _strata(
    settings: Settings,
    seeds: Seeds,
    sites: Mapping[str, int],
    *,
    is_list: bool,
    pilot: Pilot | None,
    alike: Pilot | None,
) -> tuple[list[Stratum], int | None]:
    """The strata of the design, with the draws of the pilot that are like theirs; see :func:`precision_of`."""
    sample, per_site = settings.sample, settings.sample.per is Per.SITE
    size = sample.size or 0
    draws = _draws(pilot)
    everything = np.arange(len(draws.sites))
    of_site = _pools(draws.sites, None if sample.sites is not None else everything)
    of_stratum = _pools(draws.strata, everything)
    if settings.sample.method is Method.STRATIFIED:
        there = Counter(seeds.strata.values())
        drawn = allocate(size, there)
        return [Stratum(number, drawn[name], of_stratum(name)) for name, number in sorted(there.items())], None
    if is_list and per_site:
        return [
            Stratum(number, number_of(number, size, sample.share), of_site(site)) for site, number in sites.items()
        ], None
    if is_list:
        return [Stratum(len(seeds.urls), number_of(len(seeds.urls), size, sample.share), everything)], None
    if alike is None:
        return [Stratum(_UNKNOWN, size, everything)] * (len(sites) if per_site else 1), None
    if not per_site:
        there_of_all = max(1, round(alike.frame * _times(sites, alike)))
        return [Stratum(there_of_all, number_of(there_of_all, size, sample.share), everything)], None
    framed = {site: counts.frame for site, counts in alike.sites.items() if counts.frame}
    strata = [Stratum(number, number_of(number, size, sample.share), of_site(site)) for site, number in framed.items()]
    is_same = _seed_sites(alike) == set(sites)
    return strata, None if is_same else max(1, round(len(strata) * _times(sites, alike)))


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


def _notes(
    settings: Settings, seeds: Seeds, *, is_list: bool, pilot: Pilot | None, alike: Pilot | None
) -> Sequence[str]:
    notes = []
    if alike is None:
        also = "redirects and retries" if is_list else "redirects, retries, canonical URLs and sitemap files"
        notes.append(f"Not in the requests: {also}. A URL that robots.txt closes is not requested")
    if alike is None and seeds.domains:
        notes.append(
            "A domain of the list may answer at its last address, after the robots.txt of up to three others. If none "
            f"answers, all are tried in {ROUNDS} rounds, and then the first is retried; these count as retries"
        )
    if pilot is None:
        notes.append("Without a pilot, the precision is that of shares if all sites have equally many URLs")
    elif alike is None and not is_list:
        notes.append(
            "The pilot's frame has another depth, scope, limit or sitemaps: it tells the precision, not the requests"
        )
    if pilot is not None:
        notes.append(
            f"The forecast is from {many(len(pilot.drawn.sites), 'draw')}: sizes and links are less "
            "precise if these lack the largest pages"
        )
    if settings.sample.method is Method.RANDOM_WALK:
        notes.append("The precision is that of a uniform sample; random walks are less precise")
    if settings.sample.sites is not None and pilot is None:
        notes.append("Pages of one site are often alike. Then the precision is less, the fewer the sites")
    if settings.sample.per is Per.SITE and alike is None and not is_list:
        notes.append(f"A site with fewer than {settings.sample.size:,} URLs has all of them in the sample")
    if not is_list:
        notes.append(
            f"Sites that fail delay the draw by up to {duration(settings.sample.frame_patience_s)} "
            "(sample.frame_patience)"
        )
    return notes


def as_json(plan: SamplePlan, settings: Settings) -> dict[str, Any]:
    """The plan as one JSON object; times in seconds, and ``None`` for what is not known."""
    sample = settings.sample
    return {
        "method": sample.method.value,
        "per": sample.per.value,
        "size": sample.size,
        "share": sample.share,
        "drawn_sites": sample.sites,
        "sites_by": sample.sites_by.value,
        "seed": sample.seed,
        "seeds": plan.seeds,
        "sites": plan.sites,
        "frame": plan.frame,
        "drawn": plan.drawn,
        "least_requests": plan.cost.least,
        "most_requests": plan.cost.most,
        "least_s": plan.least_s,
        "most_s": plan.most_s,
        "slowest": plan.slowest,
        "from_pilot": plan.has_pilot,
        "precision": [
            {
                "what": each.what,
                "among": each.among,
                "unit": each.unit.value,
                "value": each.value if isfinite(each.value) else None,
                "half_width": each.usual if isfinite(each.usual) else None,
                "half_width_at_most": each.most if isfinite(each.most) else None,
                "may_be_too_narrow": each.may_be_too_narrow,
            }
            for each in plan.precision
        ],
        "notes": list(plan.notes),
    }


def render(plan: SamplePlan, settings: Settings, console: PrintableConsole) -> None:
    """Print a plan for people."""
    sample = settings.sample
    frame = "unknown before the crawl" if plan.frame is None else many(plan.frame, "URL")
    most = "" if plan.cost.most is None else f", at most {plan.cost.most:,}"
    time = f"at least {duration(plan.least_s)}, for {plan.slowest}; " + (
        "no upper bound without a pilot" if plan.most_s is None else f"at most {duration(plan.most_s)}"
    )
    rows: list[Fact] = [
        ("Design", f"{sample.method.value}, {amount_of(sample)}, seed {sample.seed}"),
        ("Seeds", f"{many(plan.seeds, 'seed')} on {many(plan.sites, 'site')}"),
        ("Frame", frame),
        ("Sample", f"{'at most ' * (plan.frame is None)}{many(plan.drawn, 'URL')}"),
        ("Requests", f"at least {plan.cost.least:,}{most}"),
        ("Time", time),
    ]
    console.print(facts(rows))
    rows_of_precision = []
    for line in plan.precision:
        doubt = " or wider" if line.may_be_too_narrow else ""
        usual = f"± {shown(line.usual, line.unit)}{doubt}" if isfinite(line.usual) else "too few to tell"
        at_most = f"± {shown(line.most, line.unit)} at most" if isfinite(line.most) else "too few to tell"
        rows_of_precision.append((line.what, shown(line.value, line.unit), usual, at_most, line.among))
    console.print()
    share = "in the pilot" if plan.has_pilot else "share"
    columns: dict[str, Align] = {
        "": "left",
        **dict.fromkeys((share, "95 % interval", "9 of 10 samples"), "right"),
        "among": "fold",
    }
    console.print(table(columns, rows_of_precision))
    for note in plan.notes:
        console.print(note, soft_wrap=True)
