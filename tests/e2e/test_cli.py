"""The command in a process of its own: exit codes, signals, failing stores and output."""

from __future__ import annotations

import json
import os
import pty
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Asked, Fault, Page, redirect
from crawler.errors import StoreError
from crawler.session.nothing_crawled import NOTHING_CRAWLED
from crawler.store.sqlite.store import SqliteStore
from crawler.version import VERSION
from tests.command import HASTY, LOOPBACK, crawler, finish, forking_python, here, little_room, start, until
from tests.orphans import BOUND
from tests.web import LoopbackWeb


def chain(length: int, *, body: str = "") -> dict[str, Page]:
    """A site whose pages each link to the next."""
    pages = {f"/{n}": Page(f"<title>{n}</title><a href=/{n + 1}>next</a>{body}") for n in range(length)}
    return pages | {"/": Page("<title>start</title><a href=/0>first</a>")}


@pytest.fixture
def web(loopback: LoopbackWeb) -> LoopbackWeb:
    loopback.sites["a.test"] = chain(3) | {"/2": Page("<title>2</title><a href=/gone>gone</a>")}
    return loopback


@pytest.fixture
def hasty(tmp_path: Path) -> Path:
    (tmp_path / "hasty.toml").write_text(HASTY)
    return tmp_path / "hasty.toml"


def states(db: Path) -> dict[str, int]:
    connection = sqlite3.connect(db)
    try:
        return dict(connection.execute("SELECT state, count(*) FROM urls GROUP BY state"))
    finally:
        connection.close()


# --- what is counted --------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_sitemap_is_not_counted_as_a_page(loopback: LoopbackWeb, db_path: Path, tmp_path: Path, workers: str) -> None:
    url = loopback.url("a.test", "/x")
    loopback.sites["a.test"] = {
        "/": Page("start"),
        "/x": Page("x"),
        "/sitemap.xml": Page(f"<urlset><url><loc>{url}</loc></url></urlset>", content_type="text/xml"),
    }
    (tmp_path / "maps.toml").write_text(f"[discovery]\nsitemaps = true\n{HASTY}")
    options = ("--config", tmp_path / "maps.toml", *LOOPBACK, "--db", db_path, "--workers", workers, "--json")
    result = json.loads(here("run", loopback.url("a.test"), *options).out)
    assert (result["pages"], result["run"]["pages"]) == (2, 2)
    assert result["urls"]["fetched"] == 3, "of all URLs"
    status = json.loads(here("status", "--db", db_path, "--json").out)
    assert (status["pages"], [site["fetched"] for site in status["sites"]]) == (2, [2])
    assert "2 pages, 0 links" in here("status", "--db", db_path).out
    report = here("report", tmp_path / "r.html", "--db", db_path)
    assert "; 2 pages of 1 site" in report.out
    assert "<b>2</b><span>pages fetched</span>" in (tmp_path / "r.html").read_text()


# --- a crawl that ends by itself ------------------------------------------------------------------


def test_a_finished_crawl_and_the_commands_that_read_it(web: LoopbackWeb, db_path: Path, hasty: Path) -> None:
    url = web.url("a.test")
    ended = crawler("run", url, "--config", hasty, *LOOPBACK, "--db", db_path, "--json", fresh=True)
    assert (ended.code, ended.err) == (0, "")
    result = json.loads(ended.out)
    assert ended.out.count("\n") == 1
    assert result["ended_by"] == "nothing is left in the frontier"
    assert result["urls"] == {"queued": 0, "fetched": 4, "redirected": 0, "excluded": 0, "failed": 1}
    assert (result["pages"], result["links"], result["run"]["requests"]) == (4, 4, len(web.log))
    assert result["run"]["troubles"] == {"404": 1}  # a missing robots.txt is none

    again = here("run", "--config", hasty, *LOOPBACK, "--db", db_path)
    assert again.code == 0
    assert "nothing is left in the frontier" in again.out
    assert "0 pages, 0 requests" in again.out
    assert "4 pages, 4 links" in again.out

    seen = json.loads(here("status", "--db", db_path, "--json").out)
    assert seen["urls"] == result["urls"]
    assert seen["last_run"]["ended_by"].startswith("nothing is left in the frontier")
    assert seen["failed_for"] == {"not_found": 1}
    assert [site["site"] for site in seen["sites"]] == [url.rstrip("/")]
    text = here("status", "--db", db_path).out
    assert "0 queued, 4 fetched, 0 redirected, 0 excluded, 1 failed" in text
    assert "nothing is left in the frontier" in text

    why = json.loads(here("why", web.url("a.test", "/2"), "--db", db_path, "--json").out)
    assert (why["state"], why["reason"], why["depth"]) == ("fetched", "200", 3)
    assert why["chain"] == [web.url("a.test", path) for path in ("/", "/0", "/1", "/2")]
    assert why["linked_from"]["first"][0] == {"url": web.url("a.test", "/1"), "anchor": "next", "rel": ""}
    text = here("why", web.url("a.test", "/gone"), "--db", db_path).out
    assert "failed: 404 Not Found" in text
    assert "404, no file: everything is allowed" in text


def test_without_a_terminal_only_the_summary_is_printed(web: LoopbackWeb, db_path: Path) -> None:
    options = [option for option in LOOPBACK if option != "--no-progress"]
    ended = crawler("run", web.url("a.test"), "--delay", "0", *options, "--db", db_path)
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    assert ended.out.startswith("Ended")
    assert "Ctrl-C" not in ended.out


def test_a_terminal_shows_the_live_display(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = chain(30)
    options = [option for option in LOOPBACK if option != "--no-progress"]
    master, slave = pty.openpty()
    command = [*BOUND, sys.executable, "-m", "crawler", "run", web.url("a.test"), *options, "--db", str(db_path)]
    process = subprocess.Popen([*command, "--delay", "0.05"], stdout=slave, stderr=slave, stdin=slave)
    os.close(slave)
    shown = b"".join(_read(master))
    assert process.wait() == 0
    assert b"worked on" in shown
    assert b"Ctrl-C stops; the same command continues the crawl" in shown
    assert b"nothing is left in the frontier" in shown


def _read(terminal: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(terminal, 65536):
            yield chunk
    except OSError:  # how a pseudo-terminal tells that nobody writes to it any more
        os.close(terminal)


def test_every_option_is_accepted(web: LoopbackWeb, db_path: Path, tmp_path: Path, hasty: Path) -> None:
    (tmp_path / "seeds.txt").write_text(f"# seeds\n{web.url('a.test')}\nnone\n")
    options = {
        "--db": db_path, "--seeds": tmp_path / "seeds.txt", "--config": hasty, "--contact": "crawl@example.org",
        "--agent": "FigTree", "--delay": "0.05", "--max-pages": "50", "--max-pages-per-site": "50", "--max-depth": "2",
        "--max-time": "30", "--scope": "host", "--include": "test", "--exclude": "/x$", "--concurrency": "4",
        "--workers": "1", "--reading": "rfc9309", "--resolve": "*.test=127.0.0.1",
    }  # fmt: skip
    flags = ("--skip-bad-seeds", "--allow-private", "--no-progress", "--json", "--include", "a", "--exclude", "/y$")
    ended = here("run", web.url("a.test"), *(text for option in options.items() for text in option), *flags)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["urls"]["excluded"] == 1  # /2 is too deep
    assert {hit.user_agent for hit in web.log} == {f"FigTree/{VERSION} (+mailto:crawl@example.org)"}


def test_limits_end_a_crawl_with_0_and_are_named(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = chain(200)
    begin = ("run", web.url("a.test"), *LOOPBACK, "--db", db_path, "--delay", "0.02")
    pages = here(*begin, "--max-pages", "3")
    assert pages.code == 0
    assert "--max-pages reached (3)" in pages.out
    assert states(db_path)["fetched"] == 3
    timed = here(*begin, "--max-pages", "0", "--max-time", "2")  # for one page at least; they take 4 s
    assert timed.code == 0
    assert "--max-time is over" in timed.out
    per_site = here(*begin, "--max-pages-per-site", str(states(db_path)["fetched"] + 2))
    assert per_site.code == 0
    assert "--max-pages-per-site" in per_site.out
    assert "at its limit" in here("status", "--db", db_path).out
    (queued,) = json.loads(here("status", "--db", db_path, "--json").out)["sites"]
    assert queued["queued"] == 1
    waiting = web.url("a.test", f"/{queued['fetched'] - 1}")
    assert "waits for a higher --max-pages-per-site" in here("why", waiting, "--db", db_path).out


# --- signals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_in_order_with_3_and_the_crawl_goes_on(
    number: signal.Signals, web: LoopbackWeb, db_path: Path, hasty: Path
) -> None:
    """With an answer in flight that takes some seconds; and later with other options."""
    asked = threading.Event()

    def slow(_: Asked) -> Page:
        asked.set()
        return Page("<title>1</title><a href=/2>next</a>", delay_s=3)

    web.sites["a.test"] = chain(20) | {"/1": slow}
    options = ("--config", hasty, *LOOPBACK, "--db", db_path)
    process = start("run", web.url("a.test"), *options)
    assert asked.wait(300)
    process.send_signal(number)
    ended = finish(process)
    assert ended.code == 3
    assert ("Ctrl-C again ends it now" in ended.err) is (number is signal.SIGINT), "a person is told"
    assert f"stopped by {number.name}; the same command continues the crawl" in ended.out
    assert {hit.path: hit.status for hit in web.log}["/1"] == 200, "the answer in flight was waited for"
    stopped = json.loads(here("status", "--db", db_path, "--json").out)
    assert stopped["urls"] == {"queued": 1, "fetched": 3, "redirected": 0, "excluded": 0, "failed": 0}
    assert stopped["last_run"]["ended_by"].startswith("stopped by")
    assert here("why", web.url("a.test", "/2"), "--db", db_path).out.count("queued: waits in the frontier") == 1

    narrow = here("run", *options, "--exclude", "/2$")
    changed = "crawler: changes the crawl: --exclude '/2$' (was [])\n"
    told = "crawler: the new options leave out 1 queued URL; the last options bring them back\n"
    assert (narrow.code, narrow.err) == (0, changed + told)
    hasty.write_text(hasty.read_text() + "[scope]\nexclude = []\n")
    whole = ("run", web.url("a.test"), *options)
    shallow = here(*whole, "--max-depth", "5")
    assert shallow.code == 0
    assert shallow.err.endswith("\ncrawler: queued again under the new options or seeds: 1 URL\n")
    assert states(db_path) == {"fetched": 6, "excluded": 1}
    assert here(*whole, "--max-depth", "-1").code == 0
    assert states(db_path)["fetched"] == 21
    paths = [hit.path for hit in web.log if hit.path != "/robots.txt"]
    assert len(paths) == len(set(paths)), "nothing was fetched twice"


def test_a_server_that_never_answers_does_not_delay_the_end(web: LoopbackWeb, db_path: Path, hasty: Path) -> None:
    """The request may take an hour, so the command ends before its answer or not within the time of the test."""
    asked = threading.Event()

    def never(_: Asked) -> Page:
        asked.set()
        return Page(fault=Fault.HANG)

    web.sites["a.test"] = {"/": never, "/robots.txt": Page("", content_type="text/plain")}
    hasty.write_text(hasty.read_text() + 'read_timeout = "1 hour"\ntotal_timeout = "1 hour"\n')
    process = start("run", web.url("a.test"), "--config", hasty, *LOOPBACK, "--db", db_path)
    assert asked.wait(300)
    process.send_signal(signal.SIGTERM)
    until(lambda: not is_pending(signal.SIGTERM, process.pid), "the first signal's arrival")
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 3
    assert states(db_path) == {"queued": 1}


def is_pending(number: signal.Signals, pid: int) -> bool:
    """Whether the system has still to deliver a signal to a process (``proc(5)``)."""
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_crawl_that_only_waits_stops_at_once(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = {"/robots.txt": Page("", status=503, headers=(("Retry-After", "3600"),))}
    process = start("run", web.url("a.test"), *LOOPBACK, "--db", db_path)
    until(lambda: len(web.log) == 1 and states_or_none(db_path) == {"queued": 1}, "robots.txt")
    until(lambda: "robots.txt: 503" in here("status", "--db", db_path).out, "the reason for the wait")
    assert "for a.test until " in here("status", "--db", db_path).out
    why = here("why", web.url("a.test"), "--db", db_path).out
    assert "no usable answer: nothing is fetched until there is one" in why
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 3


def states_or_none(db: Path) -> dict[str, int] | None:
    try:
        return states(db)
    except sqlite3.Error:
        return None


def test_a_second_crawl_into_the_same_store_is_refused(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = chain(500)
    process = start("run", web.url("a.test"), *LOOPBACK, "--db", db_path, "--delay", "0.05")
    until(lambda: len(web.log) >= 2, "the first requests")
    second = here("run", web.url("a.test"), *LOOPBACK, "--db", db_path)
    assert second.code == 2
    assert "another command writes to this store" in second.err
    assert f"give it URLs (`crawler control queue URL --db {db_path}`)" in second.err
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 3
    assert here("run", *LOOPBACK, "--db", db_path, "--max-pages", "1").code in (0, NOTHING_CRAWLED)


def test_status_distinguishes_a_killed_run_from_a_running_one(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = chain(500)
    process = start("run", web.url("a.test"), *LOOPBACK, "--db", db_path, "--delay", "0.05")
    until(lambda: len(web.log) >= 2, "the first requests")
    assert "it is running" in here("status", "--db", db_path).out
    assert json.loads(here("status", "--db", db_path, "--json").out)["last_run"]["finished_at"] is None
    process.kill()
    finish(process)
    assert "it was killed, or its disk was full; the same command continues" in here("status", "--db", db_path).out


def test_the_store_keeps_why_a_run_failed_if_it_can_be_written(
    web: LoopbackWeb, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise StoreError("the file cannot be written for once")

    monkeypatch.setattr(SqliteStore, "commit", fails)
    assert here("run", web.url("a.test"), *LOOPBACK, "--db", db_path).code == 4
    assert "the store failed: the file cannot be written for once" in here("status", "--db", db_path).out


# --- stores that fail ---------------------------------------------------------------------------


def big_site(pages: int = 40) -> dict[str, Page]:
    """Pages that do not compress, so that the store grows."""
    chance = random.Random(1)
    return chain(pages) | {
        f"/{n}": Page(f"<a href=/{n + 1}>next</a><p>{chance.randbytes(30_000).hex()}") for n in range(pages)
    }


def test_a_full_disk_ends_with_4_and_the_crawl_goes_on(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = big_site()
    options = ("run", web.url("a.test"), *LOOPBACK, "--db", db_path, "--delay", "0")

    ended = crawler(*options, before=little_room(1_300_000))
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.count("\n") == 1
    assert "make room and run the same command again" in ended.err
    kept = states(db_path).get("fetched", 0)
    assert 0 < kept < 40
    assert here(*options).code == 0
    assert states(db_path) == {"fetched": 41, "failed": 1}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_small_file_system_that_is_full(web: LoopbackWeb, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1100k", "tmpfs", small], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        web.sites["a.test"] = big_site()
        options = ("run", web.url("a.test"), *LOOPBACK, "--db", small / "c.db", "--delay", "0")
        ended = crawler(*options)
        assert (ended.code, ended.out) == (4, "")
        assert "disk is full" in ended.err
        subprocess.run(["mount", "-o", "remount,size=50m", small], check=True)
        assert crawler(*options).code == 0
        assert states(small / "c.db") == {"fetched": 41, "failed": 1}
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("command", ["run", "status", "why"])
@pytest.mark.parametrize("damage", ["no database", "garbage inside", "cut short"])
def test_a_damaged_store(command: str, damage: str, web: LoopbackWeb, db_path: Path) -> None:
    url = web.url("a.test")
    assert here("run", url, *LOOPBACK, "--db", db_path, "--delay", "0").code == 0
    whole = db_path.read_bytes()
    chance = random.Random(2)
    match damage:
        case "no database":
            db_path.write_bytes(b"this is my diary, not a crawl\n" * 1000)
        case "garbage inside":
            db_path.write_bytes(whole[:100] + chance.randbytes(len(whole) - 100))
        case _:
            db_path.write_bytes(whole[: len(whole) // 3])
    given: tuple[Any, ...] = (url, *LOOPBACK) if command == "run" else (url,) if command == "why" else ()
    ended = here(command, *given, "--db", db_path)
    assert ended.code == 4, ended
    assert ended.out == ""
    assert ended.err.count("\n") == 1
    assert "the file is damaged, `sqlite3 " in ended.err or "this file is not a store" in ended.err


#: Root may write everywhere; without this capability it is a user like others.
_PLAIN_USER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that may not be written to."""
    if _PLAIN_USER and shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere")
    folder = tmp_path / "archive"
    folder.mkdir()
    yield folder
    folder.chmod(0o755)


def test_a_folder_without_write_permission(web: LoopbackWeb, read_only: Path) -> None:
    db = read_only / "c.db"
    assert here("run", web.url("a.test"), *LOOPBACK, "--db", db, "--delay", "0").code == 0
    asked = len(web.log)
    for path in read_only.iterdir():
        path.chmod(0o444)
    read_only.chmod(0o555)
    for name in ("c.db", "new.db"):
        ended = crawler("run", web.url("a.test"), *LOOPBACK, "--db", read_only / name, under=_PLAIN_USER)
        assert ended.code == 2
        assert "cannot be written: Permission denied" in ended.err
    assert len(web.log) == asked
    status = crawler("status", "--db", db, "--json", under=_PLAIN_USER)
    assert status.code == 0, status.err
    assert json.loads(status.out)["pages"] == 4


# --- outputs that fail --------------------------------------------------------------------------


def shell(command: str) -> tuple[int, str, str]:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_closed_pipe_is_no_error(web: LoopbackWeb, db_path: Path) -> None:
    assert here("run", web.url("a.test"), *LOOPBACK, "--db", db_path, "--delay", "0").code == 0
    me = f"{forking_python()} -m crawler"
    for command in (
        "--help",
        f"status --json --db {db_path}",
        f"why --db {db_path} {web.url('a.test')}",
    ):
        assert shell(f"set -o pipefail; {me} {command} | true") == (0, "", "")
    case = json.dumps({"robots": "", "agent": "x", "url": "http://a.test/"}) + "\n"
    many = f"yes '{case.strip()}' | head -5000 | {me} robots check --jsonl | head -1"
    code, out, err = shell(many)
    assert (code, out.count("\n"), err) == (0, 1, "")


def test_a_full_output_device(web: LoopbackWeb, db_path: Path) -> None:
    assert here("run", web.url("a.test"), *LOOPBACK, "--db", db_path, "--delay", "0").code == 0
    me = f"{sys.executable} -m crawler"
    for command in (f"status --db {db_path}", "--help"):
        assert shell(f"{me} {command} > /dev/full") == (2, "", "crawler: standard output: No space left on device\n")
    assert shell(f"{me} status --db {db_path} >&- 2>&-") == (0, "", ""), "no file takes the number of a closed stream"


def test_a_terminal_without_unicode(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = {"/": Page("<title>Füße – 東京</title>")}
    assert here("run", web.url("a.test"), *LOOPBACK, "--db", db_path, "--delay", "0").code == 0
    me = f"PYTHONIOENCODING=ascii {sys.executable} -m crawler why --db {db_path} {web.url('a.test')}"
    code, out, err = shell(me)
    assert (code, err) == (0, "")
    assert "F\\xfc\\xdfe" in out
    code, out, err = shell(f"{me} --json")
    assert (code, err) == (0, "")
    assert json.loads(out)["page"]["title"] == "Füße – 東京"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (LOOPBACK[:2], "address: 127.0.0.1 is a loopback address; --allow-private permits it"),
        ((*LOOPBACK, "--exclude", "a.test"), "pattern: matches --exclude ('a.test')"),
    ],
)
def test_a_crawl_with_every_seed_left_out_says_why_on_standard_error(
    options: tuple[str, ...], reason: str, web: LoopbackWeb, db_path: Path
) -> None:
    ended = here("run", web.url("a.test"), *options, "--db", db_path)
    assert (ended.code, "every seed was left out\n" in ended.out, reason in ended.out) == (5, True, False)
    why = f"{reason}; `crawler why {web.url('a.test')} --db {db_path}` explains it"
    assert ended.err == f"crawler: nothing was crawled: every seed was left out: {why}\n"
    if options == LOOPBACK[:2]:
        more = here("run", web.url("b.test"), *options, "--db", db_path)
        told = f"leaves out seeds at no public address, which need --allow-private: {web.url('b.test')}\n"
        assert told in more.err, "the crawl has other seeds"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_crawl_without_a_page_exits_5_with_the_reason(web: LoopbackWeb, db_path: Path, workers: str) -> None:
    web.sites["a.test"] = {}
    run = ("run", web.url("a.test", "/gone"), *LOOPBACK, "--workers", workers, "--db", db_path)
    ended = here(*run)
    why = f"`crawler why {web.url('a.test', '/gone')} --db {db_path}` explains it"
    assert (ended.code, ended.err) == (5, f"crawler: nothing was crawled: the seed failed: 404 Not Found; {why}\n")
    again = here(*run)
    assert (again.code, again.err) == (5, ended.err), "the store holds no page either"


def test_a_crawl_that_is_cut_off_before_its_first_page_names_the_wait(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = {"/robots.txt": Page("", status=503)}
    ended = here("run", web.url("a.test"), *LOOPBACK, "--max-time", "1", "--db", db_path)
    assert ended.code == 5
    assert "nothing was crawled: everything left waits until after --max-time: 1 queued URL; " in ended.err
    assert "it waits, first for a.test until " in ended.err
    assert ": robots.txt: 503 Service Unavailable (tried again until " in ended.err


def test_a_crawl_that_a_limit_ends_before_its_first_page_names_the_limit(web: LoopbackWeb, db_path: Path) -> None:
    url = web.url("a.test")
    ended = here("run", url, *LOOPBACK, "--max-disk", "100KB", "--db", db_path)
    assert ended.code == 5
    assert ended.err.startswith("crawler: nothing was crawled: --max-disk is reached: ")
    assert "a higher limit continues with 1 queued URL" in ended.err
    why = here("why", url, "--db", db_path)
    assert "waits for its turn" in why.out
    assert "1970" not in ended.err + ended.out + why.out


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (("--max-disk", "100KB"), "--max-disk is reached: "),
        (("--max-pages", "1"), "--max-pages reached (1)"),
        (("--max-pages-per-site", "1"), "every site with queued URLs has reached --max-pages-per-site (1); 1 URL "),
    ],
)
def test_a_limit_that_leaves_queued_urls_and_no_page_exits_5(
    web: LoopbackWeb, db_path: Path, hasty: Path, limit: tuple[str, str], said: str
) -> None:
    web.sites["a.test"] = chain(5)
    run = ("run", web.url("a.test"), "--config", hasty, *LOOPBACK, "--db", db_path)
    assert here(*run, "--max-pages", "2").code == 0
    without = ("--max-pages", "0", "--max-pages-per-site", "0", "--max-disk", "0")
    ended = here(*run, *without, *limit)
    assert ended.code == 5
    assert f"crawler: nothing was crawled: {said}" in ended.err
    assert " of all runs count, and a higher limit continues with 1 queued URL" in ended.err
    assert here(*run, *without).code == 0
    assert here(*run, *limit).code == 0, "nothing is left queued"


def test_a_run_that_only_completes_a_crawl_exits_0(web: LoopbackWeb, db_path: Path, hasty: Path) -> None:
    """A crawl that was killed before its last exclusions were committed may have a robots.txt to ask for, no page."""
    web.sites["a.test"] = {"/": Page(f"<a href={web.url('b.test')}>closed</a>")}
    web.sites["b.test"] = {"/robots.txt": Page("User-agent: *\nDisallow: /\n")}
    run = ("run", web.url("a.test"), "--scope", "any", "--config", hasty, *LOOPBACK, "--db", db_path)
    assert here(*run, "--max-pages", "1").code == 0
    before = len(web.log)
    assert (here(*run, "--max-pages", "0").code, len(web.log) - before) == (0, 1), (
        "it asks for the robots.txt of b.test, and for no page"
    )


def test_a_run_that_completes_a_crawl_by_an_error_exits_0(web: LoopbackWeb, db_path: Path, hasty: Path) -> None:
    web.sites["a.test"] = {"/": Page("<a href=/gone>gone</a>")}
    run = ("run", web.url("a.test"), web.url("b.test"), "--config", hasty, *LOOPBACK, "--db", db_path)
    web.sites["b.test"] = {"/robots.txt": Page("User-agent: *\nDisallow: /\n")}
    assert here(*run, "--max-pages", "1").code == 0
    ended = here(*run, "--max-pages", "0")
    assert (ended.code, "nothing was crawled" in ended.err) == (0, False), (
        "an answer to a link came, though a seed is closed"
    )


def test_a_run_that_adds_no_page_to_a_store_exits_5(web: LoopbackWeb, db_path: Path, hasty: Path) -> None:
    common = ("--config", hasty, *LOOPBACK, "--db", db_path)
    assert here("run", web.url("a.test"), *common).code == 0
    web.sites["b.test"] = {"/robots.txt": Page("User-agent: *\nDisallow: /\n")}
    ended = here("run", web.url("b.test"), *common)
    assert ended.code == 5
    said = "1 seed was excluded: robots: line 2, Disallow: / (draft1996); "
    assert ended.err.startswith(f"crawler: nothing was crawled: {said}")


def test_a_crawl_without_a_page_counts_the_seeds_by_cause(web: LoopbackWeb, db_path: Path, hasty: Path) -> None:
    closed = Page("User-agent: *\nDisallow: /\n")
    sites = {"a.test": {}, "b.test": {"/": redirect("/gone")}, "c.test": {"/": redirect("http://out.test/")}}
    sites |= {host: {"/robots.txt": closed} for host in ("d.test", "e.test", "f.test")}
    web.sites.clear()
    web.sites.update(sites)
    options = ("--scope", "host", "--config", hasty, *LOOPBACK)
    ended = here("run", *map(web.url, sites), *options, "--db", db_path)
    assert ended.code == 5
    assert ended.err.startswith(
        "crawler: nothing was crawled: 3 seeds were excluded: robots: line 2, Disallow: / (draft1996); "
        "2 seeds failed: 404 Not Found; 1 seed was excluded: scope: "
    ), ended.err


def test_plan_tells_what_a_crawl_needs_and_sends_nothing(tmp_path: Path) -> None:
    told = crawler("plan", "http://127.0.0.1/a", "http://x.test/", "--max-pages", "10", cwd=tmp_path)
    assert told.code == 2, "a run would be refused"
    assert "2 seeds on 2 sites" in told.out
    assert "at most 10" in told.out
    plan = json.loads(crawler("plan", "http://x.test/", "--max-depth", "0", "--json", cwd=tmp_path).out)
    assert (plan["least_requests"], plan["most_pages"], plan["least_s"]) == (2, 1, 2.0)
    assert "leave out seeds at no public address, which need --allow-private: http://127.0.0.1/a" in told.err
    assert "http://x.test/ is not on loopback" in told.err
    fine = ("plan", "http://127.0.0.1/a", "--allow-private", "--json")
    accepted = crawler(*fine, cwd=tmp_path)
    assert (accepted.code, json.loads(accepted.out)["refused"]) == (0, [])
    (said,) = json.loads(crawler(*fine, "--workers", "2", "--warc", "w", cwd=tmp_path).out)["refused"]
    assert "this needs a single worker" in said
    assert list(tmp_path.iterdir()) == []
    refused = crawler("plan", cwd=tmp_path)
    assert refused.code == 2
    assert "no seeds to plan for" in refused.err
