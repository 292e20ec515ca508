"""What sites that refuse see of a crawl, with the rule of ``crawler/frontier/refusals.py`` and without it.

``python -m tests.refusing_web`` crawls a web of 2,000 sites to its end, twice, on virtual time. 5 % of the sites answer
every page by a wall, 3 % refuse every page with 403, and both have an open robots.txt. The pages of the other sites
link to 50 pages of each of them.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import click

from crawler.demo.pages import Page, Site, plain
from tests.simulation.crawls import Options, crawl
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

WALL = Page("<p>Checking your browser", status=403, headers=(("cf-mitigated", "challenge"),))
REFUSED = Page("<p>Forbidden", status=403)
LINKED = 50  # pages of each refusing site, its front page among them
_KINDS = {"walled": (0.05, WALL), "refused": (0.03, REFUSED)}
_PAGES = 3  # of each other site


class Seen(NamedTuple):
    """The requests that the sites of one kind saw: the site that saw the most, and all sites together."""

    sites: int
    most_pages: int
    pages: int
    robots: int


def web_of(sites: int) -> dict[str, Site]:
    """The sites by host. The name of a host says its kind."""
    refusing = {f"{kind}{n}.test": page for kind, (share, page) in _KINDS.items() for n in range(round(sites * share))}
    open_hosts = [f"open{n}.test" for n in range(sites - len(refusing))]
    links: dict[str, list[str]] = {host: [] for host in open_hosts}
    for place, host in enumerate(refusing):
        for n in range(LINKED):
            links[open_hosts[(place * LINKED + n) % len(open_hosts)]].append(f"http://{host}/{n or ''}")
    web: dict[str, Site] = {host: {"/robots.txt": plain(""), "*": page} for host, page in refusing.items()}
    for host, urls in links.items():
        own = [f"/{n}" for n in range(1, _PAGES)]
        web[host] = {"/robots.txt": plain(""), "/": Page("".join(f"<a href='{u}'>x</a>" for u in own + urls))}
        web[host]["*"] = Page("text")
    return web


@contextmanager
def _no_rule() -> Iterator[None]:
    with patch("crawler.engine.claim_task.after_answer", lambda before, outcome, result, **facts: (outcome, None)):
        yield


def seen_in(sites: int, folder: Path) -> dict[str, Seen]:
    """Crawl a web of so many sites to its end. Returns what its sites saw, by kind. The store is in ``folder``."""
    folder.mkdir(exist_ok=True)

    async def main(clock: VirtualClock) -> dict[str, Seen]:
        web = SimulatedWeb(clock, web_of(sites))
        seeds = [f"http://{host}/" for host in web.web.sites if host.startswith("open")]
        await crawl(clock, folder / "crawl.db", web, seeds, Options())
        pages = Counter(hit.host for hit in web.log if hit.path != "/robots.txt")
        robots = Counter(hit.host for hit in web.log if hit.path == "/robots.txt")
        found = {}
        for kind in ("open", *_KINDS):
            hosts = [host for host in web.web.sites if host.startswith(kind)]
            counts = [pages[host] for host in hosts]
            found[kind] = Seen(len(hosts), max(counts), sum(counts), sum(robots[host] for host in hosts))
        return found

    return run_virtual(main)


def seen_without_rule(sites: int, folder: Path) -> dict[str, Seen]:
    """As :func:`seen_in`, without rests and closures."""
    with _no_rule():
        return seen_in(sites, folder)


@click.command(help=__doc__)
@click.option("--sites", type=click.IntRange(100), default=2_000, show_default=True)
def main(sites: int) -> None:
    """Print what the sites saw with the rule and without it."""
    for name, crawled in (("with the rule", seen_in), ("without it", seen_without_rule)):
        with tempfile.TemporaryDirectory() as folder:
            for kind, seen in crawled(sites, Path(folder)).items():
                click.echo(
                    f"{name:>14}  {kind:<8} {seen.sites:>5} sites  {seen.most_pages:>3} pages of a site at most  "
                    f"{seen.pages:>6,} pages  {seen.robots:>6,} robots.txt"
                )


if __name__ == "__main__":
    sys.exit(main())
