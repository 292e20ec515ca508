"""Which URLs a crawl admits: by the hosts, domains or prefixes of the seeds, the user's patterns, and the depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Self

from crawler.fields.declaration import setting
from crawler.fields.kinds import FLAG, REGEXES, one_of
from crawler.frontier.offers import Offer
from crawler.frontier.operator import BLOCKED, Blocks, is_blocked
from crawler.frontier.site_settings import SiteRule, rule_for
from crawler.frontier.traps import refusal as trap_in
from crawler.model import Link
from crawler.reasons import Reason, ReasonCode
from crawler.url import foreign_port, host_of, registered_domain, registered_domains

_LINKS_KEPT = 8_192
_SITES_KEPT = 10_000
_NOFOLLOW = Reason(ReasonCode.NOFOLLOW)


class ScopeMode(StrEnum):
    """How far a crawl goes from its seeds."""

    HOST = "host"  # with any scheme and port
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"

    @property
    def words(self) -> str:
        """Where the links are that a crawl follows."""
        return _WHERE[self]


_WHERE = {
    ScopeMode.HOST: "on the hosts of its seeds",
    ScopeMode.DOMAIN: "on the registered domains of its seeds",
    ScopeMode.PREFIX: "below the folders of its seeds",
    ScopeMode.ANY: "on any site",
}


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """``include`` and ``exclude`` are regular expressions searched for in canonical URLs."""

    mode: ScopeMode = setting(
        "mode",
        ScopeMode.DOMAIN,
        one_of(ScopeMode),
        "How far the crawl goes from its seeds.",
        '"host" admits the hosts of the seeds, "domain" their registered domains (example.co.uk and everything '
        'below it), "prefix" what is below the directory of a seed, and "any" every site that links lead to.',
        option="--scope",
    )
    include: tuple[str, ...] = setting(
        "include",
        (),
        REGEXES,
        "Take only URLs in which one of these regular expressions matches.",
        "Seeds are exempt. An empty list admits every URL.",
        option="--include",
        option_help="Take only URLs that match; may be repeated.",
    )
    exclude: tuple[str, ...] = setting(
        "exclude",
        (),
        REGEXES,
        "Leave out URLs in which one of these regular expressions matches.",
        "This holds for seeds too.",
        option="--exclude",
        option_help="Leave out URLs that match; may be repeated.",
    )
    follow_seed_redirects: bool = setting(
        "follow_seed_redirects",
        True,
        FLAG,
        "Let the host that a seed redirects to take the seed's place, if it has the same registered domain.",
        'With scope.mode "host", the pages of that host are then in scope. A host whose address scope.include or '
        "scope.exclude leaves out is not taken.",
    )


class Scope:
    """The scope of one crawl. It is built once from the seeds, and decides on every link.

    ``reachable(host)`` says whether the crawl may contact a host: without a contact address it stays on loopback. Seeds
    are exempt from ``include``, because the search for matching pages starts there, and from the rules on traps. They
    are not exempt from ``exclude``. The rule on calendars needs ``now``, in seconds since the epoch.
    """

    def __init__(
        self,
        settings: ScopeSettings,
        seeds: Iterable[str],
        reachable: Callable[[str], bool] = lambda host: True,
        refuses_traps: bool = False,
        now: float = 0.0,
        max_depth: int | None = None,
        sites: Sequence[SiteRule] = (),
    ) -> None:
        self.settings = settings
        self.blocks = Blocks()
        self._refuses_traps = refuses_traps
        self._now = now
        self._max_depth = max_depth
        self._sites = tuple(rule for rule in sites if rule.max_depth is not None)
        self._reachable = reachable
        # Compiled separately: in one joined pattern, inline flags and back-references would change their meaning.
        self._include = tuple(map(re.compile, settings.include))
        self._exclude = tuple(map(re.compile, settings.exclude))
        self._admitted = self._places_of(seeds)
        self._adopted: set[str] = set()
        self._site_refusals: dict[str, Reason | None] = {}
        # Most links of a page are also on the previous page.
        self._link_offer = lru_cache(_LINKS_KEPT)(self._new_link_offer)

    def copy(self) -> Self:
        """A scope from the same seeds that adopts sites and hosts of its own: it is made in a hundredth of the time."""
        other = copy(self)
        other.blocks, other._admitted, other._adopted, other._site_refusals = Blocks(), {*self._admitted}, set(), {}
        other._link_offer = lru_cache(_LINKS_KEPT)(other._new_link_offer)
        return other

    def adopt(self, site: str) -> None:
        """Add a site that a mirror within the scope names as its main site."""
        if site not in self._adopted:
            self._adopted.add(site)
            self._site_refusals.pop(site, None)
            self._link_offer.cache_clear()

    def adopted_host(self, seed: str, target: str) -> str | None:
        """The host of ``target`` if it takes the place of ``seed``, which redirects there; ``None`` if it does not.

        It must have the registered domain of the seed, and the patterns of the user must admit the target.
        """
        host = host_of(target)
        is_taken = (
            self.settings.follow_seed_redirects
            and self.settings.mode is ScopeMode.HOST
            and may_adopt(seed, target)
            and host not in self._admitted
            and self._refused_by_pattern(target, is_seed=False) is None
        )
        return host if is_taken else None

    def adopt_hosts(self, hosts: Iterable[str]) -> None:
        """Add hosts that take the place of seeds (:meth:`adopted_host`)."""
        if self.settings.mode is ScopeMode.HOST:
            self._admit(set(hosts))

    def widen(self, seeds: Iterable[str]) -> bool:
        """Add seeds to those that the scope was built from; returns whether it admits more than before."""
        return self._admit(self._places_of(seeds))

    def _admit(self, places: set[str]) -> bool:
        new = places - self._admitted
        if new:
            self._admitted |= new
            self._site_refusals.clear()
            self._link_offer.cache_clear()
        return bool(new)

    def refusal(self, url: str, depth: int, *, is_seed: bool = False) -> Reason | None:
        """Why ``url``, at ``depth`` links from a seed, is out of scope; ``None`` if it is in scope.

        The reason is ``BLOCKED`` only if no other rule refuses the URL. So an unblocked URL can be queued at once.
        """
        if not is_seed:
            return self._link_offer(url, depth, True, self.blocks.names).refusal
        refused = self._refused(url, is_seed=True) or self._too_deep(url, depth)
        return BLOCKED if refused is None and self.blocks.covers(url) else refused

    def _too_deep(self, url: str, depth: int) -> Reason | None:
        rule = rule_for(host_of(url), self._sites) if self._sites else None
        most, setting = self._max_depth, "limits.max_depth"
        if rule is not None:
            most, setting = rule.max_depth, f'depth of [site."{rule.name}"]'
        if most is None or depth <= most:
            return None
        return Reason(ReasonCode.DEPTH, f"{depth} links from a seed, {setting} is {most}")

    def link_offers(self, links: Iterable[Link], depth: int) -> list[Offer]:
        """The offer of each link of a page, with its :meth:`refusal`. ``nofollow`` links are refused, too."""
        offer, blocked = self._link_offer, self.blocks.names
        return [offer(link.url, depth, link.follow, blocked) for link in links]

    def _new_link_offer(self, url: str, depth: int, follow: bool, blocked: frozenset[str]) -> Offer:
        refused = self._refused(url, is_seed=False) or self._too_deep(url, depth)
        if refused is None and self._refuses_traps:
            refused = trap_in(url, self._now)
        if refused is None and not follow:
            refused = _NOFOLLOW
        return Offer(url, depth, BLOCKED if refused is None and is_blocked(url, blocked) else refused)

    def _refused(self, url: str, *, is_seed: bool) -> Reason | None:
        """Why ``url`` is refused at any depth: by its site, or by the user's patterns."""
        site = url[: url.index("/", 8)]
        try:
            refused = self._site_refusals[site]
        except KeyError:
            if len(self._site_refusals) > _SITES_KEPT:
                self._site_refusals.clear()
            refused = self._site_refusals[site] = self._refuse_site(site)
        if refused is not None:
            return refused
        if self.settings.mode is ScopeMode.PREFIX and site not in self._adopted and not self._below_seed(url):
            return Reason(ReasonCode.SCOPE, "not below a seed's directory (scope.mode prefix)")
        return self._refused_by_pattern(url, is_seed=is_seed)

    def _refused_by_pattern(self, url: str, *, is_seed: bool) -> Reason | None:
        for pattern in self._exclude:
            if match := pattern.search(url):
                return Reason(ReasonCode.PATTERN, f"matches scope.exclude ({match.group()[:80]!r})")
        if self._include and not is_seed:
            for pattern in self._include:
                if pattern.search(url):
                    return None
            return Reason(ReasonCode.PATTERN, "matches no scope.include")
        return None

    def _refuse_site(self, site: str) -> Reason | None:
        if (port := foreign_port(site)) is not None:
            return Reason(ReasonCode.PORT, str(port))
        host = host_of(site)
        mode = self.settings.mode
        if site in self._adopted:
            return self._unreachable(host)
        if mode is ScopeMode.HOST and host not in self._admitted:
            return Reason(ReasonCode.SCOPE, f"{host} is not the host of a seed (scope.mode host)")
        if mode is ScopeMode.DOMAIN and registered_domain(host) not in self._admitted:
            domain = registered_domain(host)
            return Reason(ReasonCode.SCOPE, f"{domain} is not the domain of a seed (scope.mode domain)")
        return self._unreachable(host)

    def _unreachable(self, host: str) -> Reason | None:
        if self._reachable(host):
            return None
        return Reason(ReasonCode.CONTACT, host)

    def _below_seed(self, url: str) -> bool:
        end = url.find("/", 8)
        while end >= 0:
            if url[: end + 1] in self._admitted:
                return True
            end = url.find("/", end + 1)
        return False

    def _places_of(self, seeds: Iterable[str]) -> set[str]:
        match self.settings.mode:
            case ScopeMode.HOST:
                return set(map(host_of, seeds))
            case ScopeMode.DOMAIN:
                return registered_domains(set(map(host_of, seeds)))
            case ScopeMode.PREFIX:
                return {seed.partition("?")[0].rpartition("/")[0] + "/" for seed in seeds}
            case ScopeMode.ANY:
                return set()


def may_adopt(site: str, main_site: str) -> bool:
    """Whether the scope adopts the main site of a mirror (``docs/protocols.md``, section 2)."""
    return registered_domain(host_of(site)) == registered_domain(host_of(main_site))


def adopt_mains(scope: Scope, mirrors: Iterable[tuple[str, str | None]]) -> None:
    """Let the scope adopt the main sites that it may. ``mirrors``: each mirror with its main site, or ``None``."""
    for site, main_site in mirrors:
        if main_site is not None and may_adopt(site, main_site):
            scope.adopt(main_site)
