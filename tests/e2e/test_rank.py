"""``crawler rank`` on a crawled web."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from crawler.demo.pages import Page, plain
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb


@pytest.fixture(scope="module")
def loopback() -> Iterator[LoopbackWeb]:
    with LoopbackWeb() as web:
        yield web


@pytest.fixture(scope="module")
def crawled(loopback: LoopbackWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub that links to three pages, one by way of a duplicate; one site names a main site."""
    folder = tmp_path_factory.mktemp("crawl")
    main, mirror = loopback.url("main.test"), loopback.url("www.main.test")
    original = loopback.url("hub.test", "/original")
    loopback.sites["hub.test"] = {
        "/robots.txt": plain(""),
        "/": Page(f"<a href=/a[b]>a<a href=/copy>copy<a href='{mirror}'>www<a rel=nofollow href=/no>no</a>"),
        "/a[b]": Page(f"<a href=/>home</a><a href='{main}'>main</a>"),
        "/copy": Page(f"<link rel=canonical href='{original}'><a href=/>home</a>"),
        "/original": Page(f"<link rel=canonical href='{original}'><a href=/>home</a>"),
    }
    loopback.sites["main.test"] = {"/robots.txt": plain(""), "/": Page("<a href=/end>end</a>"), "/end": Page("end")}
    loopback.sites["www.main.test"] = {
        "/robots.txt": plain(f"User-agent: *\nDisallow:\nHost: main.test:{loopback.port}\n"),
        "/": Page("<a href=/end>end</a>"),
    }
    (folder / "c.toml").write_text(HASTY)
    seeds = [loopback.url("hub.test"), main, mirror]
    ended = here("run", *seeds, "--config", folder / "c.toml", *LOOPBACK, "--db", folder / "c.db")
    assert ended.code == 0, ended
    return folder / "c.db"


@pytest.fixture
def store(crawled: Path, tmp_path: Path) -> Path:
    """A copy of the crawl, which has no ranks yet."""
    return Path(shutil.copy(crawled, tmp_path / "c.db"))


def test_ranks_a_crawl_as_networkx_does(store: Path, loopback: LoopbackWeb) -> None:
    import networkx  # takes a fifth of a second

    said = json.loads(here("rank", "--db", store, "--json").out)
    db = sqlite3.connect(store)
    web = networkx.DiGraph(list(db.execute("SELECT source, target FROM links_glued WHERE rel = ''")))
    truth = networkx.pagerank(web, tol=1e-12)
    ranks = {url: (rank, links, sites) for url, rank, links, sites in db.execute(
        "SELECT url, pagerank, in_links, in_sites FROM ranks"
    )}  # fmt: skip
    db.close()
    hub, main = loopback.url("hub.test"), loopback.url("main.test")
    assert {url: rank for url, (rank, *_) in ranks.items()} == pytest.approx(truth, abs=1e-6, rel=0)
    assert ranks[hub][1:] == (2, 1)
    assert ranks[main][1:] == (2, 1), "one of them to its mirror"
    assert loopback.url("hub.test", "/copy") not in ranks
    assert loopback.url("www.main.test") not in ranks
    assert loopback.url("hub.test", "/no") not in ranks
    assert (said["pages"], said["links"], said["sites"]) == (len(web), web.number_of_edges(), 2)
    first = sorted(truth, key=lambda url: -truth[url])[:2]
    assert [row["url"] for row in said["top"][:2]] == first


def test_shows_pages_and_sites_to_people(store: Path, loopback: LoopbackWeb) -> None:
    pages = here("rank", "--db", store)
    assert pages.code == 0, pages
    assert pages.out.startswith("5 pages, 7 links, 2 sites ranked\n")
    assert loopback.url("hub.test", "/a[b]") in pages.out
    assert "fetched" in pages.out
    first, second = (line.split()[-1] for line in pages.out.splitlines()[-2:])
    assert (first, second) == (loopback.url("hub.test").rstrip("/"), loopback.url("main.test").rstrip("/"))
    assert json.loads(here("rank", "--db", store, "--json").out)["top_sites"][0]["fetched"] == 4


def test_says_of_each_page_whether_it_was_fetched(store: Path, loopback: LoopbackWeb) -> None:
    gone = loopback.url("main.test", "/end")
    with sqlite3.connect(store) as db:
        db.execute("UPDATE url SET state = 'excluded', reason = 'depth: 9 links' WHERE path = '/end'")
    db.close()
    states = {row["url"]: row["state"] for row in json.loads(here("rank", "--db", store, "--json").out)["top"]}
    assert states.pop(gone) == "excluded"
    assert set(states.values()) == {"fetched"}
    (line,) = [line for line in here("rank", "--db", store).out.splitlines() if line.endswith(gone)]
    assert line.split()[-2] == "excluded"


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    ended = here("rank", "--db", tmp_path / "no.db")
    assert (ended.code, ended.out) == (2, "")
    assert "no such store" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_says_what_to_install(tmp_path: Path) -> None:
    loaded = [name for name in sys.modules if name.startswith(("scipy", "crawler.rank"))]
    with mock.patch.dict(sys.modules):
        for name in loaded:
            del sys.modules[name]
        sys.modules["scipy"] = None  # as if it were not installed
        ended = here("rank", "--db", tmp_path / "c.db")
    assert ended.code == 2
    assert (
        ended.err
        == "crawler: `crawler rank` needs scipy; install the extra 'rank' from the clone: pip install '.[rank]'\n"
    )


def test_who_asks_for_ranks_before_there_are_any_is_told_what_to_run(store: Path, tmp_path: Path) -> None:
    wanted = f"run `crawler refresh-search --db {store}` first"
    assert here("index", "--db", store).code == 0
    for ranked in (False, True):
        for view in ("ranks", "site_ranks"):
            exported = here("export", "csv", tmp_path / "r.csv", "--table", view, "--db", store)
            assert (exported.code, wanted in exported.err) == (0, not ranked)
        found = here("search", "end", "--db", store)
        assert (found.code, wanted in found.err) == (0, not ranked)
        assert here("rank", "--db", store).code == 0
    assert (
        wanted not in here("export", "csv", tmp_path / "r.csv", "--table", "pages", "--where", "0", "--db", store).err
    )


@pytest.mark.parametrize("command", ["rank", "index", "status", "run"])
def test_an_empty_file_is_no_store_and_stays_empty(command: str, tmp_path: Path) -> None:
    empty = tmp_path / "c.db"
    empty.touch()
    ended = here(command, "--db", empty)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ("no seeds" if command == "run" else "an empty file, no crawl store") in ended.err
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("c.db", 0)]
