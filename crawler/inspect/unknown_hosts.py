"""Host names that do not exist: how long the crawl waits for them, and which known host was perhaps meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawler.clock import brief_time
from crawler.errors import Setting
from crawler.reasons import ErrorKind
from crawler.robots.response import RobotsSettings
from crawler.settings.keys import terminal_name
from crawler.store.rows import Waiting
from crawler.store.statements import load_statements
from crawler.url import host_of

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.inspect")
_COMPARED = 5000  # hosts, those with the most pages: two milliseconds


def describe_wait(wait: Waiting, robots: RobotsSettings, now: float) -> str:
    """Why a group waits, and when the crawl gives up a robots.txt that the group waits for.

    It is given up by the first failure after the time limit, so the next try is the last if the wait ends after it.
    """
    if wait.failing_since is None or wait.robots_status is None:
        return wait.reason
    limit = wait.failing_since + robots.patience_s(wait.robots_status)
    tried = "then tried for the last time" if limit <= wait.until else f"tried again until {brief_time(limit, now)}"
    name = terminal_name(Setting(f"robots.{robots.limit_on(wait.robots_status)}"))
    spelled = "; is it spelled right?" if wait.robots_status == ErrorKind.DNS_NO_NAME else ""
    return f"{wait.reason}{spelled} ({tried}: {name})"


def first_wait(wait: Waiting, robots: RobotsSettings, now: float) -> str:
    """That all of a crawl waits, until when, and why. ``wait`` is of the group that can be asked first."""
    reason = f": {describe_wait(wait, robots, now)}" if wait.reason else ""
    return f"waits, first for {wait.group} until {brief_time(wait.until, now)}{reason}"


def nearest_host(host: str, known: Sequence[str]) -> str | None:
    """The one of the other hosts whose name is ``host`` with one letter added, left out, replaced, or out of its place.

    ``None`` if there is none, or several are so.
    """
    from rapidfuzz.distance import OSA  # here, because few commands meet such a name
    from rapidfuzz.process import extract

    found = extract(host, [name for name in known if name != host], scorer=OSA.distance, score_cutoff=1, limit=2)
    return str(found[0][0]) if len(found) == 1 else None


async def known_hosts(store: Store) -> Sequence[str]:
    """The hosts with the most pages."""
    sites = await store.query(_SQL["crawled_sites"], {"limit": _COMPARED})
    return list(dict.fromkeys(host_of(row["site"]) for row in sites))


async def advice(store: Store, host: str) -> str:
    """What the operator may have meant by a host name that does not exist."""
    near = nearest_host(host, await known_hosts(store))
    return "is it spelled right?" if near is None else f"is it spelled right? The crawl knows {near}"
