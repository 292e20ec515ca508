"""Trust in sitemaps: https://www.sitemaps.org/protocol.html, "Sitemap file location" and "Cross Submits"."""

import pytest

from crawler.sitemaps.trust import Trust

A, B = "http://a.example", "http://b.example"
MAP = f"{A}/catalog/sitemap.xml?x=/y"


def trust(robots: dict[str, tuple[str, ...]], via: tuple[str, ...] = ()) -> Trust:
    return Trust(MAP, robots.get, via)


def test_a_sitemap_counts_for_its_directory() -> None:
    rule = trust({A: ()})
    assert rule.refusal(f"{A}/catalog/") is None
    assert rule.refusal(f"{A}/catalog/show?item=23") is None
    assert rule.refusal(f"{A}/images/") == (
        "sitemap: not below /catalog/, and http://a.example/robots.txt does not name the sitemap"
    )
    assert rule.refusal(f"{A}/catalog") is not None


def test_a_sitemap_named_in_robots_txt_counts_for_the_whole_site() -> None:
    assert trust({A: (f"{A}/other.xml", MAP)}).refusal(f"{A}/images/") is None


def test_http_and_https_of_a_host_are_one_site() -> None:
    assert trust({}).refusal("https://a.example/catalog/x") is None
    assert trust({A: (MAP,)}).refusal("https://a.example/x") is None
    assert trust({"https://a.example": (MAP,)}).refusal("https://a.example/x") is None


@pytest.mark.parametrize("site", ["http://a.example:8080", "https://a.example:8443", "http://www.a.example", B])
def test_another_site_must_name_the_sitemap(site: str) -> None:
    url = f"{site}/catalog/x"
    assert trust({A: (MAP,)}).refusal(url) == f"sitemap: on another site, and {site}/robots.txt is not known"
    assert trust({A: (MAP,), site: (f"{B}/sitemap.xml",)}).refusal(url) == (
        f"sitemap: on another site, and {site}/robots.txt does not name the sitemap"
    )
    assert trust({A: (), site: (MAP,)}).refusal(url) is None


def test_naming_the_index_or_the_redirect_is_enough() -> None:
    assert trust({B: (f"{A}/index.xml",)}).refusal(f"{B}/x") is not None
    assert trust({B: (f"{A}/index.xml",)}, via=(f"{A}/index.xml",)).refusal(f"{B}/x") is None


def test_a_site_is_asked_about_once() -> None:
    asked: list[str] = []

    def sitemaps_of(site: str) -> None:
        asked.append(site)

    rule = Trust(MAP, sitemaps_of)
    assert all(rule.refusal(f"{B}/{number}") for number in range(3))
    assert asked == [A, B]
