"""The glued graph as read by numbers, against the view ``links_glued``; and what a rank is kept with."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import StoreError
from crawler.rank.link_graph import read_graph
from crawler.rank.ranking import RankingSummary, rank, tops
from crawler.store.keys import render_keys, url_number
from crawler.store.sqlite.store import SqliteStore
from crawler.url import split

A, B, C = "http://a.test", "http://b.test", "http://c.test"


async def store_of(
    path: Path,
    links: Sequence[tuple[str, str] | tuple[str, str, bool]],
    *,
    states: Mapping[str, str] | None = None,
    targets: Mapping[str, str] | None = None,
    mirrors: Mapping[str, str] | None = None,
) -> SqliteStore:
    """A store with these links (the third of a link: whether it may be followed). URLs without a state are queued."""
    states, targets, mirrors = states or {}, targets or {}, mirrors or {}
    store = await SqliteStore.open(path)
    urls = dict.fromkeys([url for link in links for url in link[:2]] + [*states, *targets, *targets.values()])
    sites = {site: n for n, site in enumerate(dict.fromkeys(split(url).site for url in urls), 1)}
    numbers = {url: url_number(sites[split(url).site], split(url).path, 0) for url in urls}
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO politeness_group (id, name) VALUES (1, 'test')")
        db.executemany(
            "INSERT INTO site (name, host, registered_domain, id, group_id) VALUES (?1, ?1, ?1, ?2, 1)", sites.items()
        )
        db.executemany(
            "INSERT INTO url (id, path, state, depth, target) VALUES (?, ?, ?, 0, ?)",
            [
                (number, split(url).path, states.get(url, "queued"), numbers.get(targets.get(url, "")))
                for url, number in numbers.items()
            ],
        )
        db.executemany(
            "INSERT INTO link VALUES (?, ?, '', '', ?)",
            [(numbers[source], numbers[target], not no or no[0]) for source, target, *no in links],
        )
        db.executemany(
            "INSERT INTO mirror (site, main_site, evidence, seen_at) VALUES (?, ?, 'host', 0)", mirrors.items()
        )
    db.close()
    return store


async def ranked(store: SqliteStore, path: Path) -> dict[str, dict[str, Any]]:
    try:
        await rank(store)
        return {row.pop("url"): row for row in await store.query("SELECT * FROM ranks")}
    finally:
        await store.close()


def random_web(chance: random.Random) -> dict[str, Any]:
    """Sites that name each other as main site, pages that name each other as canonical, some of both going round."""
    sites = [f"http://s{n}.test" for n in range(6)]
    urls = [f"{site}/{n}" for site in sites for n in range(6) if chance.random() < 0.8]
    mirrors = {site: chance.choice(sites) for site in sites if chance.random() < 0.4}
    states = {url: chance.choice(["fetched", "fetched", "excluded", "queued", "redirected", "failed"]) for url in urls}
    targets = {url: chance.choice(urls) for url in urls if chance.random() < 0.3}
    links = list({(chance.choice(urls), chance.choice(urls)) for _ in range(120)})
    return {"links": links, "states": states, "targets": targets, "mirrors": mirrors}


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(n, marks=pytest.mark.long) for n in range(12, 40))])
async def test_agrees_with_the_view_and_with_networkx(tmp_path: Path, seed: int) -> None:
    import networkx  # takes a fifth of a second

    path = tmp_path / "c.db"
    store = await store_of(path, **random_web(random.Random(seed)))
    web = networkx.DiGraph([tuple(row.values()) for row in await store.query("SELECT source, target FROM links_glued")])
    graph = await read_graph(store)
    assert graph.in_links.nnz == web.number_of_edges()
    ranks = await ranked(store, path)
    alone = ranks.keys() - web.nodes
    assert web.nodes <= ranks.keys()
    assert all(row["in_links"] == 0 for url, row in ranks.items() if url in alone)
    web.add_nodes_from(alone)
    truth = networkx.pagerank(web, max_iter=1000, tol=1e-13)
    assert {url: row["pagerank"] for url, row in ranks.items()} == pytest.approx(truth, abs=2e-9, rel=0)
    assert {url: row["in_links"] for url, row in ranks.items()} == dict(web.in_degree)
    for url, row in ranks.items():
        assert row["in_sites"] == len({split(source).site for source in web.predecessors(url)})
        assert row["site"] == split(url).site


async def test_links_that_may_not_be_followed_count_nothing(tmp_path: Path) -> None:
    links = [(f"{A}/", f"{A}/x"), (f"{A}/", f"{B}/", False), (f"{A}/", f"{C}/", False)]
    store = await store_of(tmp_path / "c.db", links, states={f"{A}/": "fetched", f"{C}/": "fetched"})
    ranks = await ranked(store, tmp_path / "c.db")
    assert {url: row["in_links"] for url, row in ranks.items()} == {f"{A}/": 0, f"{A}/x": 1, f"{C}/": 0}


async def test_a_page_that_only_mirrors_have_stands_under_their_main_site(tmp_path: Path) -> None:
    """Nobody asked for a's and b's /deep; c was taken up for another page, and does not have that one."""
    links = [("http://hub.test/", f"{A}/deep"), ("http://hub.test/", f"{B}/deep")]
    excluded = {f"{A}/": "excluded", f"{B}/": "excluded"}
    targets = {f"{A}/": f"{C}/", f"{B}/": f"{C}/"}
    store = await store_of(tmp_path / "c.db", links, states=excluded, targets=targets, mirrors={A: C, B: C})
    ranks = await ranked(store, tmp_path / "c.db")
    assert ranks.keys() == {"http://hub.test/", f"{C}/deep"}
    assert ranks[f"{C}/deep"]["in_links"] == 1, "of what has become one page, one link"
    assert ranks[f"{C}/deep"]["site"] == C


async def test_the_representative_stands_for_its_near_duplicates(tmp_path: Path) -> None:
    """X is a canonical duplicate of a's page, which is near y, b's page; what links to one of them links to b's."""
    path, hub, x, y = tmp_path / "c.db", "http://hub.test/", f"{A}/x", f"{A}/y"
    links = [(hub, x), (hub, f"{A}/"), (f"{C}/", y), (x, f"{C}/"), (y, f"{C}/"), (f"{A}/", f"{B}/")]
    store = await store_of(path, links, states=dict.fromkeys([hub, x, y, f"{A}/", f"{B}/"], "fetched"), targets={x: y})
    number = {row["url"]: row["url_id"] for row in await store.query("SELECT url, url_id FROM urls")}
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO body (id, sha256, data) VALUES (1, x'00', x'00')")
        for url in (x, y, f"{A}/", f"{B}/"):
            db.execute(
                "INSERT INTO page (url_id, status, content_type, fetched_at, noindex, nofollow, body_id, body_bytes) "
                "VALUES (?, 200, 'text/html', 0, 0, 0, 1, 1)", [number[url]],
            )  # fmt: skip
            db.execute("INSERT INTO near_duplicate VALUES (?, ?, 0.9)", [number[url], number[f"{B}/"]])
    db.close()
    ranks = await ranked(store, path)
    assert {url: row["in_links"] for url, row in ranks.items()} == {hub: 0, f"{B}/": 3, f"{C}/": 1}


async def test_new_ranks_take_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    store = await store_of(path, [(f"{A}/", f"{A}/x"), (f"{B}/", f"{A}/x")])
    assert await rank(store) == RankingSummary(pages=3, links=2, sites=2)
    with sqlite3.connect(path) as db:
        db.execute(render_keys("DELETE FROM link WHERE site_of(source) = 2"))
    db.close()
    assert await rank(store) == RankingSummary(pages=2, links=1, sites=1)
    pages, sites = await tops(store)
    assert [row["url"] for row in pages] == [f"{A}/x", f"{A}/"]
    assert [row["site"] for row in sites] == [A]
    await store.close()


async def test_a_store_without_urls_has_no_ranks(tmp_path: Path) -> None:
    store = await store_of(tmp_path / "c.db", [])
    assert await ranked(store, tmp_path / "c.db") == {}


async def test_a_link_to_a_url_that_is_not_there_is_told_as_damage(tmp_path: Path) -> None:
    store = await store_of(tmp_path / "c.db", [(f"{A}/", f"{A}/x")])
    with sqlite3.connect(tmp_path / "c.db") as db:
        db.execute("DELETE FROM url WHERE path = '/x'")
    db.close()
    with pytest.raises(StoreError, match="damaged"):
        await ranked(store, tmp_path / "c.db")
