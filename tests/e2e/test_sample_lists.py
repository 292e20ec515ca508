"""Samples from lists of seeds with strata: URLs of two strata, and listed domains, each of which counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Page, plain, redirect
from crawler.frontier.sample_design import Method
from crawler.page.soft_404 import example_path
from tests.command import here
from tests.sampled import Sampled, asked, by_what, three_sites
from tests.web import LoopbackWeb

STRATIFIED = ("--method", Method.STRATIFIED)
LARGE = tuple(f"/{n}" for n in (1, 2, 3, 4, 7, 8, 9))


def draw(store: Sampled, listed: Path, size: int) -> dict[str, Any]:
    return store.crawl("--sample", str(size), *STRATIFIED, "--seeds", listed, seeds=[])


# --- URLs -----------------------------------------------------------------------------------------


@pytest.fixture
def listed(web: LoopbackWeb, tmp_path: Path) -> Path:
    """A small stratum of one seed that moves, and a large one of seven pages."""
    rows = [f"{web.url('moved.test')},small", *(f"{web.url('a.test', path)},large" for path in LARGE)]
    (tmp_path / "list.csv").write_text("\n".join(["url,stratum", *rows]))
    return tmp_path / "list.csv"


MOVES = {
    "by a redirect": redirect("/there"),
    "by a refresh": Page("<meta http-equiv=refresh content='0; url=/there'>"),
}


@pytest.mark.parametrize("moved", MOVES)
def test_each_stratum_has_its_share_of_a_list(web: LoopbackWeb, store: Sampled, listed: Path, moved: str) -> None:
    web.sites["moved.test"] = {"/robots.txt": plain(""), "/": MOVES[moved], "/there": Page("<html lang=it>")}
    said = by_what(draw(store, listed, 3))
    drawn = store.draws("url, stratum, probability")
    assert [row[1:] for row in drawn] == [("large", 2 / 7)] * 2 + [("small", 1.0)]
    assert asked(web) == store.drawn() | {web.url("moved.test", "/there")}
    assert said["answer 200"]["value"] == 1, "what a seed leads to counts as its own"
    assert said["language it"]["value"] == pytest.approx(1 / 8)


def test_a_sample_of_a_list_is_told_again_with_and_without_the_list(
    web: LoopbackWeb, store: Sampled, listed: Path
) -> None:
    web.sites["moved.test"] = {"/robots.txt": plain(""), "/": Page("<html lang=it>")}
    said = draw(store, listed, 3)["estimates"]
    assert draw(store, listed, 3)["estimates"] == said
    alone = store.ask("run", "--no-progress", "--json")
    assert alone.code == 0, alone
    assert store.sample()["estimates"] == said, "the store remembers the sample"


def test_a_sample_of_a_list_goes_on_without_the_list(web: LoopbackWeb, store: Sampled, tmp_path: Path) -> None:
    web.sites["late.test"] = {"/robots.txt": Page("", 503), "/": Page("late")}
    (tmp_path / "list.csv").write_text(f"url,stratum\n{web.url('late.test')},x\n{web.url('a.test')},y\n")
    options = ("--sample", "2", *STRATIFIED, "--seeds", tmp_path / "list.csv")
    begun = store.run_until(lambda: store.answered().total() == 1, *options, seeds=[])
    assert "1 URL of it not requested yet" in begun.out, begun
    (tmp_path / "impatient.toml").write_text("[robots]\ngive_up_after = 0.1\n")
    ended = store.ask("run", "--config", tmp_path / "impatient.toml", "--max-time", "9")
    assert "changes the crawl: robots.give_up_after 0.1" in ended.err, ended
    assert "Response: 2 of 2 URLs (1 answered, 1 gave no answer)" in ended.out
    assert "Seeds or settings have changed" not in ended.out
    assert (ended.code, "nothing was crawled" in ended.err) == (0, False), "the sample is complete"
    assert f"`crawler control queue {web.url('late.test')} --db {store.db}`" in ended.err
    (tmp_path / "impatient.toml").write_text("[robots]\ngive_up_after = 0.2\n")
    again = store.ask("run", *options, "--config", tmp_path / "impatient.toml")
    assert "robots.give_up_after 0.2" in again.err
    assert "--max-depth" not in again.err


def test_a_refused_change_of_a_sample_of_a_list_changes_nothing(
    web: LoopbackWeb, store: Sampled, tmp_path: Path
) -> None:
    (tmp_path / "list.csv").write_text(f"url,stratum\n{web.url('b.test')},x\n{web.url('a.test')},y\n")
    draw(store, tmp_path / "list.csv", 2)

    def stored() -> list[tuple[Any, ...]]:
        states = store.query("SELECT url, state, reason, s.stands FROM urls, sample_draw s ORDER BY url")
        return states + store.query("SELECT settings FROM runs")

    before = stored()
    (tmp_path / "patient.toml").write_text("[robots]\ngive_up_after = 3600\n")
    refused = store.ask("run", "--sample", "3", "--config", tmp_path / "patient.toml")
    assert (refused.code, "a stratified sample needs seeds with strata" in refused.err) == (2, True)
    assert stored() == before


# --- ranks and domains ----------------------------------------------------------------------------

RANKS = b"1,a.test\n2,b.test\n1001,c.test\n"


def test_a_list_of_ranks_has_strata_of_ranks(store: Sampled) -> None:
    ended = store.run("--sample", "2", *STRATIFIED, "--seeds", "-", "--max-time", "2", seeds=[], stdin=RANKS)
    assert ended.code == 5, ended  # no server listens where the names lead
    drawn = store.draws("url, stratum")
    assert {stratum for _, stratum in drawn} == {"1-1000", "1001-10000"}
    assert all(url.startswith("https://") for url, _ in drawn)


def test_fewer_draws_than_strata_are_refused(store: Sampled) -> None:
    few = store.run("--sample", "1", *STRATIFIED, "--seeds", "-", seeds=[], stdin=RANKS)
    assert (few.code, "2 strata" in few.err) == (2, True)


def test_bad_lines_of_a_list_of_ranks_are_told(store: Sampled) -> None:
    bad = store.run("--sample", "2", *STRATIFIED, "--seeds", "-", seeds=[], stdin=b"1,a.test\n2;b.test\n3,b test\n")
    assert bad.code == 2
    assert "line 2: not rank,domain" in bad.err
    assert "line 3: " in bad.err


@pytest.fixture(scope="module")
def domains(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sampled]:
    """A sample of two domains, of which one closes itself. The servers speak no TLS, so each is asked by http."""
    with three_sites() as web:
        web.sites["closed.test"] = {"/robots.txt": Page("", 403), "/": Page("x")}
        store = Sampled(web, tmp_path_factory.mktemp("domains"))
        listed = list_of_domains(store, "a.test", "closed.test")
        said = draw(store, listed, 2)
        check = ("a.test", example_path(web.url("a.test").rstrip("/")))
        requests = [("a.test", "/"), check, ("a.test", "/robots.txt"), ("closed.test", "/robots.txt")]
        assert sorted((hit.host.partition(":")[0], hit.path) for hit in web.log) == requests, "no address twice"
        assert draw(store, listed, 2)["estimates"] == said["estimates"]
        assert len(web.log) == 4, "the same list begins nothing anew"
        yield store


def list_of_domains(store: Sampled, *hosts: str) -> Path:
    listed = store.db.with_name("list.csv")
    listed.write_text("".join(f"{rank},{store.web.url(host).split('/')[2]}\n" for rank, host in enumerate(hosts, 1)))
    return listed


def test_a_listed_domain_counts_once_whatever_address_answered(domains: Sampled) -> None:
    said = domains.sample()
    assert said["outcomes"] | {"answered": 1, "disallowed by robots.txt": 1} == said["outcomes"]
    assert by_what(said)["answer 200"]["value"] == 1
    assert by_what(said)["soft 404"]["value"] == 0
    assert [state for *_, state in domains.draws()] == ["excluded"] * 2, "the drawn address, given up"
    pages = domains.query("SELECT p.url FROM samples s LEFT JOIN pages p ON p.url_id = s.page_id ORDER BY s.url")
    assert pages == [(domains.web.url("a.test"),), (None,)]


def test_the_addresses_of_a_listed_domain_are_explained(domains: Sampled, tmp_path: Path) -> None:
    url = domains.web.url("a.test")
    assert f"{url} is tried instead" in domains.ask(f"why {url.replace('http:', 'https:')}").out
    assert domains.ask("audit", "--report", tmp_path / "audit.md").code == 0
    assert "The crawl began at 2 seeds" in (tmp_path / "audit.md").read_text(), "not at each address"


def test_a_listed_domain_whose_answering_address_was_forgotten_is_nonresponse(web: LoopbackWeb, store: Sampled) -> None:
    draw(store, list_of_domains(store, "a.test", "b.test"), 2)
    assert here("store", "forget", web.url("a.test"), "--db", store.db).code == 0
    said = store.sample()["outcomes"]
    assert (said["answered"], said["forgotten by the operator"], said["gave no answer"]) == (1, 1, 0)
