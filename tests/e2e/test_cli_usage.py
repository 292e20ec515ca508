"""Wrong usage ends with exit code 2 and one line that names the place and the remedy; no request, no store."""

from __future__ import annotations

import json
import resource
import sqlite3
from pathlib import Path

import pytest

from crawler.demo.pages import Page
from tests.command import LOOPBACK, crawler, here
from tests.web import LoopbackWeb

SEED = "http://a.test/"


def refused(*arguments: str | Path, stdin: bytes = b"", mistakes: int = 1) -> str:
    """What the command prints: one line, and below it one for each mistake if there are several."""
    ended = here(*arguments, stdin=stdin)
    assert ended.code == 2, ended
    assert ended.out == ""
    assert ended.err.startswith("crawler: ")
    assert ended.err.endswith("\n")
    assert ended.err.count("\n") == (1 if mistakes == 1 else 1 + mistakes), ended.err
    assert len(ended.err) < 600
    return ended.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--delay", "-1"], "--delay -1: must be a number of seconds, 0 or more"),
        (["--max-pages-per-site", "x"], "'--max-pages-per-site': 'x' is not a valid integer"),
        (["--scope", "planet"], "'--scope': 'planet' is not one of 'host', 'domain', 'prefix', 'any'"),
        (["--reading", "loose"], "'--reading': 'loose' is not one of"),
        (["--include", "("], "--include: '(' is no regular expression"),
        (["--resolve", "a.test"], "--resolve: 'a.test': write PATTERN=ADDRESS"),
        (["--db", ""], "--db: must not be empty"),
        (["--db", "mysql://x/y"], "give the path of a SQLite file, or postgresql://"),
        (["--db", "no/such/folder/crawl.db"], "the folder no/such/folder does not exist"),
        (["--config", "none.toml"], "configuration none.toml: No such file or directory"),
        (["--dely", "3"], "No such option"),
        (["--per", "site", "--seed", "3"], "--per, --seed without --sample: say how many URLs to draw"),
        (["--method", "uniform"], "--method without --sample: "),
        (["--seeds", "none.txt"], "--seeds none.txt: No such file or directory"),
        (["--seeds", "."], "--seeds .: Is a directory"),
    ],
)
def test_wrong_options(options: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in refused("run", SEED, *LOOPBACK, *options)
    assert list(tmp_path.iterdir()) == []


def test_several_wrong_options_are_reported_at_once(tmp_path: Path) -> None:
    wrong = ("--delay", "-1", "--contact", "me", "--max-pages", "-1")
    told = refused("run", SEED, "--db", tmp_path / "c.db", *wrong, mistakes=3)
    assert all(option in told for option in ("--delay -1", "--contact me", "--max-pages -1"))


def test_no_seeds_at_all(tmp_path: Path) -> None:
    assert "no seeds, and no store to go on with: name URLs, or a file with --seeds" in refused(
        "run", "--db", tmp_path / "c.db"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_crawl_outside_loopback_needs_a_contact(tmp_path: Path) -> None:
    told = refused("run", "https://example.org/", "--db", tmp_path / "c.db")
    assert "https://example.org/ is not on loopback: give a URL or an e-mail address" in told
    assert told.endswith("with --contact\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "told", "mistakes"),
    [
        (
            [],
            "--proxy needs a URL or an e-mail address at which the owner of a site can reach you, with --contact\n",
            2,
        ),
        (["--contact", "me@example.org", "--resolve", "a.test=127.0.0.1"], "--resolve has no effect with --proxy\n", 1),
    ],
)
def test_settings_that_exclude_a_proxy(options: list[str], told: str, mistakes: int, tmp_path: Path) -> None:
    proxy = ["--proxy", "http://127.0.0.1:3128", "--db", tmp_path / "c.db"]
    assert told in refused("run", SEED, *proxy, *options, mistakes=mistakes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("export", "appendix", "folder", "--table", "pages"), "an appendix is of the whole crawl"),
        (
            ("export", "csv", "pages.csv", "--study", __file__),
            "--study is for `crawler export appendix`",
        ),
        (("export", "appendix", "folder", "--study", __file__), "test_cli_usage.py: "),
        (("audit", ".", "--report", "sites.csv"), "--report and --registered need a store"),
        (("audit", "."), "no data appendix (it has no SHA256SUMS)"),
    ],
)
def test_options_of_an_appendix(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("export", "csv", "urls.csv", "--table", "ulrs"), "Did you mean urls?"),
        (("export", "cvs", "urls.csv"), "Did you mean csv?"),
        (("run", SEED, "--scope", "hots"), "Did you mean host?"),
        (("control", "puase"), "Did you mean pause?"),
        (("store", "forgte"), "Did you mean forget?"),
        (("rup", "registr"), "Did you mean register?"),
    ],
)
def test_the_nearest_word_is_named(arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(*arguments)


@pytest.mark.parametrize("command", ["status", "why"])
def test_a_missing_store(command: str, tmp_path: Path) -> None:
    url = [SEED] if command == "why" else []
    told = refused(command, *url, "--db", tmp_path / "none.db")
    assert "no such store; `crawler run --db" in told


def test_why_of_a_text_that_is_not_a_url(tmp_path: Path) -> None:
    assert "not a URL: hello" in refused("why", "hello", "--db", tmp_path / "none.db")


def test_another_sqlite_file_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    db = tmp_path / "diary.db"
    with sqlite3.connect(db) as connection:
        connection.execute("CREATE TABLE entry (day TEXT)")
    connection.close()
    before = db.read_bytes()
    assert "no crawl store; choose another --db" in refused("status", "--db", db)
    assert "no crawl store; choose another --db" in refused("run", SEED, *LOOPBACK, "--db", db)
    assert "choose another --db" in refused("demo", "--db", db)
    assert db.read_bytes() == before


# --- seeds ------------------------------------------------------------------------------------

GARBAGE = b"""\xef\xbb\xbf# a list
http://a.test:PORT/
mailto:clerk@a.test
a.test
http://a.test:PORT/ and more
\x00\x01\x02
http://a.test:PORT/b.html
"""


@pytest.fixture
def web(loopback: LoopbackWeb) -> LoopbackWeb:
    loopback.sites["a.test"] = {"/": Page("<title>A"), "/b.html": Page("<title>B")}
    return loopback


def test_bad_seeds_are_listed_with_their_lines_and_nothing_is_fetched(web: LoopbackWeb, tmp_path: Path) -> None:
    seeds, db = tmp_path / "seeds.txt", tmp_path / "c.db"
    seeds.write_bytes(GARBAGE.replace(b"PORT", str(web.port).encode()))
    ended = here("run", "--seeds", seeds, *LOOPBACK, "--db", db)
    assert (ended.code, ended.out) == (2, "")
    first, *bad = ended.err.splitlines()
    assert "seeds.txt: 4 bad lines, nothing was fetched; correct them, or skip them with --skip-bad-seeds" in first
    assert [line.split(":")[0] for line in bad] == ["  line 3", "  line 4", "  line 5", "  line 6"]
    assert web.log == []
    assert not db.exists()


def test_skip_bad_seeds_crawls_the_good_ones(web: LoopbackWeb, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(GARBAGE.replace(b"PORT", str(web.port).encode()))
    ended = here("run", "--seeds", seeds, "--skip-bad-seeds", "--delay", "0", *LOOPBACK, "--db", tmp_path / "c.db")
    assert ended.code == 0
    assert ended.err.count("skipped") == 4
    assert [hit.path for hit in web.hits("a.test")] == ["/robots.txt", "/", "/b.html"]


def test_seeds_from_standard_input(web: LoopbackWeb, tmp_path: Path) -> None:
    ended = here("run", "--seeds", "-", *LOOPBACK, "--db", tmp_path / "c.db", stdin=web.url("a.test").encode())
    assert ended.code == 0
    assert len(web.log) == 2


def test_bad_seeds_on_the_command_line(tmp_path: Path) -> None:
    ended = here("run", SEED, "a.test", "ftp://a.test/", *LOOPBACK, "--db", tmp_path / "c.db")
    assert ended.code == 2
    assert "command line: 2 bad seeds, nothing was fetched" in ended.err
    assert "  seed 2: no http:// or https:// before it; did you mean https://a.test ?" in ended.err


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only this\n"])
def test_an_empty_seed_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_bytes(content)
    assert "seeds.txt: holds no URL" in refused("run", "--seeds", tmp_path / "seeds.txt", "--db", tmp_path / "c.db")


# --- the commands without network ---------------------------------------------------------------


@pytest.mark.parametrize("command", ["robots", "page"])
def test_the_check_commands_say_what_they_need(command: str) -> None:
    assert f"{command} check needs" in refused(command, "check")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "not JSON"),
        (b"5", "must be a JSON object"),
        (b"{}", "standard input, line 1"),
    ],
)
@pytest.mark.parametrize("command", ["robots", "page"])
def test_a_malformed_case(command: str, line: bytes, told: str) -> None:
    ended = here(command, "check", "--jsonl", stdin=line + b"\n\n")
    assert ended.code == 2
    assert told in ended.err
    assert told in json.loads(ended.out)["error"]


def test_a_case_that_is_nested_too_deeply() -> None:
    ended = here("robots", "check", "--jsonl", stdin=b"[" * 100_000)
    assert (ended.code, ended.out.count("\n")) == (2, 1)
    assert "standard input, line 1: not JSON" in ended.err


def test_a_missing_file() -> None:
    assert "none.txt" in refused("robots", "check", "--file", "none.txt", SEED)


def test_the_help_of_every_command_and_the_version() -> None:
    assert here("search", "-h").out == here("search", "--help").out
    for command in ([], ["run"], ["demo"], ["status"], ["why"], ["robots", "check"], ["page", "check"]):
        ended = here(*command, "--help")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith("Usage: crawler")
    assert here("--version").out.startswith("crawler, version ")


def test_without_a_command_the_help_is_shown() -> None:
    ended = crawler()
    assert ended.code == 2
    assert "Usage: crawler" in ended.err


@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [
        (resource.RLIMIT_NOFILE, 47, "this process may open 47 files, and a crawl needs 48: raise `ulimit -n`"),
        (
            resource.RLIMIT_AS,
            449_000_000,
            "this process may use 449 MB of memory, and a crawl needs 450 MB: raise `ulimit -v`",
        ),
    ],
    ids=["files", "memory"],
)
def test_a_process_with_too_few_files_or_too_little_memory(limit: int, value: int, told: str, tmp_path: Path) -> None:
    ended = crawler("run", SEED, *LOOPBACK, cwd=tmp_path, before=lambda: resource.setrlimit(limit, (value, value)))
    assert (ended.code, ended.out, ended.err) == (2, "", f"crawler: {told}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_url_without_a_scheme_is_answered_with_the_likely_one(tmp_path: Path) -> None:
    refused = here("why", "one.test:8931/x", "--db", tmp_path / "c.db")
    assert (refused.code, "did you mean https://one.test:8931/x ?" in refused.err) == (2, True), refused.err
