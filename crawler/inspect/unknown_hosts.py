"""Host names that do not exist: how long the crawl waits for them, and which known host was perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable
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
_COMPARED = 5000  # hosts, those with the most pages: some 50 ms


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


class KnownHosts:
    """Hosts by each of their names with one letter left out, and by their names without `www.` and the last label.

    Two names are alike if they are the same after one letter is left out of one or both: a letter was left out, added,
    replaced or changed places with another. So are `www.example` and `example.org`: the last label was left out.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self._alike: dict[str, list[str]] = {}
        for host in hosts:
            stem = host.removeprefix("www.").rpartition(".")[0]
            for shorter in (*_shortened(host), f"{stem}."):
                self._alike.setdefault(shorter, []).append(host)

    def nearest(self, host: str) -> str | None:
        """The name most like ``host`` among the other hosts; ``None`` if none is like it, or several are equally so."""
        from difflib import SequenceMatcher  # here, because few commands meet such a name

        shortened = (*_shortened(host), f"{host.removeprefix('www.')}.")
        found = {name for shorter in shortened for name in self._alike.get(shorter, ()) if name != host}
        likeness = {name: SequenceMatcher(None, host, name).ratio() for name in found}
        most = max(likeness.values(), default=0.0)
        nearest = [name for name, ratio in likeness.items() if ratio == most]
        return nearest[0] if len(nearest) == 1 else None


def _shortened(host: str) -> set[str]:
    return {host, *(host[:n] + host[n + 1 :] for n in range(len(host)))}


async def known_hosts(store: Store) -> KnownHosts:
    """The hosts with the most pages."""
    sites = await store.query(_SQL["crawled_sites"], {"limit": _COMPARED})
    return KnownHosts(host_of(row["site"]) for row in sites)


async def advice(store: Store, host: str) -> str:
    """What the operator may have meant by a host name that does not exist."""
    near = (await known_hosts(store)).nearest(host)
    return "is it spelled right?" if near is None else f"is it spelled right? The crawl knows {near}"
