"""``crawler plan``: what a crawl would send and how long it would take, as far as seeds and settings determine it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from crawler.cli.console import PrintableConsole, console
from crawler.cli.layout import Fact, facts
from crawler.cli.options import configured, named_seeds
from crawler.cli.output import print_json, tell
from crawler.errors import Setting, UsageError
from crawler.formatting import duration, many
from crawler.frontier.politeness import group_name
from crawler.frontier.scope import ScopeMode
from crawler.frontier.site_settings import pages_allowed
from crawler.frontier.time_left import QUICK_S, DepthCount, GroupBacklog, Limits, time_left
from crawler.session.refusals import at_refused_addresses, refusals, seeds_at_refused_addresses
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.url import host_of, split

_SITES_SHOWN = 5


def plan_of(settings: Settings, seeds: Sequence[str]) -> dict[str, Any]:
    """The plan of a crawl from canonical ``seeds``, of which there is one at least, as one JSON object.

    Times in seconds. Pauses are those of the settings: a Crawl-delay, a slow server or trouble lengthens them.
    ``most_pages`` is ``None`` if only the links that are found bound the pages, ``most_s`` if nothing bounds the time.
    """
    sites = {split(url).site for url in seeds}
    pages = Counter(group_name(split(url).site, settings.politeness.group) for url in seeds)
    in_group = Counter(group_name(site, settings.politeness.group) for site in sites)
    most, extra_each = settings.limits, settings.requests_before_pages
    backlogs = [
        GroupBacklog(group, n + extra_each * in_group[group], in_group[group], usual_s=QUICK_S)
        for group, n in pages.items()
    ]
    limit = math.inf if most.max_pages is None else most.max_pages + extra_each * len(sites)
    depth = math.inf if most.max_depth is None else most.max_depth
    limits = Limits(limit, most.max_time_s or math.inf, depth, most.concurrency * settings.workers.count)
    queued = {0: DepthCount(queued=len(seeds))}
    time = time_left(backlogs, queued, settings.politeness, limits, now=0.0, least_answers=0)
    assert time is not None, "there is a seed"
    wanted = len(seeds) if most.max_pages is None else min(len(seeds), most.max_pages)
    return {
        "seeds": len(seeds),
        "sites": len(sites),
        "groups": len(pages),
        "largest_groups": dict(pages.most_common(_SITES_SHOWN)),  # with their seeds
        "requests_per_site_before_pages": extra_each,
        "least_requests": wanted + extra_each * len(sites),
        "most_pages": _most_pages(settings, seeds, sites),
        "least_s": time.least_s,
        "most_s": time.most_s,
        "slowest": time.slowest,
        "delay_s": settings.politeness.delay_s,
        "concurrency": most.concurrency,
        "max_depth": most.max_depth,
        "scope": settings.scope.mode.value,
    }


def _most_pages(settings: Settings, seeds: Sequence[str], sites: Collection[str]) -> int | None:
    bounds = [] if settings.limits.max_pages is None else [settings.limits.max_pages]
    if settings.limits.max_depth == 0 and not settings.discovery.sitemaps:
        bounds.append(len(seeds))
    if settings.scope.mode is ScopeMode.PREFIX:
        rules, general = settings.politeness.sites, settings.limits.max_pages_per_site
        of_sites = [pages_allowed(host_of(site), rules, general) for site in sites]
        if None not in of_sites:
            bounds.append(sum(filter(None, of_sites)))
    return min(bounds, default=None)


def render(plan: Mapping[str, Any], console: PrintableConsole) -> None:
    """Print a plan for people."""
    largest, depth, most_pages = plan["largest_groups"], plan["max_depth"], plan["most_pages"]
    named = ", ".join(f"{group} ({many(n, 'seed')})" for group, n in largest.items())
    more = f" … {many(plan['groups'] - len(largest), 'other')}" if plan["groups"] > len(largest) else ""
    before = f"with {plan['requests_per_site_before_pages']} to each site before its first page"
    rows: list[Fact] = [
        ("Seeds", f"{many(plan['seeds'], 'seed')} on {many(plan['sites'], 'site')}: {named}{more}"),
        ("Scope", plan["scope"] + ("" if depth is None else f", {many(depth, 'link')} deep at most")),
        ("Pause", f"{duration(plan['delay_s'])} between requests to a site, or longer if the site asks"),
        ("Requests", f"at least {plan['least_requests']:,}, {before}"),
        ("Pages", "as many as the links lead to" if most_pages is None else f"at most {most_pages:,}"),
        ("Time", f"at least {duration(plan['least_s'])}, for {plan['slowest']}; {_at_most(plan['most_s'])}"),
    ]
    console.print(facts(rows))


def _at_most(most_s: float | None) -> str:
    if most_s is None:
        return "no upper bound before links are known: the running crawl shows one"
    return f"at most {duration(most_s)} if the servers answer quickly"


def print_plan(seeds: tuple[str, ...], config: Path | None, options: Mapping[str, Any]) -> int:
    """Print what a crawl would send; the exit code is that of a refused run, if a run would be refused.

    ``options`` are the values of the options of settings, as click has read them.
    """
    settings = configured(Settings(), config, options)
    named = named_seeds(settings, seeds)
    if not named.urls:
        raise UsageError("no seeds to plan for: name URLs, or a file with ", Setting("seeds.file"))
    if settings.sample.size is not None:
        raise UsageError(Setting("sample.size"), ": `crawler sample plan` plans a sample, with the same options")
    made = plan_of(settings, named.urls)
    refused = [error.message(terminal_name) for error in refusals(settings, named.urls, named.strata or {})]
    left_out = at_refused_addresses(settings, named.urls)
    if settings.output.json:
        print_json(made | {"refused": refused, "left_out": left_out})
    else:
        render(made, console)
        for why in refused:
            tell(f"a run would refuse this: {why}")
        if left_out:
            tell(f"a run would leave out {seeds_at_refused_addresses(left_out)}")
    return UsageError.exit_code if refused else 0
