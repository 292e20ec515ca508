"""No order of adoptions, seeds and questions makes a scope admit what it must not."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.url import host_of, registered_domain, split

hosts = st.sampled_from(["a.test", "www.a.test", "b.test", "x.co.uk", "y.co.uk", "127.0.0.1"])
paths = st.text("abc/?.=1", max_size=8)
urls = st.builds("{}://{}{}/{}".format, st.sampled_from(["http", "https"]), hosts, st.sampled_from(["", ":81"]), paths)
patterns = st.sampled_from(["a", r"\.", "^https", "b+/", "(c)\\1", "(?i)A/", "1$", "[?]", "x|y"])
settings = st.builds(
    ScopeSettings,
    st.sampled_from(ScopeMode),
    st.lists(patterns, max_size=2).map(tuple),
    st.lists(patterns, max_size=2).map(tuple),
)
limits = st.none() | st.integers(0, 4)


@given(settings, limits, st.lists(urls, min_size=1, max_size=4), st.lists(urls), st.lists(urls), st.integers(0, 6))
def test_what_is_admitted_is_admitted_by_every_rule(
    settings: ScopeSettings, limit: int | None, seeds: list[str], adopted: list[str], asked: list[str], depth: int
) -> None:
    scope = Scope(settings, seeds, max_depth=limit)
    for url in adopted:
        scope.refusal(url, 0)  # what was asked before must not be remembered wrongly
        scope.adopt(split(url).site)
    sites = {split(url).site for url in adopted}
    for url in [*asked, *seeds, *adopted]:
        for is_seed in (False, True):
            is_near = limit is None or depth <= limit
            admitted = scope.refusal(url, depth, is_seed=is_seed) is None
            assert admitted == (is_near and _admits(settings, seeds, sites, url, is_seed))


def _admits(settings: ScopeSettings, seeds: list[str], adopted: set[str], url: str, is_seed: bool) -> bool:
    if any(re.search(pattern, url) for pattern in settings.exclude):
        return False
    if settings.include and not is_seed and not any(re.search(pattern, url) for pattern in settings.include):
        return False
    return split(url).site in adopted or any(_near(settings.mode, seed, url) for seed in seeds)


def _near(mode: ScopeMode, seed: str, url: str) -> bool:
    match mode:
        case ScopeMode.ANY:
            return True
        case ScopeMode.HOST:
            return host_of(seed) == host_of(url)
        case ScopeMode.DOMAIN:
            return registered_domain(host_of(seed)) == registered_domain(host_of(url))
        case ScopeMode.PREFIX:
            site, path = split(seed)
            return url.startswith(site + path.split("?")[0].rsplit("/", 1)[0] + "/")
