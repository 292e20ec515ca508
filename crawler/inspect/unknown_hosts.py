"""Host names that do not exist: how long the crawl waits for them, and which known host was perhaps meant."""

from __future__ import annotations

from difflib import get_close_matches
from shlex import quote
from typing import TYPE_CHECKING

from crawler.clock import brief_time
from crawler.formatting import many
from crawler.reasons import ErrorKind
from crawler.robots.response import RobotsSettings
from crawler.store.location import db_argument
from crawler.store.rows import Waiting
from crawler.store.statements import load_statements
from crawler.url import host_of

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.inspect")
_COMPARED = 5000  # hosts, those with the most pages: some 50 ms
_ALIKE = 0.75  # of difflib: two letters that changed places in a name of eight
_SHOWN = 5


def told_wait(wait: Waiting, robots: RobotsSettings, now: float) -> str:
    """Why a group waits, and when the crawl gives up a robots.txt that the group waits for.

    It is given up by the first failure after the time limit, so the next try is the last if the wait ends after it.
    """
    if wait.failing_since is None or wait.robots_status is None:
        return wait.reason
    limit = wait.failing_since + robots.patience_s(wait.robots_status)
    tried = "then tried for the last time" if limit <= wait.until else f"tried again until {brief_time(limit, now)}"
    spelled = "; is it spelled right?" if wait.robots_status == ErrorKind.DNS_NO_NAME else ""
    return f"{wait.reason}{spelled} ({tried})"


async def nearest_host(store: Store, host: str) -> str | None:
    """The name most like ``host`` among the hosts with the most pages; ``None`` if none is like it."""
    sites = await store.query(_SQL["crawled_sites"], {"limit": _COMPARED})
    near = get_close_matches(host, {host_of(row["site"]) for row in sites} - {host}, n=1, cutoff=_ALIKE)
    return near[0] if near else None


async def advice(store: Store, host: str) -> str:
    """What the operator may have meant by a host name that does not exist."""
    near = await nearest_host(store, host)
    return "is it spelled right?" if near is None else f"is it spelled right? The crawl knows {near}"


async def told_of_unknown_seeds(store: Store, db: str) -> list[str]:
    """One sentence for each of the first seeds that failed because no such host exists, and one for the rest."""
    seeds = [row["url"] for row in await store.query(_SQL["unknown_seeds"], {"limit": _SHOWN})]
    said = [f"{url} failed: no such host; {await advice(store, host_of(url))}" for url in seeds]
    (found,) = await store.query(_SQL["count_unknown_seeds"])
    if left := found["urls"] - len(seeds):
        said.append(f"{many(left, 'more seed')} failed for the same reason")
    if said:
        argument = f"{quote(host_of(seeds[0]))}{db_argument(db)}"
        said.append(f"`crawler run --refresh {argument}` tries it again once the name exists")
    return said
