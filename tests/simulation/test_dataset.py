"""What commands compute from a dataset: the same as from the store of a plain crawl of the same web."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from crawler.appendix.check import check_appendix
from crawler.appendix.study import Study
from crawler.appendix.write import write_appendix
from crawler.audit.of_dataset import audit_dataset
from crawler.cli.shared import store_at
from crawler.dataset.views import Views
from crawler.demo.pages import Page, Site, plain
from crawler.frontier.sample_design import SampleSettings
from crawler.sampling.of_dataset import draw_sample
from crawler.search.refresh import refresh
from crawler.search.results import search
from crawler.settings.stores import existing_store
from crawler.store.computed import Computed
from tests.reading import TextsInProcess
from tests.simulation.crawls import Options, crawl
from tests.simulation.rounds import SETTINGS, Crawler, hosts_of_buckets
from tests.simulation.web import SimulatedWeb
from tests.unit.duplicates.planted import random_text
from tests.virtual_time import VirtualClock, run_virtual

HOSTS = hosts_of_buckets(3)


def web(clock: VirtualClock) -> SimulatedWeb:
    """Sites with links to one another, and texts of which some are alike, also on two sites."""
    chance = random.Random(7)
    texts = [" ".join(random_text(chance, 60)) for _ in range(6)]
    sites: dict[str, Site] = {}
    for place, host in enumerate(HOSTS):
        links = "".join(f"<a href='http://{to}/{n}'>to {n}</a>" for to in HOSTS for n in range(3))
        pages = {
            f"/{n}": Page(f"<title>x</title><p>{texts[(place + 2 * n) % 6]} {'abc'[place]} {links}") for n in range(3)
        }
        sites[host] = {"/robots.txt": plain(""), "/": Page(links), **pages}
    return SimulatedWeb(clock, sites)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crawled")
    seeds = [f"http://{HOSTS[0]}/"]
    options = Options(politeness=SETTINGS.politeness, identity=SETTINGS.identity)

    async def in_rounds(clock: VirtualClock) -> None:
        crawler = Crawler(clock, web(clock), path)
        crawler.make(seeds, replace(SETTINGS, sample=SampleSettings(size=6, seed=3)))
        await crawler.crawl()

    run_virtual(lambda clock: crawl(clock, path / "plain.db", web(clock), seeds, options))
    run_virtual(in_rounds)
    return path


async def computed(store: Any, db: str) -> tuple[Any, ...]:
    """Near-duplicates, ranks, the index, and hits of searches. The page that stands for a cluster may differ."""
    texts, clusters = TextsInProcess(), defaultdict[str, set[str]](set)
    done = await refresh(db, store, texts)
    assert len([*groupby(texts.sites)]) == len(set(texts.sites)), "one site after the other"
    assert await refresh(db, store, texts) == {}, "nothing is behind"
    for row in await store.query("SELECT url, representative FROM near_duplicates"):
        clusters[row["representative"]].add(row["url"])
    results = [await search(store, db, words, now=2e9) for words in ("to", "x", "-to x")]
    hits = [(result.note, result.total, sorted(hit.similar for hit in result.hits)) for result in results]
    return done, {frozenset(urls) for urls in clusters.values()}, hits


async def test_what_a_search_needs_is_computed_from_a_dataset_as_from_a_store(folder: Path) -> None:
    async with existing_store(store_at(str(folder / "plain.db")), read_only=False) as store:
        of_store = await computed(store, str(folder / "plain.db"))
    with Views(str(folder / "data"), computes=True) as views:
        of_dataset = await computed(views, str(folder / "data"))
    assert of_dataset == of_store
    done, clusters, hits = of_store
    assert len(clusters) > 1
    assert done[Computed.INDEX].changed == 10
    assert hits[0][:2] == ("", 10)


async def test_the_appendix_of_a_dataset_has_its_sample_and_its_log(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "appendix"
    with Views(str(folder / "data")) as views:
        await draw_sample(views)
        await write_appendix(views, out, Study(variables={"chars": "length(title)"}), now=2e9, judge=audit_dataset)  # type: ignore[arg-type]
        judged = (await views.counts()).requests
    checks = {check.title: (check.judged, check.faults) for check in check_appendix(out)}
    assert [faults for _, faults in checks.values() if faults] == []
    assert f"{judged} requests" in [what for what, _ in checks.values()]
    tables = {path.stem: path.read_text().splitlines() for path in (out / "tables").glob("*.csv")}
    assert [len(tables[name]) - 1 for name in ("draws", "frame", "design", "pages")] == [6, 10, 1, 10]
