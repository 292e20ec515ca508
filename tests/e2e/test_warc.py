"""``crawler run --warc`` archives the octets of the wire.

Readers of other projects open and replay the archive. After ``kill -9`` or on a full disk the store names no record
that the archive lacks.
"""

from __future__ import annotations

import gzip
import importlib.util
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.cli import main as warcio

from crawler.demo.pages import Fault, Page, Site, plain, redirect
from tests.command import HASTY, LOOPBACK, crawler, finish, here, little_room, start
from tests.web import LoopbackWeb

TEXT = "<title>Two</title>" + "<p>the same again" * 500
SITE: Site = {
    "/robots.txt": plain("User-agent: *\nDisallow: /closed\n"),
    "/": Page(
        "<title>Home</title>"
        + "".join(f"<a href=/{name}>x</a>" for name in ("two", "copy", "hid", "old", "gz", "r", "none", "pdf", "reset"))
    ),
    "/two": Page(TEXT),
    "/copy": Page(TEXT),
    "/hid": Page("<meta name=robots content=noindex><title>secret</title>"),
    "/old": Page("<title>uncopied</title>", headers=(("X-Robots-Tag", "noarchive"),)),
    "/gz": Page(gzip.compress(b"<title>Zipped</title>"), headers=(("Content-Encoding", "gzip"),)),
    "/r": redirect("/two", 301),
    "/pdf": Page(b"%PDF", content_type="application/pdf"),
    "/reset": Page(fault=Fault.RESET),
}


@pytest.fixture
def options(tmp_path: Path) -> tuple[str | Path, ...]:
    (tmp_path / "hasty.toml").write_text(HASTY)
    return ("--db", tmp_path / "crawl.db", "--config", tmp_path / "hasty.toml", *LOOPBACK, "--warc", tmp_path / "warc")


def archives(folder: Path) -> list[Path]:
    return sorted((folder / "warc").glob("*.warc.gz"))


def answers(folder: Path) -> dict[str, tuple[str, int, bytes]]:
    """Path -> type, status and decoded body of its last answer, by FastWARC, digests verified."""
    found = {}
    for path in archives(folder):
        with path.open("rb") as stream:
            kinds = WarcRecordType.response
            for record in ArchiveIterator(stream, verify_digests=True, record_types=kinds, auto_decode="all"):
                url = record.headers["WARC-Target-URI"]
                kind, status = record.headers["WARC-Type"], record.http_headers.status_code
                found["/" + url.split("/", 3)[3]] = (kind, status, record.reader.read())
    return found


def test_an_archive_of_a_crawl(loopback: LoopbackWeb, tmp_path: Path, options: tuple[str | Path, ...]) -> None:
    loopback.sites["a.test"] = SITE
    assert here("run", loopback.url("a.test"), *options).code == 0
    found = answers(tmp_path)
    assert found == {
        "/two": ("response", 200, TEXT.encode()),
        "/copy": ("response", 200, TEXT.encode()),
        "/robots.txt": ("response", 200, b"User-agent: *\nDisallow: /closed\n"),
        "/": ("response", 200, SITE["/"].octets),  # type: ignore[union-attr]
        "/hid": ("response", 200, b""),
        "/old": ("response", 200, b""),
        "/gz": ("response", 200, b"<title>Zipped</title>"),
        "/r": ("response", 301, b""),
        "/none": ("response", 404, b""),
        "/pdf": ("response", 200, b""),
    }
    (archive,) = archives(tmp_path)
    octets = gzip.decompress(archive.read_bytes())
    assert b"secret" not in octets
    assert b"uncopied" not in octets
    assert gzip.compress(b"<title>Zipped</title>")[10:] in octets, "the coding of the wire"
    with sqlite3.connect(tmp_path / "crawl.db") as db:
        sent = db.execute("SELECT count(*) FROM requests").fetchone()[0]
    with archive.open("rb") as stream:
        kinds = [record.rec_type for record in WarcioIterator(stream, check_digests="raise")]
    assert kinds.count("request") == kinds.count("metadata") == sent
    with pytest.raises(SystemExit) as ended:
        warcio(["check", str(archive)])
    assert ended.value.code in (0, None)


#: In a process of its own, for pywb changes how Python's sockets and threads work. Prints status and page.
PYWB = """
import sys
from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client
from pywb.manager.manager import main
main(["init", "crawl"])
main(["add", "crawl", *sys.argv[2].split(",")])
client = Client(FrontEndApp())
for url in sys.argv[3:]:
    shown = client.get(f"/crawl/2026id_/{url}", follow_redirects=True)
    assert shown.headers.get("Content-Length", str(len(shown.data))) == str(len(shown.data))
    print(sys.argv[1], shown.status_code, len(shown.data), b"the same again" in shown.data, b"secret" in shown.data)
"""


def test_pywb_replays_it(loopback: LoopbackWeb, tmp_path: Path, options: tuple[str | Path, ...]) -> None:
    if importlib.util.find_spec("pywb") is None:
        pytest.skip("pywb is not installed")
    loopback.sites["a.test"] = SITE
    assert here("run", loopback.url("a.test"), *options).code == 0
    urls = [loopback.url("a.test", path) for path in ("/two", "/copy", "/none", "/hid", "/old", "/pdf")]
    files = ",".join(map(str, archives(tmp_path)))
    command = [sys.executable, "-W", "ignore", "-c", PYWB, "shown:", files, *urls]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    shown = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("shown:")]
    assert len(shown) == 6, done.stderr
    assert shown[:2] == [["200", str(len(TEXT)), "True", "False"]] * 2
    assert shown[2][0] == "404"
    assert shown[3:] == [["200", "0", "False", "False"]] * 3


def test_nothing_is_claimed_that_is_not_archived(
    loopback: LoopbackWeb, tmp_path: Path, options: tuple[str | Path, ...]
) -> None:
    """Killed at random moments; after each, every page in the store is in the archive, and that can be read."""
    chance = random.Random(3)
    links = "".join(f"<a href=/{n}>{n}</a>" for n in range(60))
    pages = {f"/{n}": Page(f"<title>{n}</title>{chance.randbytes(2000).hex()}", delay_s=0.003) for n in range(60)}
    loopback.sites["a.test"] = {"/": Page(links), **pages}
    command = ("run", loopback.url("a.test"), *options, "--delay", "0")
    kills = 0
    while kills < 6:
        asked = len(loopback.log) + chance.randint(1, 9)
        process, deadline = start(*command), time.monotonic() + 300
        while len(loopback.log) < asked and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        assert_archived(tmp_path)
    assert finish(start(*command)).code == 0
    assert len(assert_archived(tmp_path)) == 61
    assert not list((tmp_path / "warc").glob("*.open"))


def assert_archived(folder: Path) -> set[str]:
    """Every page of the store has a record, in files read up to their last whole record; gives the pages."""
    archived = set()
    for path in (folder / "warc").glob("*.warc.gz*"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                if record.http_headers is not None and record.http_headers.status_code == 200:
                    archived.add(record.headers["WARC-Target-URI"])
    if not (folder / "crawl.db").exists():
        return set()
    with sqlite3.connect(folder / "crawl.db") as db:
        known = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'pages'").fetchone()
        pages = {url for (url,) in db.execute("SELECT url FROM pages")} if known else set()
    assert pages <= archived
    return pages


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_full_disk_ends_with_4_and_the_crawl_goes_on(
    loopback: LoopbackWeb, tmp_path: Path, options: tuple[str | Path, ...]
) -> None:
    chance = random.Random(1)
    links = "".join(f"<a href=/{n}>{n}</a>" for n in range(20))
    pages = {f"/{n}": Page(f"<title>{n}</title>{chance.randbytes(30_000).hex()}") for n in range(20)}
    same = "<p>a word and a word " * 50
    loopback.sites["a.test"] = {"/": Page(links), **pages, "/same": Page(same)}
    command = ("run", loopback.url("a.test"), *options, "--delay", "0")

    ended = crawler(*command, before=little_room(500_000))
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.count("\n") == 1
    assert "make room and run the same command again" in ended.err
    kept = assert_archived(tmp_path)
    assert len(kept) < 21
    assert crawler(*command).code == 0
    assert len(assert_archived(tmp_path)) == 21


def test_a_folder_that_cannot_be_is_told(loopback: LoopbackWeb, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    ended = crawler("run", loopback.url("a.test"), "--db", tmp_path / "c.db", *LOOPBACK, "--warc", tmp_path / "file")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "--warc" in ended.err
    assert loopback.log == []
