"""Measure how long a crawl of sites of very different sizes takes under a pause, against the least possible time.

The whole crawl runs in this process, on virtual time and a simulated web. No crawl can end before its largest site has
answered for robots.txt and every page, with a pause between two requests. There are two bounds: pages × pause, and the
same plus the time of the answers, which cannot be avoided if a pause begins at the end of an answer.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from crawler.demo.pages import Page, Site, plain
from crawler.frontier.politeness import PolitenessSettings
from tests.bench.table import Row
from tests.simulation.crawls import Options, crawl
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

MOST = 1.02
FAN_OUT = 32
LATENCY_S = (0.02, 0.2)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sites", type=int, default=40, help="sites; their sizes follow a power law [%(default)s]")
    parser.add_argument("--pages", type=int, default=400, help="pages of the largest site [%(default)s]")
    parser.add_argument("--delay", type=float, default=1.0, help="pause in seconds [%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    chance = random.Random(7)
    sizes = {f"s{n}.test": size for n, size in enumerate(sizes_of(options.sites, options.pages))}
    latency_s = {host: chance.uniform(*LATENCY_S) for host in sizes}
    settings = Options(politeness=PolitenessSettings(delay_s=options.delay))

    async def main(clock: VirtualClock) -> tuple[float, int]:
        web = SimulatedWeb(clock, {host: _site(pages) for host, pages in sizes.items()}, latency_s=latency_s)
        began_at = clock.now()
        await crawl(clock, Path(folder) / "crawl.db", web, [f"http://{host}/" for host in sizes], settings)
        return clock.now() - began_at, len(web.log)

    with tempfile.TemporaryDirectory() as folder:
        took_s, requests = run_virtual(main)
    if requests != sum(sizes.values()) + len(sizes):
        raise RuntimeError(f"{requests} requests for {sum(sizes.values())} pages of {len(sizes)} sites")
    slow_factor = settings.politeness.slow_factor
    pauses_s = {host: pages * max(options.delay, slow_factor * latency_s[host]) for host, pages in sizes.items()}
    answered_s = max(pauses_s[host] + (pages + 1) * latency_s[host] for host, pages in sizes.items())
    measure = f"{len(sizes):,} sites of 1 to {options.pages:,} pages, {options.delay:g} s"
    return [
        _row(f"{measure}: pauses and answers", took_s, answered_s, "floor: the largest site's pauses and answers"),
        _row(
            f"{measure}: pauses alone",
            took_s,
            max(pauses_s.values()),
            f"answers of {LATENCY_S[0]:g} to {LATENCY_S[1]:g} s are not in the floor",
        ),
    ]


def sizes_of(sites: int, most: int) -> list[int]:
    """The pages of each site: ``most`` for the first, 1 for the last, a geometric series between."""
    return [round(most ** (1 - n / max(1, sites - 1))) for n in range(sites)]


def _site(pages: int) -> Site:
    """A tree: each page links to the next 32 pages without a link, as the lists of a large site do."""

    def page(number: int) -> Page:
        children = range(number * FAN_OUT + 1, min((number + 1) * FAN_OUT + 1, pages))
        return Page("".join(f"<a href='/{child}'>{child}</a>" for child in children))

    return {"/robots.txt": plain(""), "/": page(0)} | {f"/{number}": page(number) for number in range(1, pages)}


def _row(measure: str, took_s: float, floor_s: float, note: str) -> Row:
    ratio = took_s / floor_s
    return Row(measure, took_s, "s", floor_s, ratio=ratio, must=f"≤ {MOST:g} × the floor", ok=ratio <= MOST, note=note)
