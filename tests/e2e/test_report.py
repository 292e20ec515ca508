"""``crawler report``: one file about a real crawl; in a browser, no text of a crawled site runs or loads anything."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from crawler.cli.shared import store_at
from crawler.demo.pages import Page, plain
from crawler.report.gather import Facts, gather
from crawler.report.rendering import SCRIPT, render
from crawler.settings.stores import open_store
from tests.browser import CHROMIUM, doctor, hostile, in_chromium
from tests.command import HASTY, LOOPBACK, crawler, here
from tests.web import LoopbackWeb


@pytest.fixture
def db(loopback: LoopbackWeb, tmp_path: Path) -> Path:
    """A crawl of two sites that fills every section, with hostile titles."""
    escaped = hostile(loopback.port).replace("&", "&amp;").replace("<", "&lt;")
    links = "".join(f"<a href='{path}'>{path}</a>" for path in ("/p1", "/p2", "/closed/a", "/gone", "/?a='\"><script>"))
    loopback.sites.update(
        {
            "one.test": {
                "/robots.txt": plain("User-agent: *\nDisallow: /closed/\n"),
                "/": Page(f"<title>{escaped}</title>{links}<a href='{loopback.url('two.test')}'>two</a>"),
                "/p1": Page("<p>" * 1000),
                "/p2": Page("<title>two</title>"),
            },
            "two.test": {"/": Page(f"<a href='{loopback.url('one.test')}'>one</a>")},
        }
    )
    (tmp_path / "c.toml").write_text(HASTY)
    seeds = [loopback.url("one.test"), loopback.url("two.test")]
    ended = here("run", *seeds, "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "c.db")
    assert ended.code == 0, ended
    return tmp_path / "c.db"


async def gathered(db: Path) -> Facts:
    store = await open_store(store_at(str(db)), read_only=True)
    try:
        return await gather(store, db.name, 1_900_000_000.0)
    finally:
        await store.close()


def opened(html: Path) -> str:
    """The document after Chromium has run its scripts; Chromium can reach loopback and nothing else."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    options += [f"--user-data-dir={html.parent}/profile", "--virtual-time-budget=3000", "--dump-dom"]
    assert CHROMIUM is not None
    command = [CHROMIUM, *options, html.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def test_the_report_is_one_file_with_the_figures_of_the_crawl(db: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    ended = crawler("report", out, "--db", db)
    assert (ended.code, ended.err) == (0, "")
    assert "5 pages of 2 sites, no violation of politeness" in ended.out
    text = out.read_text()
    assert len(text) < 200_000
    page = LexborHTMLParser(text)
    tiles = {tile.css("span")[0].text(): tile.css("b")[0].text() for tile in page.css(".tile")}
    with sqlite3.connect(db) as store:
        known = dict(store.execute("SELECT state, count(*) FROM url GROUP BY state"))
        requests, links = (store.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("request", "link"))
    store.close()
    assert tiles["pages fetched"] == str(known["fetched"])
    assert tiles["URLs found"] == str(sum(known.values()))
    assert (tiles["requests"], tiles["links"]) == (str(requests), str(links))
    assert "<title>OWNED" not in text
    assert not re.search(r"(?:src|href)=\"(?!#)", text)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("c.db", "c.db: the report is an HTML file; name it like report.html"),
        ("nowhere/r.html", "the folder nowhere does not exist; make it first"),
    ],
)
def test_a_wrong_out_is_refused_and_nothing_is_written(
    db: Path, out: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(db.parent)
    before = {path: path.read_bytes() for path in db.parent.iterdir()}
    ended = here("report", out, "--db", db.name)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert {path: path.read_bytes() for path in db.parent.iterdir()} == before


def test_the_store_itself_is_not_overwritten(db: Path) -> None:
    named = db.rename(db.with_suffix(".html"))
    before = named.read_bytes()
    ended = here("report", named, "--db", named)
    assert (ended.code, named.read_bytes()) == (2, before)
    assert "this is the store itself; name another file" in ended.err


@in_chromium
def test_nothing_of_a_hostile_store_runs_or_loads(db: Path, loopback: LoopbackWeb, tmp_path: Path) -> None:
    doctor(db, hostile(loopback.port))
    asked = len(loopback.log)
    assert here("report", tmp_path / "r.html", "--db", db).code == 0
    page = LexborHTMLParser(opened(tmp_path / "r.html"))
    (title,) = page.css("head > title")
    assert title.text() == "Crawl report: c.db"
    assert page.css("html.scripted")  # our own script has run
    assert len(page.css("script")) == 1
    assert page.css("img, [onload], [onerror]") == []
    assert page.css("body")[0].text().count("document.title='OWNED'") > 20
    assert loopback.log[asked:] == []


@in_chromium
async def test_tables_sort_in_the_browser(db: Path, tmp_path: Path) -> None:
    """The first click sorts numbers downwards and words upwards, the second click the other way round."""
    clicks = """
    const table = [...document.querySelectorAll("table")].find((t) => t.textContent.includes("received"));
    const names = () => [...table.tBodies[0].rows].map((row) => row.cells[0].dataset.v.slice(7, 10)).join();
    const click = (n) => { table.tHead.rows[0].cells[n].firstElementChild.click(); return names(); };
    document.body.dataset.orders = [click(2), click(2), click(0), click(0)].join(" ");
    """
    (tmp_path / "r.html").write_bytes(render(await gathered(db), SCRIPT + clicks))
    body = LexborHTMLParser(opened(tmp_path / "r.html")).body
    assert body is not None
    assert body.attributes["data-orders"] == "one,two two,one one,two two,one"
