"""Settings of single hosts and domains: which applies, what it changes, and how it is read and stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.errors import ConfigError
from crawler.frontier.politeness import GroupBy, Pace, PauseFacts, PolitenessSettings, after_answer
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.frontier.site_settings import SITES, SiteRule, pages_allowed, rule_for
from crawler.settings.keys import KEYS
from crawler.settings.loading import load_file, settings_from
from crawler.settings.settings import Settings
from crawler.settings.stored import recorded, to_record

SHOP = SiteRule("shop.example", 10.0, "22-06 Europe/Berlin", 2, 50, (("X-Key", "SHOP_KEY"),))
NEWS = SiteRule("news.shop.example", 1.0)


@pytest.mark.parametrize(
    ("host", "rule"),
    [("shop.example", SHOP), ("a.shop.example.", SHOP), ("x.news.shop.example", NEWS), ("workshop.example", None)],
)
def test_the_longest_name_that_covers_a_host_counts(host: str, rule: SiteRule | None) -> None:
    assert rule_for(host, (SHOP, NEWS)) == rule


@pytest.mark.parametrize(("asked_s", "pause_s"), [(None, 10.0), (3.0, 10.0), (60.0, 60.0)])
def test_a_pause_that_the_site_asks_for_still_holds(asked_s: float | None, pause_s: float) -> None:
    settings = PolitenessSettings(delay_s=2.0, sites=(SHOP,))
    answer = PauseFacts(0.0, 0.0, 200)
    assert after_answer(Pace(), answer, asked_s, settings.of("shop.example")).pause_s == pause_s
    assert after_answer(Pace(), answer, None, settings.of("other.example")).pause_s == 2.0
    assert settings.of("shop.example").hours == ("22-06 Europe/Berlin",)


@pytest.mark.parametrize(
    ("group", "name", "delay_s"),
    [
        (GroupBy.DOMAIN, "shop.example", 60.0),
        (GroupBy.DOMAIN, "example", 60.0),
        (GroupBy.DOMAIN, "other.example", 2.0),
        (GroupBy.HOST, "shop.example", 10.0),
        (GroupBy.HOST, "news.shop.example", 60.0),
    ],
)
def test_the_longest_pause_of_its_hosts_holds_for_a_group(group: GroupBy, name: str, delay_s: float) -> None:
    settings = PolitenessSettings(delay_s=2.0, group=group, sites=(SHOP, NEWS._replace(delay_s=60.0)))
    assert settings.of_group(name).delay_s == delay_s


@pytest.mark.parametrize(("own", "general", "allowed"), [(5, None, 5), (5, 3, 5), (0, 3, None), (None, 3, 3)])
def test_the_page_limit_of_a_site_takes_the_place_of_the_general_one(
    own: int | None, general: int | None, allowed: int | None
) -> None:
    rules = (SHOP._replace(max_pages=own),)
    assert pages_allowed("www.shop.example", rules, general) == allowed
    assert pages_allowed("other.example", rules, general) == general


@pytest.mark.parametrize(("limit", "deep"), [(None, 9), (1, 1)])
def test_the_depth_of_a_site_takes_the_place_of_the_general_one(limit: int | None, deep: int) -> None:
    scope = Scope(ScopeSettings(ScopeMode.ANY), (), max_depth=limit, sites=(SHOP,))
    assert scope.refusal("http://shop.example/", 2) is None
    refused = scope.refusal("http://shop.example/", 3)
    assert refused is not None
    assert '[site."shop.example"]' in refused.sentence
    assert scope.refusal("http://other.example/", deep) is None


def test_tables_are_read_written_and_stored(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    table = (
        'delay = "10 s"\nhours = "22-06 Europe/Berlin"\ndepth = 2\nmax_pages = 50\nheaders = { X-Key = "SHOP_KEY" }\n'
    )
    file.write_text(f'[site."shop.example"]\n{table}')
    settings = load_file(Settings(), file)
    assert settings.politeness.sites == (SHOP,)
    assert recorded(json.loads(json.dumps(to_record(settings)))) == settings
    file.write_text(f"[politeness]\nsites = {KEYS['politeness.sites'].kind.toml((SHOP,))}\n")
    assert load_file(Settings(), file) == settings


@pytest.mark.parametrize(
    "stated",
    [{"delay": 5}, {"hours": "22-06 UTC"}, {"depth": 0}, {"max_pages": 0}, {"headers": {"X-Key": "SHOP_KEY"}}],
)
def test_each_setting_may_stand_alone(stated: dict[str, object]) -> None:
    (rule,) = SITES.read({"shop.example": stated})
    assert rule.stated == stated


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"shop.example": {"dely": 1}}, "unknown key 'dely'"),
        ({"shop.example": {}}, "needs one of delay, hours, depth, max_pages"),
        ({"shop": 3}, "needs one of"),
        ({"http://a.b/": {"delay": 1}}, "no host or domain"),
        ({"a.b": {"delay": -1}}, "0 or more"),
        ({"a.b": {"hours": "*.c=22-06 UTC"}}, "write HH-HH ZONE"),
        ({"a.b": {"hours": "*=22-06 UTC"}}, "write HH-HH ZONE"),
        ({"a.b": {"headers": "X-Key"}}, "pairs of a field"),
        ({"a.b": {"headers": {"User-Agent": "NAME"}}}, "sets User-Agent itself"),
        ({"a.b": {"headers": {"Cookie": "NAME"}}}, "never sends it"),
        ({"a.b": {"headers": {"X-Key": "s3cret value"}}}, "name of an environment variable"),
        (3, "must be tables"),
    ],
)
def test_wrong_tables_are_refused(table: object, told: str) -> None:
    with pytest.raises(ConfigError, match="config:") as refused:
        settings_from({"site": table}, source="config")
    assert told in str(refused.value)
