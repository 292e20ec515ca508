"""The host that a seed redirects to takes the seed's place, within its registered domain."""

from __future__ import annotations

import pytest

from crawler.frontier.decide import Outcome, Queued, after_fetch
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import Redirected

SEED = "http://example.org/"
WWW = "https://www.example.org/"


def redirected(scope: Scope, target: str = WWW, *, seed: bool = True) -> Outcome:
    queued = Queued(1, SEED, 1, 0, seed=seed)
    answer = Redirected(SEED, 0.0, 0.0, status=301, location=target)
    return after_fetch(queued, answer, None, scope, RequestSettings())


def scope(mode: ScopeMode = ScopeMode.HOST, **settings: object) -> Scope:
    return Scope(ScopeSettings(mode, **settings), [SEED])  # type: ignore[arg-type]


def test_a_host_of_the_same_registered_domain_takes_the_place() -> None:
    rules = scope()
    assert rules.refusal(f"{WWW}a", 1) is not None
    outcome = redirected(rules)
    assert outcome.adopted_host == "www.example.org"
    assert (outcome.offers[0].refusal, outcome.offers[0].seed) == (None, True)
    assert rules.refusal(f"{WWW}a", 1) is None, "the links of its pages are in scope"
    assert rules.refusal("https://shop.example.org/", 1) is not None


def test_a_chain_of_redirects_takes_the_last_host_too() -> None:
    rules = scope()
    redirected(rules)
    assert redirected(rules, "https://en.example.org/").adopted_host == "en.example.org"


@pytest.mark.parametrize(
    ("rules", "target"),
    [
        (scope(), "https://www.example.net/"),
        (scope(follow_seed_redirects=False), WWW),
        (scope(exclude=("//www",)), WWW),
        (scope(include=(r"//example\.org",)), WWW),
        (scope(ScopeMode.PREFIX), WWW),
    ],
)
def test_the_seed_stays_otherwise(rules: Scope, target: str) -> None:
    assert redirected(rules, target).adopted_host is None
    assert rules.refusal(f"{target}a", 1) is not None


def test_a_page_that_is_no_seed_takes_no_host_along() -> None:
    rules = scope()
    assert redirected(rules, seed=False).adopted_host is None
    assert rules.refusal(WWW, 0) is not None


def test_hosts_that_were_taken_are_in_scope_again_after_a_restart() -> None:
    rules = scope()
    rules.adopt_hosts(["www.example.org"])
    assert rules.refusal(f"{WWW}a", 1) is None
    below = scope(ScopeMode.PREFIX)
    below.adopt_hosts(["www.example.org"])
    assert below.refusal(f"{WWW}a", 1) is not None
