"""The link graph, read by networkx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crawler.store.sqlite.store import SqliteStore
from tests.unit.export.conftest import PAGES, A, B, Exporter


@pytest.fixture
def nx() -> Any:
    """Networkx. Loading it takes a third of a second in each process of pytest."""
    import networkx

    return networkx


async def test_graphml_equals_the_store(nx: Any, save: Exporter, store: SqliteStore, tmp_path: Path) -> None:
    out = tmp_path / "links.graphml"
    tally = await save("graphml", out)
    graph = nx.read_graphml(out)
    links = await store.query("SELECT source, target, rel FROM links")
    assert tally.written == len(graph) + graph.number_of_edges()
    url = nx.get_node_attributes(graph, "url")
    found = {(url[source], url[target], data.get("rel", "")) for source, target, data in graph.edges(data=True)}
    assert found == {(link["source"], link["target"], link["rel"]) for link in links}
    assert graph.is_directed()
    nodes = {data.pop("url"): data for _, data in graph.nodes(data=True)}
    assert nodes[f"{A}latin"] == {"title": "日本語", "status": 200}
    assert nodes[f"{A}xml"]["title"] == "]]>&amp;<b a='\">\ufffd\ufffd\ufffd\r\ufffd \U0001f600"
    assert nodes[f"{B}x"] == {}
    assert len(nodes) == len(PAGES) + 2


async def test_the_list_of_edges_equals_the_store(nx: Any, save: Exporter, store: SqliteStore, tmp_path: Path) -> None:
    out = tmp_path / "links.txt"
    await save("edges", out)
    graph = nx.read_edgelist(out, create_using=nx.DiGraph)
    links = await store.query("SELECT source, target FROM links")
    assert set(graph.edges) == {(link["source"], link["target"]) for link in links}


async def test_links_are_chosen_by_their_own_columns(nx: Any, save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "links.graphml"
    await save("graphml", out, where=f"source = '{A}' AND target LIKE '%/plain'")
    assert {data["url"] for _, data in nx.read_graphml(out).nodes(data=True)} == {A, f"{A}plain"}


async def test_duplicates_are_folded_where_asked(nx: Any, save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "links.txt"
    await save("edges", out, table="links_glued")
    nodes = set(nx.read_edgelist(out, create_using=nx.DiGraph))
    assert f"{A}plain" in nodes
    assert f"{A}copy" not in nodes
