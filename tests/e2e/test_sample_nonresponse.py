"""What keeps a sample from being drawn or answered: failing sites, limits, blocks, and what is forgotten."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from crawler.demo.pages import Page, plain
from tests.command import Ended, finish, start, until
from tests.sampled import NEARER, Sampled, asked, by_what, site, three_sites, urls
from tests.web import LoopbackWeb

UNREACHED = {"/robots.txt": Page("", status=503)}


def words(ended: Ended) -> str:
    return " ".join(ended.out.split())


# --- sites that do not answer ---------------------------------------------------------------------


def test_a_draw_that_waits_for_a_site_is_explained(web: LoopbackWeb, store: Sampled) -> None:
    web.sites["b.test"] = UNREACHED
    dead = web.url("b.test").rstrip("/")
    options = ("--sample", "2", "--per", "site", "--max-depth", "2")
    first = store.run_until(lambda: store.answered().total() == 2 * len(NEARER), *options)
    assert "1 d after the last answer at the latest" in first.err
    status = store.ask("status")
    assert f"the sample waits for 1 site ({dead}), and is drawn" in words(status)
    assert "at its limit" not in status.out
    assert json.loads(store.ask("status", "--json").out)["sampling_frame"]["sites"] == [dead]
    why = words(store.ask(f"why {web.url('a.test', '/1')}"))
    assert "it is requested only if it is drawn" in why
    assert dead in why
    assert "--max-pages-per-site" not in why
    assert "No sample yet" in first.out
    none = store.ask("sample")
    assert (none.code, none.out, dead in none.err, "holds no sample" in none.err) == (2, "", True, True)


def test_a_site_that_fails_for_long_does_not_keep_the_sample_from_being_drawn(web: LoopbackWeb, tmp_path: Path) -> None:
    web.sites["b.test"] = UNREACHED
    store = Sampled(web, tmp_path, "[sample]\nframe_patience = 1\n")
    process = start(*store.command("--sample", "2", "--per", "site", "--max-depth", "2"))
    until(lambda: is_drawn(store), "a sample without the site that fails")
    web.sites["b.test"] = site(web, "b.test")  # it comes back too late
    ended = finish(process)
    assert ended.code == 0, ended
    assert "Frame error: 1 URL of 1 site not reached" in words(ended)
    assert store.query("SELECT missed, missed_sites, stands FROM sample_draws") == [(1, 1, 1)]
    reasons = dict(store.query("SELECT url, reason_code FROM urls"))
    assert reasons[web.url("b.test")] == "frame"
    assert {row[1] for row in store.draws()} >= {web.url(host).rstrip("/") for host in ("a.test", "c.test")}


def is_drawn(store: Sampled) -> bool:
    try:
        return store.db.exists() and store.draws() != []
    except sqlite3.OperationalError:  # the run is making the store
        return False


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """A sample of all of ten sites, two of which have not answered."""
    sites = {
        f"s{n}.test": {"/robots.txt": plain(""), "/": Page(f"<html>{n}")} if n > 1 else UNREACHED for n in range(10)
    }
    with LoopbackWeb(sites) as web:
        store = Sampled(web, tmp_path_factory.mktemp("partly"))
        options = ("--sample", "10", "--max-depth", "0")
        ended = store.run_until(lambda: store.answered().total() == 8, *options, seeds=list(sites))
    assert "Response: 8 of 10 URLs (8 answered, 2 not answered yet)" in words(ended)
    return store


def test_what_has_not_answered_is_counted_and_bounds_shares_and_totals(partly: Sampled) -> None:
    said = partly.sample()
    found, outcomes = by_what(said), said["outcomes"]
    assert (outcomes["answered"], outcomes["not answered yet"]) == (8, 2)
    share = found["answer 200"]
    assert (share["value"], share["missing"], share["lowest"], share["highest"]) == (1, 2, pytest.approx(0.8), 1)
    assert (share["low"], share["high"]) == (pytest.approx(0.8), 1), "the whole frame was drawn: at least 8 of 10"
    closed = found["disallowed by robots.txt"]
    assert closed["low"] == 0 < closed["high"]
    assert closed["highest"] == pytest.approx(0.2)
    number = share["total"]
    assert (number["missing"], number["lowest"], number["highest"]) == (2, pytest.approx(8), 10)
    assert not number["may_be_too_narrow"], "two are fewer than the root of ten"
    told = partly.ask("sample").out
    assert "Totals over the 10 URLs of the frame" in told
    assert "8 to 10" in told


# --- limits on pages ------------------------------------------------------------------------------


def test_a_limit_on_the_pages_of_a_site_is_told(web: LoopbackWeb, store: Sampled) -> None:
    ended = store.run("--sample", "5", "--max-pages-per-site", "3")
    assert "3 sites reached --max-pages-per-site" in ended.out
    hosts = [hit.host for hit in web.log if hit.status == 200 and hit.path != "/robots.txt"]
    assert max(hosts.count(host) for host in hosts) == 3


def test_a_limit_that_is_reached_is_not_waited_for(store: Sampled) -> None:
    """Four pages of each site are nearer than the sample, and the limit is one more."""
    options = ("--sample", "30", "--max-depth", "2", "--max-pages-per-site", "5")
    said = store.crawl(*options)
    queued = sum(state == "queued" for *_, state in store.draws())
    assert (said["waiting"], said["over_budget"]) == (0, queued)
    assert queued > 0
    ended = store.run(*options)
    assert f"{queued} URLs of it not requested: the site has reached --max-pages-per-site" in ended.out
    assert "the same `crawler run` goes on" not in ended.out.partition("Sample:")[2]


# --- blocks and what is forgotten -----------------------------------------------------------------


def test_a_blocked_site_is_left_out_and_drawn_once_it_is_unblocked(web: LoopbackWeb, tmp_path: Path) -> None:
    whole, store = Sampled(web, tmp_path / "whole"), Sampled(web, tmp_path / "blocked")
    options = ("--sample", "3", "--per", "site", "--max-depth", "2")
    whole.crawl(*options)
    assert store.run("--max-depth", "2", "--max-time", "0.001").code == 5
    assert store.ask("control block b.test").code == 0
    before = len(web.log)
    first = store.crawl(*options)
    assert {hit.host.partition(":")[0] for hit in web.log[before:]} == {"a.test", "c.test"}
    assert (first["urls"], first["left_out"]) == (6, 2)  # the start page, and /far as c.test links to it
    assert "Not in it: 2 URLs of blocked sites" in store.ask("sample").out
    earlier = store.drawn()
    assert store.ask("control unblock b.test").code == 0
    again = store.crawl(*options)
    assert (again["urls"], again["left_out"]) == (9, 0)
    assert store.draws() == whole.draws()
    left = earlier - store.drawn()
    assert len(left) == (web.url("c.test", "/far") in store.drawn()), "only b.test links to it; it displaces one URL"
    assert asked(web) <= urls(web, NEARER) | store.drawn() | left


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """Nine pages of each site; then those of b.test were forgotten."""
    with three_sites() as web:
        store = Sampled(web, tmp_path_factory.mktemp("forgotten"))
        said = by_what(store.crawl("--sample", "9", "--per", "site", "--max-depth", "2"))
    (store.db.parent / "before.json").write_text(json.dumps(said))
    assert store.ask("store forget b.test", "--because", "an opt-out").code == 0
    return store


def test_what_is_forgotten_after_the_draw_is_nonresponse(forgotten: Sampled) -> None:
    said = forgotten.sample("--since", forgotten.db)
    assert (said["outcomes"]["forgotten by the operator"], said["outcomes"]["gave no answer"]) == (9, 0)
    found, before = by_what(said), json.loads((forgotten.db.parent / "before.json").read_text())
    assert "answer none" not in found
    assert found["answer 200"]["value"] > 0.5
    told = forgotten.ask("sample").out
    assert "9 URLs of it forgotten by the operator: no estimate includes them" in told
    for what, share in found.items():
        if what.startswith("change"):
            assert share["missing"] == 9, what
        elif share["unit"] == "share" and not what.startswith("language"):
            assert share["missing"] == 9, what
            assert share["lowest"] < share["low"] or share["highest"] > share["high"], what
            assert share["units"] <= before[what]["units"], what
