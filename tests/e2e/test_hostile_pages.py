"""A page made to tie up the HTML parser is recorded as unread, and the crawl goes on."""

from __future__ import annotations

import gzip
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import brotli

from crawler.demo.pages import Page, plain
from tests.command import LOOPBACK, ROOT, crawler, here
from tests.web import LoopbackWeb

COUNT = 100_000
HOSTILE = {
    "/nested": "<div>" * COUNT,
    "/attributes": "<p " + "".join(f"a{n}=1 " for n in range(COUNT)) + ">",
    "/formatting": "".join(f"<p><font size={n}>x" for n in range(COUNT)),
}
#: 50 kB that make a tree of more than a gigabyte. In UTF-16 and ISO-2022-JP, counting bytes does not find the tags.
LIMITS = ("0.7 s of processor time", "256 MB of memory")
REOPENED = "<p>" + "".join(f"<b a{n}>" for n in range(2_000)) + "<p>x" * 2_000
ENCODINGS = {"utf-16": "utf-16", "iso2022_jp": "iso-2022-jp"}


def test_hostile_pages_are_given_up_and_their_neighbours_are_read(tmp_path: Path) -> None:
    index = "<title>Index</title>" + "".join(f"<a href='{path}'>{path}</a>" for path in HOSTILE)
    pages = {"/": Page(index)} | {path: Page(f"<title>{path}</title>{body}") for path, body in HOSTILE.items()}
    db = tmp_path / "crawl.db"
    with LoopbackWeb({"a.test": {"/robots.txt": plain(""), **pages}}) as web:
        ended = crawler("run", f"http://a.test:{web.port}/", "--db", db, "--delay", "0", *LOOPBACK)
    assert ended.code == 0
    with closing(sqlite3.connect(db)) as store:
        rows = store.execute("SELECT url, title, noindex, nofollow, note FROM pages ORDER BY url").fetchall()
        (lag_s,) = store.execute("SELECT worst_lag_s FROM run").fetchone()
    found = {url.partition(str(web.port))[2]: tuple(row) for url, *row in rows}
    assert found["/"] == ("Index", 0, 0, "")
    given_up = {found[path][:3] for path in HOSTILE}
    assert given_up == {(None, 1, 1)}
    notes = {found[path][3] for path in HOSTILE}
    assert notes <= {f"not parsed: the parser needed more than {limit}" for limit in LIMITS}
    assert lag_s > 0
    status = here("status", "--db", db).out
    assert ("Lag" in status) is (lag_s >= 1), "below a second nobody would act on it"
    assert "1 fetched" in status
    assert "3 unread" in status
    sentence = f"200, {found['/nested'][3]}; body and texts not kept"
    assert sentence in " ".join(here("why", f"http://a.test:{web.port}/nested", "--db", db).out.split())


def test_no_encoding_hides_a_hostile_page(tmp_path: Path) -> None:
    hostile = {
        f"/{charset}": Page(REOPENED.encode(codec), content_type=f"text/html; charset={charset}")
        for codec, charset in ENCODINGS.items()
    }
    links = "".join(f"<a href={path}>1</a>" for path in (*hostile, "/next"))
    pages = {"/": Page(links), **hostile, "/next": Page("<title>Next")}
    db = tmp_path / "crawl.db"
    with LoopbackWeb({"a.test": {"/robots.txt": plain(""), **pages}}) as web:
        ended = crawler("run", f"http://a.test:{web.port}/", "--db", db, "--delay", "0", *LOOPBACK)
    assert ended.code == 0
    with closing(sqlite3.connect(db)) as store:
        notes = dict(store.execute("SELECT url, note FROM pages"))
        titles = store.execute("SELECT title FROM pages WHERE title NOTNULL").fetchall()
    assert titles == [("Next",)]
    given_up = {notes.pop(f"http://a.test:{web.port}{path}") for path in hostile}
    assert given_up <= {f"not parsed: the parser needed more than {limit}" for limit in LIMITS}
    assert set(notes.values()) == {""}


def test_a_page_of_many_directives_is_read(tmp_path: Path) -> None:
    page = Page("<title>Metas</title>" + "<meta name=robots content=a>" * 9_000 + "<a href=/next>next</a>")
    db = tmp_path / "crawl.db"
    with LoopbackWeb({"a.test": {"/robots.txt": plain(""), "/": page, "/next": Page("")}}) as web:
        assert crawler("run", f"http://a.test:{web.port}/", "--db", db, "--delay", "0", *LOOPBACK).code == 0
    with closing(sqlite3.connect(db)) as store:
        assert store.execute("SELECT title, noindex FROM pages WHERE title NOTNULL").fetchall() == [("Metas", 0)]


def test_a_large_page_that_comes_gzipped_is_read_and_kept(tmp_path: Path) -> None:
    body = "<title>Large</title>" + "<p>words</p>" * 100_000 + "<a href='/next'>next</a>"
    large = Page(gzip.compress(body.encode(), mtime=0), headers=(("Content-Encoding", "gzip"),))
    db = tmp_path / "crawl.db"
    with LoopbackWeb({"a.test": {"/robots.txt": plain(""), "/": large, "/next": plain("")}}) as web:
        ended = crawler("run", f"http://a.test:{web.port}/", "--db", db, "--delay", "0", *LOOPBACK)
    assert ended.code == 0
    with closing(sqlite3.connect(db)) as store:
        assert store.execute("SELECT title, body_bytes FROM page WHERE title IS NOT NULL").fetchall() == [
            ("Large", len(body))
        ]
        assert store.execute("SELECT anchor FROM links").fetchall() == [("next",)]
        (kept,) = store.execute("SELECT data FROM body JOIN page ON body_id = body.id WHERE title = 'Large'").fetchone()
    assert gzip.decompress(kept) == body.encode()


BUGGY = """
import crawler.page.tags

def refresh_target(content):
    return {"bug": 0}[content]

crawler.page.tags.refresh_target = refresh_target
"""


def test_a_bug_of_ours_that_a_page_brings_to_light_fails_that_page_alone(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BUGGY)
    with_bug = ("env", f"PYTHONPATH={tmp_path}{os.pathsep}{ROOT}")
    buggy = "<meta http-equiv=refresh content=5>"
    pages = {
        "/": Page("<a href=/light>1</a><a href=/heavy>2</a><a href=/other>3</a><a href=/large>4</a>"),
        "/light": Page(buggy),
        "/heavy": Page(buggy + "<p>words</p>" * 50_000),
        "/large": Page("<title>Large</title>" + "<p>words</p>" * 50_000),
        "/other": Page("<title>Other</title>"),
    }
    db = tmp_path / "crawl.db"
    with LoopbackWeb({"a.test": {"/robots.txt": plain(""), **pages}}) as web:
        ended = crawler("run", f"http://a.test:{web.port}/", "--db", db, "--delay", "0", *LOOPBACK, under=with_bug)
    assert ended.code == 1
    assert "crawler: 2 answers met a bug in the crawler" in ended.err
    assert "Traceback" not in ended.err
    assert "2 × a bug in the crawler" in ended.out
    with closing(sqlite3.connect(db)) as store:
        failed = dict(store.execute("SELECT path, reason FROM url WHERE state = 'failed'"))
        titles = store.execute("SELECT title FROM pages WHERE title NOTNULL ORDER BY title").fetchall()
    place = r"a bug in the crawler: KeyError: '5' \(page/tags\.py, line \d+\); please report it"
    assert {path for path, reason in failed.items() if re.fullmatch(place, reason)} == {"/light", "/heavy"}
    assert titles == [("Large",), ("Other",)], "the child that met it reads the next page"


BUGGY_DECODER = """
import crawler.fetch.decoding

def feed(self, data, room):
    return self.stream.process(data)

crawler.fetch.decoding._Brotli.feed = feed
"""


def test_a_bug_of_ours_that_a_body_brings_to_light_fails_its_url_alone(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BUGGY_DECODER)
    with_bug = ("env", f"PYTHONPATH={tmp_path}{os.pathsep}{ROOT}")
    coded = (("Content-Encoding", "br"),)
    pages = {
        "/": Page("<a href=/coded>1</a><a href=/other>2</a>"),
        "/coded": Page(brotli.compress(b"<title>Coded</title>"), headers=coded),
        "/other": Page("<title>Other</title>"),
    }
    db = tmp_path / "crawl.db"
    with LoopbackWeb({"a.test": {"/robots.txt": plain(""), **pages}}) as web:
        options = ("--db", db, "--warc", tmp_path / "warc", "--delay", "0", *LOOPBACK)
        ended = crawler("run", f"http://a.test:{web.port}/", *options, under=with_bug)
    assert ended.code == 1
    assert "crawler: 1 answer met a bug in the crawler" in ended.err
    assert "Traceback" not in ended.err
    with closing(sqlite3.connect(db)) as store:
        failed = dict(store.execute("SELECT path, reason FROM url WHERE state = 'failed'"))
        titles = store.execute("SELECT title FROM pages WHERE title NOTNULL").fetchall()
        logged = store.execute("SELECT error FROM requests WHERE error NOTNULL").fetchall()
    place = r"a bug in the crawler: AttributeError: .* \(fetch/client\.py, line \d+\); please report it"
    assert failed.keys() == {"/coded"}
    assert re.fullmatch(place, failed["/coded"])
    assert titles == [("Other",)]
    assert [re.fullmatch(place, error) is not None for (error,) in logged] == [True]


def test_brotli_is_not_asked_for_where_another_module_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "brotli.py").write_text(
        "class Decompressor:\n    def decompress(self, data): ...\nclass error(Exception): ...\n"
    )
    program = "from crawler.fetch.decoding import ACCEPT_ENCODING; print(ACCEPT_ENCODING)"
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", program]
    offered = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert offered.stdout == "gzip, deflate, zstd\n"
