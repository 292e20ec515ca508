"""The operator's orders: names, their joint effect, and the effect of a block on offered URLs."""

from __future__ import annotations

import pytest

from crawler.frontier.decide import Queued, after_fetch, before_robots
from crawler.frontier.offers import KnownUrl, Offer, weigh
from crawler.frontier.operator import BLOCKED, Blocks, Command, Order, blockable, name_ranges, standing
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import Link, Redirected, State
from crawler.url import NotCrawlable
from tests.reasons import reason as told
from tests.records import replace


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("example.org", "example.org"),
        (" EXAMPLE.org. ", "example.org"),
        ("https://Example.org:8443/x?y", "https://example.org:8443"),
        ("http://example.org:80", "http://example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("example.org:8080", "example.org:8080"),
        ("[::1]:8080", "[::1]:8080"),
        ("example.org:80", "http://example.org"),
        ("example.org:443", "https://example.org"),
    ],
)
def test_hosts_and_sites_may_be_blocked(text: str, name: str) -> None:
    assert blockable(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a b",
        "a/b",
        "a?b",
        "a#b",
        "a:b",
        "a:70000",
        "example.org:",
        "user@a",
        "a\\b",
        "http://",
        "ftp://a",
        "http://u@a/",
        '"example.org"',
        "'example.org'",
        "example.org,example.net",
        "a\tb",
        "http://a\nb/",
        "http://a b/",
        "a%62",
        "a..b",
        "a*b",
        "~",
        'http://"a"/',
        "http://x;y/",
        "x" * 64,
    ],
)
def test_invalid_sites_are_refused(text: str) -> None:
    with pytest.raises(NotCrawlable):
        blockable(text)


@pytest.mark.parametrize("text", ["*.example.org", ".example.org", "*", "https://*.example.org/", "http://.a/"])
def test_subdomains_are_not_blocked_by_a_pattern_and_that_is_said(text: str) -> None:
    with pytest.raises(NotCrawlable, match="a block names one host, and patterns are not supported"):
        blockable(text)


@pytest.mark.parametrize(
    ("name", "covered", "left"),
    [
        (
            "a.test",
            ["http://a.test/", "https://a.test/x", "http://a.test:8080/", "http://a.test./", "https://a.test.:1/"],
            ["http://b.a.test/", "http://a.test.evil/", "http://aa.test/", "http://a.test-x/"],
        ),
        ("https://a.test", ["https://a.test/x"], ["http://a.test/", "https://a.test:8443/"]),
        ("a.test:8080", ["http://a.test:8080/", "https://a.test:8080/"], ["http://a.test/", "http://a.test:80801/"]),
        ("[::1]:8080", ["http://[::1]:8080/"], ["http://[::1]/", "http://[::1]:8081/"]),
        ("::1", ["http://[::1]/", "http://[::1]:8080/"], ["http://[::2]/"]),
    ],
)
def test_a_name_covers_the_same_in_memory_and_in_the_store(name: str, covered: list[str], left: list[str]) -> None:
    blocks = Blocks()
    assert not any(blocks.covers(url) for url in covered + left)
    blocks.names = frozenset([name])
    sites = {url: url[: url.index("/", 8)] for url in covered + left}
    for url in covered + left:
        assert blocks.covers(url) is (url in covered)
        assert any(first <= sites[url] <= last for first, last in name_ranges(name)) is (url in covered)


def orders(*asked: tuple[Command, str]) -> list[Order]:
    return [Order(n, float(n), command, name) for n, (command, name) in enumerate(asked, 1)]


def test_orders_come_to_the_last_word_on_each_thing() -> None:
    now = standing(
        orders(
            (Command.PAUSE, ""),
            (Command.BLOCK, "a"),
            (Command.BLOCK, "b"),
            (Command.STOP, ""),
            (Command.UNBLOCK, "a"),
            (Command.RESUME, ""),
            (Command.PAUSE, ""),
            (Command.PAUSE, ""),
            (Command.BLOCK, "b"),
        )
    )
    assert now.paused_since == 7.0  # when it was first asked for
    assert now.blocked == {"b": 3.0}
    assert standing([]).paused_since is None
    done = Order(2, 2.0, Command.QUEUE, "http://b.test/", done_at=3.0)
    assert standing([*orders((Command.QUEUE, "a")), done]).queued == {"a": 1.0}


def test_the_reason_of_a_block_is_the_last_one_that_was_given() -> None:
    said = [
        Order(1, 1.0, Command.BLOCK, "a", because="by mail"),
        Order(2, 2.0, Command.BLOCK, "a"),
        Order(3, 3.0, Command.BLOCK, "b", because="first"),
        Order(4, 4.0, Command.BLOCK, "b", because="second"),
    ]
    assert standing(said).because == {"a": "by mail", "b": "second"}
    assert standing([*said, Order(5, 5.0, Command.UNBLOCK, "a")]).because == {"b": "second"}


def test_the_reason_of_a_block_is_that_of_the_host_and_of_the_site() -> None:
    said = [
        Order(1, 1.0, Command.BLOCK, "a.test", because="by mail"),
        Order(2, 2.0, Command.BLOCK, "http://a.test:8080", because="by form"),
    ]
    assert standing(said).why_blocked("https://a.test/x") == "by mail"
    assert standing(said).why_blocked("http://a.test:8080/x") == "by form; by mail"
    assert standing(said).why_blocked("http://b.test/") == ""


def scope(**settings: object) -> Scope:
    made = Scope(replace(ScopeSettings(ScopeMode.DOMAIN), **settings), ["http://a.test/"], max_depth=2)
    made.blocks.names = frozenset(["a.test"])
    return made


def test_blocked_is_the_reason_only_if_no_other_rule_refuses() -> None:
    """Else lifting the block would have to ask them all again."""
    blocked = scope(exclude=("/no",))
    assert blocked.refusal("http://a.test/", 0, is_seed=True) == BLOCKED
    assert blocked.refusal("http://a.test/", 2) == BLOCKED
    refusals = [blocked.refusal(url, depth) for url, depth in (("http://a.test/no", 1), ("http://a.test/", 3))]
    assert [str(refusal).partition(":")[0] for refusal in refusals] == ["pattern", "depth"]
    links = [Link("http://a.test/x", "", "", True), Link("http://a.test/y", "", "nofollow", False)]
    assert [str(offer.refusal)[:8] for offer in blocked.link_offers(links, 1)] == ["blocked ", "nofollow"]
    assert [str(offer.refusal)[:6] for offer in blocked.link_offers(links, 3)] == ["depth:", "depth:"]
    blocked.blocks.names = frozenset()
    assert blocked.refusal("http://a.test/", 2) is None


def test_a_blocked_way_is_a_way() -> None:
    """A reason that a better offer lifts gives way to the block, at the depth of that offer."""
    known = KnownUrl(State.EXCLUDED, told("nofollow: linked only so"), 5, 0)
    change = weigh(known, Offer("", 3, BLOCKED))
    assert change is not None
    assert (change.depth, change.requeue, change.reason) == (3, False, BLOCKED)
    known = KnownUrl(State.EXCLUDED, BLOCKED, 3, 0)
    assert weigh(known, Offer("", 3, BLOCKED)) is None
    nearer = weigh(known, Offer("", 1, BLOCKED))
    assert nearer is not None
    assert (nearer.depth, nearer.requeue, nearer.reason) == (1, False, BLOCKED)
    lifted = weigh(known, Offer("", 3))
    assert lifted is not None
    assert (lifted.requeue, lifted.reason.sentence) == (True, "")
    own = weigh(KnownUrl(State.EXCLUDED, told("robots: line 3"), 3, 0), Offer("", 1, BLOCKED))
    assert own is not None
    assert (own.depth, own.requeue, own.reason.sentence) == (1, False, "robots: line 3")


def test_a_blocked_url_ends_before_its_site_is_asked_for_robots_txt() -> None:
    queued = Queued(1, "http://a.test/x", 1, 1)
    ended = before_robots(queued, scope())
    assert ended is not None
    assert (ended.state, ended.reason) == (State.EXCLUDED, BLOCKED)
    assert before_robots(replace(queued, url="http://b.test/"), scope()) is None


def test_a_seed_that_redirects_to_a_blocked_site_leads_there_once_it_is_lifted() -> None:
    blocked = scope(mode=ScopeMode.ANY)
    seed = Queued(1, "http://b.test/", 1, 0, seed=True)
    outcome = after_fetch(
        seed, Redirected(seed.url, 0.0, 1.0, location="http://a.test/"), None, blocked, RequestSettings()
    )
    (offer,) = outcome.offers
    assert (offer.refusal, offer.seed, outcome.target) == (BLOCKED, True, "http://a.test/")
