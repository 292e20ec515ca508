"""The scope: the URLs that a crawl takes."""

from __future__ import annotations

import pytest

from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.reasons import ReasonCode
from tests.reasons import said

SEED = "http://www.example.org/docs/start.html?a=/b/"


def scope(mode: ScopeMode = ScopeMode.DOMAIN, *seeds: str, max_depth: int | None = None, **settings: object) -> Scope:
    return Scope(ScopeSettings(mode, **settings), seeds or (SEED,), max_depth=max_depth)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "url", "admitted"),
    [
        (ScopeMode.HOST, "http://www.example.org/other", True),
        (ScopeMode.HOST, "https://www.example.org:8443/", True),
        (ScopeMode.HOST, "http://example.org/", False),
        (ScopeMode.HOST, "http://sub.www.example.org/", False),
        (ScopeMode.DOMAIN, "http://example.org/", True),
        (ScopeMode.DOMAIN, "https://a.b.example.org/", True),
        (ScopeMode.DOMAIN, "http://example.com/", False),
        (ScopeMode.DOMAIN, "http://notexample.org/", False),
        (ScopeMode.PREFIX, "http://www.example.org/docs/", True),
        (ScopeMode.PREFIX, "http://www.example.org/docs/sub/page", True),
        (ScopeMode.PREFIX, "http://www.example.org/docs", False),
        (ScopeMode.PREFIX, "http://www.example.org/docs2/", False),
        (ScopeMode.PREFIX, "https://www.example.org/docs/", False),
        (ScopeMode.ANY, "http://anything.test/", True),
    ],
)
def test_modes(mode: ScopeMode, url: str, admitted: bool) -> None:
    refusal = scope(mode).refusal(url, 1)
    assert (refusal is None) == admitted
    assert refusal is None or refusal.code is ReasonCode.SCOPE


@pytest.mark.parametrize("mode", ScopeMode)
def test_seeds_are_in_the_scope_they_make(mode: ScopeMode) -> None:
    seeds = (SEED, "http://b.co.uk/", "http://127.0.0.1:8080/x/y", "http://[::1]/", "http://co.uk/")
    assert [scope(mode, *seeds).refusal(seed, 0, is_seed=True) for seed in seeds] == [None] * 5


@pytest.mark.parametrize("mode", ScopeMode)
@pytest.mark.parametrize("is_seed", [False, True])
@pytest.mark.parametrize(
    "site", ["http://www.example.org:25", "https://www.example.org:6379", "http://[2001:db8::1]:22"]
)
def test_ports_of_other_services_are_refused(mode: ScopeMode, is_seed: bool, site: str) -> None:
    refusal = scope(mode).refusal(f"{site}/", 0, is_seed=is_seed)
    assert refusal is not None
    port = site.rpartition(":")[2]
    assert (refusal.code, refusal.sentence) == (
        ReasonCode.PORT,
        f"port: {port} is that of another service than the web",
    )


@pytest.mark.parametrize(
    "site", ["http://www.example.org", "http://www.example.org:8080", "https://www.example.org:80"]
)
def test_other_ports_are_not_refused(site: str) -> None:
    assert scope().refusal(f"{site}/", 1) is None


def test_a_public_suffix_is_no_domain() -> None:
    assert scope(ScopeMode.DOMAIN, "http://a.co.uk/").refusal("http://b.co.uk/", 1) is not None


def test_exclude_holds_for_seeds_too_include_does_not() -> None:
    rules = scope(ScopeMode.ANY, include=("/keep/",), exclude=("private", r"\.pdf$"))
    assert rules.refusal("http://a.test/keep/x", 1) is None
    assert said(rules.refusal("http://a.test/x", 1)) == "pattern: matches no scope.include"
    assert rules.refusal("http://a.test/x", 0, is_seed=True) is None
    assert said(rules.refusal("http://a.test/keep/x.pdf", 1)) == "pattern: matches scope.exclude ('.pdf')"
    assert said(rules.refusal("http://a.test/private", 0, is_seed=True)) == "pattern: matches scope.exclude ('private')"


def test_every_pattern_stands_for_itself() -> None:
    rules = scope(ScopeMode.ANY, exclude=("secret", "(?i)CaSeLeSs", r"/(\d)\1/", r"/(x)\1/"))
    refused = ["http://a.test/secret", "http://a.test/CASELESS", "http://a.test/11/", "http://a.test/xx/"]
    assert all(rules.refusal(url, 0) for url in refused)
    assert not any(rules.refusal(url, 0) for url in ["http://a.test/SECRET", "http://a.test/12/"])


def test_depth() -> None:
    rules = scope(max_depth=2)
    assert rules.refusal(SEED, 2) is None
    assert said(rules.refusal(SEED, 3)) == "depth: 3 links from a seed, limits.max_depth is 2"
    assert scope(max_depth=0).refusal(SEED, 1) is not None
    assert scope().refusal(SEED, 10**6) is None


def test_a_host_that_may_not_be_contacted_is_refused_even_as_a_seed() -> None:
    rules = Scope(ScopeSettings(ScopeMode.ANY), [SEED], reachable=lambda host: host == "localhost")
    assert rules.refusal("http://localhost:81/", 1) is None
    assert "not on loopback" in str(rules.refusal(SEED, 0, is_seed=True))
    rules.adopt("http://www.example.org")
    assert rules.refusal(SEED, 0) is not None


@pytest.mark.parametrize("mode", [ScopeMode.HOST, ScopeMode.DOMAIN, ScopeMode.PREFIX])
def test_an_adopted_site_is_in_scope_from_then_on(mode: ScopeMode) -> None:
    rules = scope(mode, exclude=("secret",))
    url = "http://main.test/anything"
    assert rules.refusal(url, 1) is not None
    rules.adopt("http://main.test")
    assert rules.refusal(url, 1) is None
    assert rules.refusal("https://main.test/", 1) is not None, "that site and no other"
    assert rules.refusal("http://main.test/secret", 1) is not None
    other = rules.copy()
    assert other.refusal(url, 1) is not None, "a copy has the seeds, and adopts for itself"
    assert other.widen(["http://new.test/a"])
    assert rules.widen(["http://new.test/a"])
