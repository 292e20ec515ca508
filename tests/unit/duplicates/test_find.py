"""Clusters of near-duplicates in stores of both kinds."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from pathlib import Path

import pytest

from crawler.duplicates import texts
from crawler.duplicates.find import DisjointSets, DuplicatesSummary, find_duplicates
from crawler.page.texts import MainText
from crawler.reasons import Reason, ReasonCode
from crawler.sampling.variables import values_of
from crawler.store.bodies import compress
from tests.unit.duplicates.planted import TEMPLATES, edited, random_text, similarity
from tests.unit.search.crawled import Crawled, Said, crawled

A, B = "http://a.test", "http://b.test"


async def clusters(crawl: Crawled) -> set[frozenset[str]]:
    found = defaultdict(set)
    for url, representative in await crawl.rows("SELECT url, representative FROM near_duplicates"):
        found[representative].add(url)
    assert all(representative in urls for representative, urls in found.items())
    return {frozenset(urls) for urls in found.values()}


async def find(crawl: Crawled) -> DuplicatesSummary:
    return await find_duplicates(crawl.harness.store, crawl.texts)


def said(chance: random.Random, count: int = 80) -> list[str]:
    return random_text(chance, count)


@pytest.mark.parametrize("kind", TEMPLATES)
async def test_planted_pairs_are_found_and_pages_with_a_common_template_are_not(kind: str, tmp_path: Path) -> None:
    chance, make = random.Random(kind), TEMPLATES[kind]
    pages: dict[str, Said | str] = {}
    pairs: list[tuple[str, str, float]] = []
    for n in range(30):
        text = said(chance, chance.choice((25, 60, 200)))
        pages[f"{A}/{n}"] = Said(make(f"Page {n}", " ".join(text)))
        if n < 20:
            other = edited(chance, text, len(text) // 50)
            pages[f"{A}/other/{n}"] = Said(make(f"Page {n}", " ".join(other)))
            pairs.append((f"{A}/{n}", f"{A}/other/{n}", similarity(text, other)))
    async with crawled(str(tmp_path / "c.db")) as crawl:
        await crawl.visit(pages)
        summary = await find(crawl)
        found = await clusters(crawl)
    assert summary.read == summary.pages == 50
    planted = {frozenset(pair) for *pair, alike in pairs if alike >= 0.85}
    assert len(planted) > 10
    assert len(planted & found) >= 0.95 * len(planted)
    assert found <= {frozenset(pair) for *pair, _ in pairs}


async def test_a_cluster_has_its_best_page_and_the_similarity_to_it(crawl: Crawled) -> None:
    chance = random.Random(1)
    text = said(chance)
    other = edited(chance, text, 1)
    await crawl.visit({f"{A}/": Said("start", links={f"{B}/": "far"})})
    await crawl.visit({f"{A}/long/path": Said(" ".join(text)), f"{B}/": Said(" ".join(other)), f"{B}/x": Said("x")})
    assert await find(crawl) == DuplicatesSummary(pages=4, read=4, clusters=1, duplicates=2)
    rows = await crawl.rows("SELECT url, representative, similarity, site FROM near_duplicates ORDER BY url")
    alike = pytest.approx(similarity(text, other))
    assert rows == [(f"{A}/long/path", f"{B}/", alike, A), (f"{B}/", f"{B}/", 1.0, B)]
    assert 0.8 <= similarity(text, other) < 1
    number = await crawl.harness.store.find(f"{B}/")
    assert dict(await crawl.rows("SELECT url, cluster_id FROM pages")) == {
        f"{A}/": None, f"{A}/long/path": number, f"{B}/": number, f"{B}/x": None,
    }  # fmt: skip


async def test_pages_that_differ_in_title_are_no_near_duplicates(crawl: Crawled) -> None:
    """Titles count as they are written, so operators differ; what the titles of a site have in common does not."""
    text = " ".join(said(random.Random(1)))
    await crawl.visit({f"{A}/{n}": Said(" ".join(said(random.Random(f"{n}"))), f"Page {n} - A") for n in range(9)})
    await crawl.visit({f"{B}/{n}": Said(" ".join(said(random.Random(f"b{n}"))), f"B: page {n}") for n in range(9)})
    await crawl.visit({
        f"{A}/plus": Said(text, "Operator + - A"), f"{A}/minus": Said(text, "Operator * - A"),
        f"{B}/plus": Said(text, "B: operator +"), f"{A}/print": Said(text, "Operator + (print) - A"),
    })  # fmt: skip
    untranslated = " ".join(said(random.Random(2)))
    await crawl.visit({
        f"{A}/{language}": Said(f"<html lang={language}><p>{untranslated}", title)
        for language, title in (("en", "Overview"), ("de", "Überblick"))
    })  # fmt: skip
    await find(crawl)
    alike = {frozenset({f"{A}/plus", f"{B}/plus", f"{A}/print"}), frozenset({f"{A}/en", f"{A}/de"})}
    assert await clusters(crawl) == alike, "the titles of two languages are not compared"


async def test_pages_about_different_things_are_no_near_duplicates(crawl: Crawled) -> None:
    """A word that one text has in every paragraph, and the other never. A number is no such word."""
    for seed, things in ((0, ("Panel", "Label")), (4, ("2021", "2022"))):
        parts = [" ".join(said(random.Random(seed + n), 60)) for n in range(4)]
        await crawl.visit({f"{A}/{thing}": Said("".join(f"<p>{thing} {part}" for part in parts)) for thing in things})
    await find(crawl)
    assert await clusters(crawl) == {frozenset({f"{A}/2021", f"{A}/2022"})}


async def test_a_page_with_another_title_is_compared_again(crawl: Crawled) -> None:
    text = " ".join(said(random.Random(1)))
    await crawl.visit({f"{A}/{n}": Said(f"{text}<!-- {n} -->", "One") for n in range(2)})
    assert (await find(crawl)).duplicates == 2
    assert (await find(crawl)).read == 0
    await crawl.change("UPDATE page SET title = 'Two' WHERE url_id = (SELECT max(url_id) FROM page)")
    assert (await find(crawl)).duplicates == 0


async def test_the_cluster_is_a_variable_of_samples(crawl: Crawled) -> None:
    """The expressions of docs/duplicates.md."""
    text = " ".join(said(random.Random(1)))
    pages = [f"{A}/", f"{A}/copy", f"{A}/other"]
    await crawl.visit({url: Said("other" if url.endswith("other") else text) for url in pages})
    await find(crawl)
    documented = Path("docs/duplicates.md").read_text()
    expected: dict[str, list[object]] = {"copied": [1, 1, 0], "distinct": [0.5, 0.5, 1]}
    for name, values in expected.items():
        expression = documented.partition(f"{name}=")[2].partition('"')[0].replace("\n", " ")
        found = await values_of(crawl.harness.store, expression, name, await numbers(crawl, *pages), 0)
        assert [found[number] for number in await numbers(crawl, *pages)] == values


async def test_equal_texts_are_one_cluster_whatever_is_around_them(crawl: Crawled) -> None:
    text = " ".join(said(random.Random(1)))
    await crawl.visit({
        f"{A}/?session={n}": Said(f"<nav>{n}</nav><main>{text}</main><!-- {n} -->") for n in range(12)
    })  # fmt: skip
    summary = await find(crawl)
    assert (summary.clusters, summary.duplicates) == (1, 12)
    assert await crawl.rows("SELECT DISTINCT similarity FROM near_duplicates") == [(1.0,)]


async def test_short_texts_and_pages_without_text_are_alone(crawl: Crawled) -> None:
    await crawl.visit({
        **{f"{A}/{n}": Said("<p>Not found, please try again") for n in range(3)},
        **{f"{A}/empty/{n}": Said(f"<script>{n}</script>") for n in range(3)},
    })  # fmt: skip
    assert (await find(crawl)).clusters == 0


async def test_noindex_pages_and_pages_that_are_gone_are_not_compared(crawl: Crawled) -> None:
    text = " ".join(said(random.Random(1)))
    await crawl.visit({f"{A}/": Said(text), f"{A}/no": Said(text, noindex=True), f"{A}/gone": Said(text)})
    await crawl.change("UPDATE page SET gone_at = 1 WHERE url_id = (SELECT id FROM url WHERE path = '/gone')")
    assert await find(crawl) == DuplicatesSummary(1, 1, 0, 0)
    assert await clusters(crawl) == set()


async def test_a_page_that_has_become_noindex_is_not_shown_before_the_next_call(crawl: Crawled) -> None:
    text = " ".join(said(random.Random(1)))
    await crawl.visit({f"{A}/": Said(text), f"{A}/x": Said(text)})
    await find(crawl)
    await crawl.change(
        "UPDATE page SET noindex = 1, body_id = NULL WHERE url_id = (SELECT id FROM url WHERE path = '/x')"
    )
    assert await crawl.rows("SELECT url FROM near_duplicates") == [(f"{A}/",)]
    assert (await find(crawl)).clusters == 0
    assert await crawl.rows("SELECT url_id FROM near_duplicates_by_id") == []


async def rewrite(crawl: Crawled, url: str, text: str) -> None:
    """Give a page another body, as a revisit does."""
    body = text.encode()
    await crawl.change("INSERT INTO body (sha256, data) VALUES (?, ?)", hashlib.sha256(body).digest(), compress(body))
    ((number,),) = await crawl.rows("SELECT max(body_id) FROM bodies_by_id")
    await crawl.change("UPDATE page SET body_id = ? WHERE url_id = ?", number, await crawl.harness.store.find(url))


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates are read from 40 pages of a site."""
    monkeypatch.setattr(texts, "_SAMPLE", 40)


def changing_web(chance: random.Random) -> list[dict[str, str]]:
    """Three states of a site of 60 pages, more than its template is read from; 40 of them are in pairs."""
    make = TEMPLATES["forum"]
    contents = [said(chance, 120) for _ in range(40)]
    contents += [edited(chance, text, 1) for text in contents[:20]]
    states = []
    for changes in (0, 3, 15):
        for n in chance.sample(range(60), changes):
            contents[n] = edited(chance, contents[n - 20] if n >= 40 else contents[n], 1)
        states.append({f"{A}/{n}": make(f"{n}", " ".join(text)) for n, text in enumerate(contents)})
    return states


@pytest.mark.usefixtures("small_sample")
async def test_a_second_call_finds_what_a_first_one_would(crawl: Crawled) -> None:
    first, *later = changing_web(random.Random(5))
    await crawl.visit({url: Said(text) for url, text in first.items()})
    assert (await find(crawl)).read == 60
    assert (await find(crawl)).read == 0
    now = first
    for state in later:
        for url, text in state.items():
            if text != now[url]:
                await rewrite(crawl, url, text)
        now = state
        await find(crawl)
        kept = await crawl.rows("SELECT url_id, cluster_id, similarity FROM near_duplicates ORDER BY url_id")
        signatures = await crawl.rows("SELECT * FROM text_signatures_by_id ORDER BY url_id")
        await crawl.change("DELETE FROM text_signature")
        assert (await find(crawl)).read == 60
        assert kept == await crawl.rows("SELECT url_id, cluster_id, similarity FROM near_duplicates ORDER BY url_id")
        assert signatures == await crawl.rows("SELECT * FROM text_signatures_by_id ORDER BY url_id")
        assert len(await clusters(crawl)) > 10


async def numbers(crawl: Crawled, *urls: str) -> list[int]:
    known = dict(await crawl.rows("SELECT url, url_id FROM urls"))
    return [known[url] for url in urls]


@pytest.mark.usefixtures("small_sample")
async def test_only_changed_pages_are_read_unless_the_template_changes(crawl: Crawled) -> None:
    """A change in one of the first pages has these read; only one in many of them changes the template."""
    first, *_ = changing_web(random.Random(5))
    await crawl.visit({url: Said(text) for url, text in first.items()})
    await find(crawl)
    in_order = [url for (url,) in await crawl.rows("SELECT url FROM urls ORDER BY url_id")]
    for urls, read in ((in_order[50:51], 1), (in_order[:1], 40), (in_order[:12], 60)):
        for url in urls:
            await rewrite(crawl, url, first[url].replace("Welcome", f"Hello {len(urls)}"))
        assert (await find(crawl)).read == read


async def test_what_an_interrupted_call_has_committed_is_not_read_again(
    crawl: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "_PAGES_AT_ONCE", 20)
    chance = random.Random(5)
    await crawl.visit({f"http://s{n}.test/": Said(" ".join(said(chance))) for n in range(60)})

    def stop(what: str, done: int, total: int) -> None:
        assert total == 60
        if done == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await find_duplicates(crawl.harness.store, crawl.texts, stop)
    assert (await find(crawl)).read == 20


async def test_forgotten_pages_leave_their_cluster(crawl: Crawled) -> None:
    chance = random.Random(1)
    text = said(chance)
    copies = {f"{A}/{'x' * n}": Said(" ".join(edited(chance, text, 1 if n else 0))) for n in range(3)}
    await crawl.visit({**copies, f"{B}/": Said("other")})
    await find(crawl)
    assert await clusters(crawl) == {frozenset(copies)}
    store = crawl.harness.store
    await store.maintenance.forget(await numbers(crawl, f"{A}/x"), Reason(ReasonCode.FORGOTTEN, ""))
    await store.maintenance.sweep_forgotten()
    assert await clusters(crawl) == {frozenset({f"{A}/", f"{A}/xx"})}
    await store.maintenance.forget(await numbers(crawl, f"{A}/"), Reason(ReasonCode.FORGOTTEN, ""))
    await store.maintenance.sweep_forgotten()
    assert await clusters(crawl) == set(), "one is left, alone"
    await store.maintenance.forget(await numbers(crawl, f"{A}/xx"), Reason(ReasonCode.FORGOTTEN, ""))
    await store.maintenance.sweep_forgotten()
    for view in ("text_signatures_by_id", "site_templates_by_id"):
        assert await crawl.rows(f"SELECT DISTINCT s.site FROM {view} JOIN sites_by_id s USING (site_id)") == [(B,)]
    await store.requeue(await numbers(crawl, *copies))
    await crawl.visit(dict(copies))
    await find(crawl)
    assert await clusters(crawl) == {frozenset(copies)}


async def test_a_large_bucket_takes_few_comparisons(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of one cluster are read twice at most: to join them, and for their similarity to its best page."""
    chance = random.Random(1)
    text = said(chance, 300)
    sites = [f"http://s{n}.test/" for n in range(40)]
    await crawl.visit({site: Said(" ".join(edited(chance, text, 1))) for site in sites})
    read = 0
    original = texts.text_of

    def counted(title: str | None, text: MainText) -> texts.Text:
        nonlocal read
        read += 1
        return original(title, text)

    monkeypatch.setattr(texts, "text_of", counted)
    assert (await find(crawl)).duplicates == 40
    assert read <= 40 + 2 * 40 + 16


def test_disjoint_sets() -> None:
    sets = DisjointSets()
    for pair in ((5, 3), (9, 7), (3, 7), (1, 2)):
        sets.join(*pair)
    assert [sets.find(n) for n in (3, 5, 7, 9)] == [3] * 4
    assert (sets.find(2), sets.find(4)) == (1, 4)
    assert sorted(sets) == [1, 2, 3, 5, 7, 9]
