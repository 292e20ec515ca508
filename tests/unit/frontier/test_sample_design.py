"""The drawn URLs do not depend on the order of the frame, and all are equally likely."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.frontier.sample_design import (
    BadRow,
    Drawn,
    Listed,
    Sampler,
    SitesBy,
    allocate,
    draw_sites,
    draw_stratified,
    key,
    number_of,
    read_list,
    site_probabilities,
)

URLS = [f"http://s{n % 7}.test/{n}" for n in range(100)]


def drawn(urls: list[str], size: int, seed: int) -> list[Drawn]:
    sampler = Sampler(size, seed)
    for url in urls:
        sampler.offer(url, url[:14])
    return list(sampler.drawn())


@given(st.randoms(use_true_random=False), st.integers(0, 30), st.integers(-(2**63), 2**63))
def test_the_order_changes_nothing(chance: random.Random, size: int, seed: int) -> None:
    shuffled = chance.sample(URLS, len(URLS))
    assert drawn(shuffled, size, seed) == drawn(URLS, size, seed)


@given(st.integers(0, 30), st.integers(0, 99))
def test_as_many_of_each_stratum_as_wanted_or_as_it_has(size: int, seed: int) -> None:
    sample = drawn(URLS, size, seed)
    has = Counter(url[:14] for url in URLS)
    assert Counter(each.stratum for each in sample) == +Counter({name: min(size, n) for name, n in has.items()})
    assert {each.probability for each in sample} <= {min(size, n) / n for n in has.values()}
    assert {each.url for each in drawn(URLS, size // 2, seed)} <= {each.url for each in sample}


def test_every_url_is_drawn_as_often_as_its_probability_says() -> None:
    times = Counter(each.url for seed in range(2000) for each in drawn(URLS, 5, seed))
    for url in URLS:
        probability = 5 / sum(other[:14] == url[:14] for other in URLS)
        error = (probability * (1 - probability) / 2000) ** 0.5
        assert abs(times[url] / 2000 - probability) < 4.5 * error


SIZES = st.dictionaries(st.text(max_size=3), st.integers(1, 1000), min_size=1, max_size=12)


@given(st.randoms(use_true_random=False), SIZES, st.integers(1, 14), st.sampled_from(SitesBy), st.integers(0, 99))
def test_as_many_sites_as_wanted_in_any_order(
    chance: random.Random, sizes: dict[str, int], number: int, by: SitesBy, seed: int
) -> None:
    drawn = draw_sites(sizes, number, by, seed)
    assert draw_sites(dict(chance.sample(list(sizes.items()), len(sizes))), number, by, seed) == drawn
    assert len(drawn) == min(number, len(sizes))
    probability = site_probabilities(sizes, number, by)
    assert sum(probability.values()) == pytest.approx(len(drawn))
    assert drawn == {site: probability[site] for site in drawn}
    assert {site for site in sizes if probability[site] == 1} <= drawn.keys()
    if by is SitesBy.SIZE:
        by_chance = {site: probability[site] / sizes[site] for site in sizes if probability[site] < 1}
        assert not by_chance or max(by_chance.values()) == pytest.approx(min(by_chance.values()))


@pytest.mark.parametrize("by", SitesBy)
def test_every_site_is_drawn_as_often_as_its_probability_says(by: SitesBy) -> None:
    sizes = {f"http://s{n}.test": size for n, size in enumerate((1, 2, 4, 8, 16, 32, 64, 500))}
    probability = site_probabilities(sizes, 4, by)
    times = Counter(site for seed in range(2000) for site in draw_sites(sizes, 4, by, seed))
    for site in sizes:
        error = (probability[site] * (1 - probability[site]) / 2000) ** 0.5
        assert abs(times[site] / 2000 - probability[site]) <= 4.5 * error
    assert (probability["http://s7.test"] == 1) is (by is SitesBy.SIZE)


def test_sites_by_size_and_a_number_of_each_give_every_url_the_same_probability() -> None:
    sampler = Sampler(3, 5, sites=4, sites_by=SitesBy.SIZE)
    for n in range(100):
        sampler.offer(f"http://s/{n}", f"s{n % 7 if n < 70 else 0}")
    sample = list(sampler.drawn())
    assert Counter(each.stratum for each in sample).total() == 12
    assert {each.site_probability for each in sample} <= {1.0, 3 * 10 / 60}
    assert {(each.stratum == "s0", round(each.probability, 9)) for each in sample} == {(True, 3 / 40), (False, 9 / 60)}


def test_a_share_is_rounded_up_and_never_by_the_error_of_a_binary_number() -> None:
    assert [number_of(there, 50, 0.07) for there in (1, 14, 15, 100, 1000)] == [1, 1, 2, 7, 50]
    assert number_of(3, 5, 1.0) == 3
    sampler = Sampler(50, 1, share=0.07)
    for url in URLS:
        sampler.offer(url)
    assert [each.probability for each in sampler.drawn()] == [0.07] * 7


def test_keys_are_the_same_on_every_machine() -> None:
    assert key("http://a.test/", 1) == 13325601687763094880
    assert key("http://a.test/", 2) != key("http://a.test/", 1) != key("http://a.test/x", 1)


@given(st.integers(0, 200), st.dictionaries(st.text(max_size=2), st.integers(0, 40), max_size=8))
def test_shares_are_even_and_use_all_pages(size: int, strata: dict[str, int]) -> None:
    shares = allocate(size, strata)
    assert shares.keys() == strata.keys()
    assert sum(shares.values()) == min(size, sum(strata.values()))
    assert all(0 <= shares[name] <= strata[name] for name in strata)
    short = [shares[name] for name in strata if shares[name] < strata[name]]
    assert not short or max(shares.values()) - min(short) <= 1, "who got less than another had no more"


def test_a_stratified_sample_counts_a_url_once() -> None:
    rows = [Listed(url, "small" if n < 3 else "large") for n, url in enumerate(URLS)] + [Listed(URLS[0], "large")]
    sample = draw_stratified(rows, 10, seed=1)
    assert Counter((each.stratum, each.probability) for each in sample) == {("small", 1.0): 3, ("large", 7 / 97): 7}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(
            "url,stratum\nhttp://A.test/x,news\n\nhttp://b.test,shops\n",
            [Listed("http://a.test/x", "news"), Listed("http://b.test/", "shops")],
            id="named columns",
        ),
        pytest.param(
            '\ufeffid,stratum,url\r\n1,"with, comma",http://a.test/\r\n',
            [Listed("http://a.test/", "with, comma")],
            id="in any order, as spreadsheets write them",
        ),
        pytest.param(
            "1,google.com\n1000,a.co.uk\n1001,b.test\n2000000,xn--bcher-kva.example\n",
            [
                Listed("https://google.com/", "1-1000", by_domain=True),
                Listed("https://a.co.uk/", "1-1000", by_domain=True),
                Listed("https://b.test/", "1001-10000", by_domain=True),
                Listed("https://xn--bcher-kva.example/", "1000001-", by_domain=True),
            ],
            id="as Tranco writes them",
        ),
        pytest.param(
            "Rank,Domain\n1,a.test\n",
            [Listed("https://a.test/", "1-1000", by_domain=True)],
            id="with the names of columns",
        ),
        pytest.param("", [], id="nothing"),
    ],
)
def test_lists_are_read(text: str, rows: list[Listed]) -> None:
    assert read_list(text.splitlines(keepends=True)) == (rows, [])


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("url,stratum\nhttp://a.test/\n", 2, "fewer columns"),
        ("url,stratum\nhttp://a.test/,x\nftp://a.test/,x\n", 3, "not an http or https URL"),
        ("domain,stratum\na.test,x\n", 1, "no column url"),
        ("1,a.test\nhttp://b.test/\n", 2, "url,stratum"),
        ("1,a.test/path\n", 1, "not a domain"),
        ("1,a.test?x\n", 1, "not a domain"),
        ("1,user@a.test\n", 1, "user name"),
        ("²,a.test\n", 1, "url,stratum"),
        ('1,"a.test\n', 1, "not CSV"),
        (
            "url,stratum\nhttp://a.test,x\nhttp://b.test/,x\nhttp://A.test/,y\n",
            4,
            "http://a.test/ is in two strata: 'x' (line 2) and 'y'",
        ),
        ("url,stratum\nhttp://a.test,x\nhttp://A.test/,x\n", 3, "http://a.test/ is there twice: it is on line 2 too"),
        ("url,stratum\nhttp://a.test,x\nhttp://b.test,\n", 3, "empty stratum"),
        ("1,a.test\n2000,a.test\n", 2, "https://a.test/ is in two strata: '1-1000' (line 1) and '1001-10000'"),
    ],
)
def test_bad_rows_are_told_with_their_lines(text: str, line: int, reason: str) -> None:
    _, bad = read_list(text.splitlines(keepends=True))
    assert [row.line for row in bad] == [line]
    assert reason in bad[0].reason


def test_a_bad_row_spoils_no_other() -> None:
    rows, bad = read_list(["1,a.test\n", "x\n", "2,b.test\n"])
    assert [row.url for row in rows] == ["https://a.test/", "https://b.test/"]
    assert bad == [BadRow(2, "not rank,domain; for other columns, begin with a row that names them: url,stratum")]
