"""`crawler serve-search`: for people and programs, with texts of strangers, behind a proxy, and in a browser."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.browser import browser_page, hostile, in_chromium
from tests.command import finish, here, start
from tests.unit.search.crawled import Said, crawled

A = "http://a.test"


class SearchPage:
    """A running ``crawler serve-search``."""

    def __init__(self, db: Path, *options: str) -> None:
        self.process = start("serve-search", "--db", db, "--listen", "127.0.0.1:0", *options)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "http://" in line, self.process.communicate()
        self.url = line.split(": ", 1)[1].strip()
        self.port = urlsplit(self.url).port or 0

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode(), response
        finally:
            connection.close()


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an index of 25 pages about needles, the first of which is written by a stranger with bad intent."""
    path = tmp_path_factory.mktemp("served") / "crawl.db"

    async def fill() -> None:
        async with crawled(str(path)) as crawl:
            evil = hostile(1)
            pages: dict[str, Said | str] = {
                f"{A}/{n}": Said(f"<html lang=en><h1 id='s{n}'>Part {n}</h1><p>needle {n}", f"Needle {n}")
                for n in range(24)
            }
            text = evil.replace("<", "&lt;")
            pages[f"{A}/evil"] = Said(f"<h1 id='&quot;&gt;{quote(evil)}'>{text}</h1><p>thread {text}", evil + "thread")
            await crawl.indexed(pages)

    asyncio.run(fill())
    return path


@pytest.fixture(scope="module")
def page(db: Path) -> Iterator[SearchPage]:
    """One server for all tests, which only reads the store and ends when it is told to."""
    before = db.read_bytes()
    shown = SearchPage(db, "--title", "Our <manuals>", "--base-url", "https://search.example/find/")
    try:
        yield shown
        shown.process.send_signal(signal.SIGTERM)
        assert finish(shown.process).code == 0
    finally:
        if shown.process.poll() is None:
            shown.process.kill()
            shown.process.communicate()
    assert db.read_bytes() == before


def test_a_page_that_needs_no_script_and_trusts_no_host(page: SearchPage) -> None:
    assert page.ask("/?q=needle", Host="evil.example")[0] == 403
    status, html, response = page.ask("/?q=needle", Host="search.example", **{"X-Forwarded-Host": "evil.example"})
    assert (status, html.count("<h2><a"), html.count("<h1>")) == (200, 10, 1)
    assert "search.example" not in html
    assert "evil.example" not in html
    assert "127.0.0.1" not in html
    assert html.count("<script") == 1
    assert "24 pages with all the words" in html
    assert '<a rel="next" href="?q=needle&amp;page=2">' in html
    assert 'href="?q=needle&amp;page=3"' in html
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src 'sha256-" in policy
    assert response.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert page.ask("/find/?q=needle")[0] == 200, "a proxy may keep the path"
    assert page.ask("/?q=needle&page=3")[1].count("<h2><a") == 4
    assert "Nothing was found with these filters" in page.ask("/?q=needle&language=xx")[1]
    assert "Disallow: /" in page.ask("/robots.txt")[1]


def test_programs_get_json_at_the_same_address(page: SearchPage) -> None:
    status, text, response = page.ask("/?q=needle&page=2", Accept="application/json")
    found = json.loads(text)
    assert (status, response.headers["Vary"], len(found["hits"]), found["total"]) == (200, "Accept", 10, 24)
    assert found["hits"][0]["section"]["url"].startswith(f"{A}/")
    assert {"facet": "language", "value": "en", "pages": 24} in found["facets"]
    assert found["next_page"] == 3
    first, last = (json.loads(page.ask(f"/?q=needle&format=json&page={n}")[1]) for n in (1, 3))
    assert (first["page"], first["next_page"], last["next_page"], first["is_current"]) == (1, 2, None, True)
    wrong = {"": "give words", "q=--": "no word", "q=x&site=other.test": "not in the index"}
    wrong |= {"q=x&page=abc": "page cannot be abc", "q=x&depth=-1": "depth cannot", "q=x&since=bogus": "since cannot"}
    for query, error in wrong.items():
        status, text, _ = page.ask(f"/?{query}&format=json")
        assert (status, error in json.loads(text)["error"]) == (400, True)
        assert ".db" not in text, "the place of the store is not told"


def test_the_opensearch_description_names_the_address_of_the_users(page: SearchPage) -> None:
    _, xml, response = page.ask("/?format=opensearch", Host="search.example")
    assert response.headers["Content-Type"].startswith("application/opensearchdescription+xml")
    name = "{http://a9.com/-/spec/opensearch/1.1/}"
    root = ET.fromstring(xml)
    assert root.findtext(f"{name}ShortName") == "Our <manuals>"
    assert root.find(f"{name}Url").attrib["template"] == "https://search.example/find/?q={searchTerms}"  # type: ignore[union-attr]


def test_it_only_reads(page: SearchPage) -> None:
    assert {page.ask("/?q=needle", method)[0] for method in ("POST", "PUT", "DELETE")} == {405}
    assert page.ask("/style.css")[0] == 404


@in_chromium
def test_texts_of_strangers_stay_texts_in_a_browser(page: SearchPage) -> None:
    with browser_page(bypass_csp=True) as browser:
        asked: list[str] = []
        browser.on("request", lambda request: asked.append(request.url))
        browser.goto(f"{page.url}?q=thread+{quote(hostile(1))}")
        assert browser.title() not in ("OWNED", "1")
        browser.goto(f"{page.url}?q=thread")
        assert browser.title() == "thread – Our <manuals>"
        assert browser.locator("h2 a").count() == 1
        assert browser.locator("mark").count() >= 2
        assert all(url.startswith(page.url) for url in asked)
        browser.set_viewport_size({"width": 320, "height": 600})
        assert browser.evaluate("document.documentElement.scrollWidth") <= 320


def test_words_are_completed_as_the_user_types(page: SearchPage) -> None:
    status, text, _ = page.ask("/?q=the+need&format=completions")
    assert (status, json.loads(text)) == (200, ["the need", ["the needle"]])
    for none in ("n", "", "%22need", "zzz", "x" * 3000):
        assert json.loads(page.ask(f"/?q={none}&format=completions")[1])[1] == []


@in_chromium
def test_the_page_is_used_by_keyboard(page: SearchPage) -> None:
    with browser_page() as browser:
        browser.goto(f"{page.url}?q=needle")
        browser.keyboard.press("Tab")
        assert browser.evaluate("document.activeElement.textContent") == "To the results"
        browser.keyboard.press("/")
        assert browser.evaluate("document.activeElement.name") == "q"
        browser.keyboard.type("need")
        browser.wait_for_selector("#completions option[value=needle]", state="attached")


def test_without_an_index_it_answers_503_until_there_is_one(page: SearchPage, db: Path) -> None:
    index = db.with_name(f"{db.name}.search")
    index.rename(db.with_name("aside"))
    for path in ("/", "/?q=needle", "/?q=needle&format=json"):
        status, text, response = page.ask(path)
        assert (status, "There is no index at the moment" in text) == (503, True)
        assert int(response.headers["Retry-After"]) > 0
    db.with_name("aside").rename(index)
    assert page.ask("/?q=needle")[0] == 200


def test_the_base_url_must_be_an_address(db: Path) -> None:
    for wrong in ("search.example.org", "ftp://x/", "https://x/?q=1"):
        assert here("serve-search", "--db", db, "--base-url", wrong).code == 2
