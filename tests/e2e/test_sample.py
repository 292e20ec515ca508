"""``crawler run --sample``: what is drawn, what is requested, and what the estimates say, seen from the server too."""

from __future__ import annotations

import random
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

import crawler as package
from crawler.demo.pages import Asked, Fault, Handler, Page, Site, plain
from crawler.errors import UsageError
from crawler.sampling import load
from tests import kill
from tests.command import here, until
from tests.later import later
from tests.sampled import FRAME, LEAVES, NEARER, PATHS, SITES, Sampled, asked, by_what, three_sites, urls
from tests.web import LoopbackWeb

#: By what they draw.
DESIGNS: dict[str, tuple[str, ...]] = {
    "of all that is there": ("--sample", "7"),
    "of each site, leaves held back": ("--sample", "4", "--per", "site", "--max-depth", "2"),
    "random walk": ("--sample", "40", "--method", "random-walk", "--max-depth", "2"),
    "random walk in each site": ("--sample", "9", "--method", "random-walk", "--per", "site"),
}


@pytest.fixture(scope="module")
def standing() -> Iterator[LoopbackWeb]:
    """The three sites, which stay as they are."""
    with three_sites() as web:
        yield web


# --- what is drawn --------------------------------------------------------------------------------


def test_the_deepest_pages_are_requested_only_if_drawn(web: LoopbackWeb, store: Sampled) -> None:
    said = store.crawl("--sample", "5", "--per", "site", "--max-depth", "2")
    assert (said["frame"], said["urls"], said["waiting"]) == (3 * FRAME, 15, 0)
    drawn = store.draws("url, probability, state, reason")
    assert {probability for _, probability, *_ in drawn} == {5 / FRAME}
    assert {state for *_, state, _ in drawn} <= {"fetched", "failed", "excluded"}
    closed = {url: reason for url, *_, reason in drawn if "/closed/" in url}
    assert {reason.partition(":")[0] for reason in closed.values()} <= {"robots"}
    assert asked(web) == urls(web, NEARER) | (store.drawn() - closed.keys())
    left = next(url for path in PATHS if (url := web.url("a.test", path)) not in store.drawn())
    assert "sample: not drawn" in store.ask(f"why {left}").out


@pytest.mark.parametrize("design", DESIGNS)
def test_a_sample_is_told_again_and_no_order_of_seeds_and_answers_changes_it(
    design: str, web: LoopbackWeb, tmp_path: Path
) -> None:
    first, second = Sampled(web, tmp_path / "1"), Sampled(web, tmp_path / "2")
    told = first.run(*DESIGNS[design]).out.partition("Sample:")[2]
    before = len(web.log)
    assert first.run(*DESIGNS[design]).out.partition("Sample:")[2] == told != ""
    assert len(web.log) == before
    assert not re.search(r"\b0 (URL|site|page)s\b", told), "a limitation is told that the sample does not have"
    web.sites.update({host: shuffled(web.sites[host]) for host in SITES})
    second.crawl(*DESIGNS[design], seeds=SITES[::-1])
    assert second.draws() == first.draws()


def shuffled(site: Site) -> Site:
    """The site, whose answers come in another order."""
    return {
        path: Page(page.body, delay_s=random.random() / 50)
        if isinstance(page, Page) and path != "/robots.txt" else page
        for path, page in site.items()
    }  # fmt: skip


def test_sitemaps_make_a_frame(web: LoopbackWeb, tmp_path: Path) -> None:
    listed = "".join(f"<url><loc>{web.url('a.test', PATHS[n])}</loc></url>" for n in (1, 2, 3, 4, 7, 8, 9))
    text = f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{listed}</urlset>"
    web.sites["a.test"] = {**web.sites["a.test"], "/sitemap.xml": Page(text, content_type="text/xml")}
    store = Sampled(web, tmp_path, "[discovery]\nsitemaps = true\n")
    said = store.crawl("--sample", "2", "--max-depth", "1", seeds=["a.test"])
    assert (said["urls"], said["frame"]) == (2, 11)
    assert len(web.hits("a.test")) <= 6, "robots.txt, the sitemap, a path that cannot exist, the start page, two drawn"


# --- crawls that are killed -----------------------------------------------------------------------


class Rationed:
    """Sites of which each answers a few requests, and then none until it gets the next ration."""

    def __init__(self) -> None:
        self._left = dict.fromkeys(SITES, 0)

    def give(self, answers: int) -> None:
        """Let each site answer so many requests from now on."""
        self._left = dict.fromkeys(SITES, answers)

    def site(self, pages: Site) -> Site:
        """The site with the same answers. A request beyond the ration waits until the client leaves."""
        answers = {path: self._rationed(page) for path, page in pages.items() if isinstance(page, Page)}
        return {"*": self._rationed(Page("missing", status=404)), **answers}

    def _rationed(self, page: Page) -> Handler:
        def answer(asked: Asked) -> Page:
            self._left[asked.host] -= 1
            return page if self._left[asked.host] >= 0 else Page(fault=Fault.HANG)

        return answer


@pytest.mark.parametrize("seed", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_a_crawl_killed_again_and_again_gives_the_same_sample(web: LoopbackWeb, tmp_path: Path, seed: str) -> None:
    whole, killed = Sampled(web, tmp_path / "whole"), Sampled(web, tmp_path / "killed")
    options = ("--sample", "6", "--per", "site", "--max-depth", "2", "--seed", seed)
    whole.crawl(*options)
    sites, rationed = dict(web.sites), Rationed()
    web.sites.update({host: rationed.site(pages) for host, pages in sites.items()})
    for _ in range(3):
        # First robots.txt, a path that cannot exist, the start page and a hub. In the third run the frame must get
        # whole, also if the second one has stored only one of the other hubs: the other sites wait for it.
        rationed.give(answers=4)
        before = killed.answered()
        process = kill.start(list(map(str, killed.command(*options))), tmp_path / "said")
        # The third death of a worker in the same URL would fail that URL, so each run stores a page of each site.
        until(lambda old=before: len(killed.answered() - old) == len(SITES), "a page of each site")
        process.kill()
        assert process.wait() == -signal.SIGKILL
    web.sites.update(sites)
    killed.crawl(*options)
    assert killed.draws() == whole.draws()
    states = "SELECT url, state, reason, depth FROM urls ORDER BY url"
    assert killed.query(states) == whole.query(states)


# --- what the estimates say -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(standing: LoopbackWeb, tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """A sample of the whole frame, each figure of which is exact."""
    store = Sampled(standing, tmp_path_factory.mktemp("everything"))
    assert store.crawl("--sample", "1000", "--max-depth", "2")["urls"] == 3 * FRAME
    return store


CLOSED = 5  # of each site: 0, 6, 12, 18 and 24
MISSING = 5  # of each site: 5, 10, 15, 20 and 25; 0 is closed too
ASKED = FRAME - CLOSED
ANSWERED = ASKED - MISSING
SHARES = {
    "disallowed by robots.txt": CLOSED / FRAME,
    "answer 404": MISSING / ASKED,
    "answer 200": ANSWERED / ASKED,
    "language en": len(NEARER) / ANSWERED,
    "language de": 1 / ANSWERED,
    "language fr": (LEAVES - CLOSED - MISSING) / ANSWERED,
}
TOTALS = {
    "disallowed by robots.txt": 3 * CLOSED,
    "answer 404": 3 * MISSING,
    "language fr": 3 * (LEAVES - CLOSED - MISSING),
}


def test_the_estimates_of_the_whole_frame_are_exact(everything: Sampled) -> None:
    found = by_what(everything.sample())
    for what, share in SHARES.items():
        assert (found[what]["low"], found[what]["high"]) == pytest.approx((share, share)), what
    for what, number in TOTALS.items():
        total = found[what]["total"]
        assert (total["low"], total["value"], total["high"]) == pytest.approx((number,) * 3), what
    ((mean, octets),) = everything.query("SELECT avg(body_bytes), sum(body_bytes) FROM pages")
    assert found["size"]["value"] == pytest.approx(mean)
    total = found["size"]["total"]
    assert (total["low"], total["value"], total["high"]) == pytest.approx((octets,) * 3)
    assert found["links per page"]["units"] == 3 * ANSWERED


async def test_a_sample_from_python(web: LoopbackWeb, tmp_path: Path) -> None:
    settings = {
        "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True, "politeness.delay": 0.01,
        "sample.size": 2, "sample.method": "stratified",
    }  # fmt: skip
    seeds = {web.url("a.test"): "one", web.url("b.test"): "two", web.url("b.test", "/1"): "two"}
    async with package.open(tmp_path / "s.db", settings) as crawl:
        with pytest.raises(UsageError, match="no such store"):
            await crawl.sample()
        pages = [page.url async for page in crawl.run(seeds)]
        survey = await crawl.sample()
    assert len(pages) == 2
    assert (survey.urls, survey.draw.frame) == (2, 3)
    assert next(figure.estimate.value for figure in survey.figures if figure.what == "answer 200") == 1


def test_the_estimates_are_published_as_a_figure_and_a_table(everything: Sampled, tmp_path: Path) -> None:
    figure, table = tmp_path / "estimates.svg", tmp_path / "estimates.csv"
    only = ("--only", "links per", "--only", "answer 404 (URLs")
    written = everything.ask("sample", "--out", figure, "--out", table, *only)
    assert (written.code, written.err) == (0, f"crawler: {figure}: 2 estimates\ncrawler: {table}: 2 estimates\n")
    assert b"links per page" in figure.read_bytes()
    rows = [line.partition(",")[0] for line in table.read_text().splitlines()]
    assert rows == ["quantity", "answer 404", "links per page", "total: answer 404", "total: links"]
    refused = everything.ask("sample", "--only", "such")
    assert (refused.code, "no estimate is named so" in refused.err) == (2, True)


# --- two stages -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sampled]:
    """Five pages of each of two sites, which are drawn by their sizes."""
    with three_sites() as web:
        store = Sampled(web, tmp_path_factory.mktemp("staged"))
        stages = ("--per", "site", "--sample-sites", "2", "--sample-sites-by", "size")
        said = store.crawl("--sample", "5", *stages, "--max-depth", "2")
        assert (said["frame"], said["urls"], said["sites"], said["sites_by"]) == (3 * FRAME, 10, 2, "size")
        yield store


def sites_of(store: Sampled) -> set[str]:
    return {site for (site,) in store.draws("site")}


def test_sites_are_drawn_and_then_pages_of_these(staged: Sampled) -> None:
    sites = sites_of(staged)
    assert len(sites) == 2
    drawn = set(staged.draws("site, stratum, probability, site_probability"))
    assert drawn == {(site, site, 2 / 3 * (5 / FRAME), 2 / 3) for site in sites}
    pages = {url for url in staged.drawn() if "/closed/" not in url}
    assert asked(staged.web) == urls(staged.web, NEARER) | pages
    assert staged.ask("audit").code == 0
    told = staged.ask("sample").out
    assert "uniform, 5 of each of 2 sites drawn in proportion to their size, seed 1: 10 URLs of 105" in told


def test_each_drawn_site_has_estimates_of_its_own(staged: Sampled) -> None:
    found = staged.sample("--variable", "large=body_bytes > 1000", "--by", "site")["estimates"]
    large = {each["among"]: each for each in found if each["what"] == "large"}
    assert large.keys() == {"pages"} | {f"pages on site {site}" for site in sites_of(staged)}
    for site in sites_of(staged):
        assert large[f"pages on site {site}"]["standard_error"] is not None
        answers = [each for each in found if each["among"] == f"URLs that may be asked for on site {site}"]
        assert sum(each["value"] for each in answers) == pytest.approx(1)
        closed = next(each for each in found if each["among"] == f"URLs on site {site}")
        total = sum(each["total"]["value"] for each in answers)
        assert total == pytest.approx(FRAME - closed["total"]["value"])


# --- runs that would drop the sample --------------------------------------------------------------


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sampled]:
    """Three pages of each site, drawn at a depth of 2. No later command requests anything."""
    with three_sites() as web:
        store = Sampled(web, tmp_path_factory.mktemp("held"))
        store.crawl("--sample", "3", "--per", "site", "--max-depth", "2")
        before = len(web.log)
        yield store
        assert len(web.log) == before
        assert store.audit_of_sample()["violations"] == 0


def test_a_run_with_seeds_that_would_drop_the_sample_is_refused(held: Sampled) -> None:
    refused = held.run("--sample", "3", "--per", "site", "--max-depth", "3")
    assert refused.code == 2
    assert "--sample 3 --per site --max-depth 2), or name another store with --db" in refused.err


@pytest.mark.parametrize(
    "options", [("--sample", "0"), ("--sample", "0", "--refresh"), ("--max-depth", "3")], ids=" ".join
)
def test_a_run_without_seeds_that_would_drop_the_sample_is_refused(held: Sampled, options: tuple[str, ...]) -> None:
    assert held.ask("run", *options, "--no-progress").code == 2


def test_a_run_with_the_same_design_or_without_options_goes_on(held: Sampled) -> None:
    for options in ((), ("--max-depth", "2"), ("--sample", "3", "--per", "site", "--max-depth", "2")):
        assert held.run(*options).code == 0
    assert held.ask("run", "--no-progress").code == 0


def test_the_audit_judges_requests_of_a_run_that_had_dropped_the_sample(
    web: LoopbackWeb, store: Sampled, tmp_path: Path
) -> None:
    with mock.patch("crawler.session.crawl_session.require_draw_kept"):  # as before such runs were refused
        store.crawl("--sample", "3", "--per", "site", "--max-depth", "2")
        before = len(web.log)
        leaf = next(url for n in (1, 2, 3, 4) if (url := web.url("a.test", PATHS[n])) not in store.drawn())
        assert here("run", leaf, *store.command()[1:], "--sample", "0", "--max-depth", "-1").code == 0
    dropped = asked(web, before) - {web.url("a.test", "/deep")}  # near to the new seed, and not known to the draw
    assert leaf in dropped
    assert store.audit_of_sample()["violations"] == len(dropped)
    folder = tmp_path / "appendix"
    assert store.ask("export appendix", folder).code == 0
    assert f"The audit found {len(dropped)} violations" in (folder / "README.md").read_text()
    assert here("audit", folder).code == 1


# --- revisits -------------------------------------------------------------------------------------


def publish_many(web: LoopbackWeb, start: str = "", *more: str) -> None:
    """A site of a start page and forty others."""
    links = "".join(f"<a href=/{name}>{name}</a>" for name in (*map(str, range(40)), *more))
    pages: dict[str, Page] = {f"/{n}": Page(f"{n}") for n in range(40)}
    web.sites["many.test"] = {**pages, "/robots.txt": plain(""), "/": Page(start + links)}


def test_a_revisit_requests_nothing_that_was_not_drawn_and_the_audit_would_find_it(
    web: LoopbackWeb, tmp_path: Path
) -> None:
    publish_many(web)
    store = Sampled(web, tmp_path, "[revisit]\nfirst = 3600\nmin_interval = 360\nmax_interval = 7200\n")
    options = ("--max-depth", "1", "--sample", "5", "--per", "site")
    store.crawl(*options, seeds=["many.test"])
    first, before, drawn = asked(web), len(web.log), store.drawn()
    publish_many(web, "changed ", "new")
    later(store.db, 4000)
    store.crawl(*options, "--revisit", seeds=["many.test"])
    assert web.url("many.test") in asked(web, before)
    assert asked(web) == first
    left_out = store.query("SELECT count(*) FROM urls WHERE reason_code = 'sample'")
    assert left_out == [(42 - len({web.url("many.test"), *drawn}),)]
    assert store.ask("audit").code == 0
    store.change(  # as if the first run had drawn another page
        "DELETE FROM sample WHERE url_id NOT IN (SELECT url_id FROM urls WHERE depth = 0)",
        "UPDATE sample_draw SET drawn_at = 0",
    )
    check = store.audit_of_sample()
    assert check["violations"] >= len(drawn - {web.url("many.test")})
    assert check["found"][0]["done"] == "asked for, though not drawn"


# --- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--sample", "5", "--max-pages", "9"), "--max-depth"),
        (("--sample", "5", "--method", "stratified"), "in --seeds"),
        (("--sample", "5", "--method", "stratified", "--seeds", "-"), "has no stratum"),
        (("--sample", "-1"), "whole number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(web: LoopbackWeb, store: Sampled, options: tuple[str, ...], said: str) -> None:
    ended = store.run(*options, stdin=b"1,a.test\n")
    assert ended.code == 2
    assert said in ended.err
    assert web.log == []
    assert not store.db.exists()


def test_a_missing_library_is_named_with_the_extra(web: LoopbackWeb, store: Sampled) -> None:
    load("survey")  # numpy cannot be loaded a second time
    loaded = [
        name for name in sys.modules if name.startswith(("scipy", "crawler.sampling.", "crawler.sampling.estimators"))
    ]
    with mock.patch.dict(sys.modules):
        for name in loaded:
            del sys.modules[name]
        sys.modules["scipy"] = None  # type: ignore[assignment]  # as if it were not installed
        ended = store.run("--sample", "5")
    assert ended.code == 2
    assert (
        ended.err
        == "crawler: a sample needs scipy; install the extra 'sample' from the clone: pip install '.[sample]'\n"
    )
    assert web.log == []
