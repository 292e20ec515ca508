"""Texts of strangers must not control the terminal: every field, through every command, on a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from crawler.demo.pages import Page
from tests.command import HASTY, LOOPBACK, ROOT, here
from tests.web import LoopbackWeb

#: Clipboard by OSC 52, title by OSC 0, colours in seven and in eight bits, bell, right-to-left override, line and
#: paragraph separators, next line, DEL.
HOSTILE = "\x1b]52;c;cHduZWQ=\x07 \x1b]0;pwned\x1b\\ \x1b[35;43mA \x9b35;43mB \u202eC \u2028D \u2029E \x85F \x7fG"
#: The sequences that Rich sends: styles, cursor movement, erasing, hiding the cursor.
_OF_RICH = re.compile(r"\x1b\[(?!35;43m)[0-9;]*[mABKJG]|\x1b\[\?25[lh]|\r")
#: Columns that the program interprets. Nobody but the program writes them.
_CODES = {
    *(
        "state",
        "reason_code",
        "kind",
        "wait_code",
        "ended_code",
        "error_kind",
        "purpose",
        "action",
        "command",
        "method",
    ),
    *("per", "verdict_code", "evidence", "crawler_version", "settings", "processes", "key", "latency", "latencies"),
    *("max_query_span", "units", "exclude", "include_only", "authentifier", "digest", "headers"),
}
#: Names by which rows are found.
_NAMES = {"name", "site", "main_site", "path", "cgi"}


#: Runs commands one after the other, in one process because each start takes half a second.
_COMMANDS = """
import json, sys
from crawler.__main__ import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["crawler", *arguments]
    print("\\n==", ascii(arguments), flush=True)
    try:
        main()
    except SystemExit as end:
        assert end.code in (0, 1, 2, 5), end.code
"""


def on_terminal(*commands: Sequence[str | Path]) -> str:
    """The output of commands on a terminal that is their standard output and standard error."""
    given = json.dumps([[str(argument) for argument in arguments] for arguments in commands])
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", _COMMANDS, given],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
    ) as process:
        os.close(theirs)
        written = b""
        with suppress(OSError):  # EIO: the other side is closed
            while piece := os.read(ours, 65536):
                written += piece
        os.close(ours)
    assert process.returncode == 0, written
    return written.decode()


def assert_harmless(written: str) -> None:
    rest = _OF_RICH.sub("", written)
    found = {character for character in rest if not character.isprintable() and character not in "\n\t"}
    assert not found, (found, rest[-2000:])
    assert "Traceback" not in rest


def poison(db: Path) -> None:
    """Append hostile text to every text in the store, apart from codes and names."""
    with closing(sqlite3.connect(db)) as store, store:
        tables = [row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            if table.startswith(("sqlite_", "search_")):
                continue
            for _, column, kind, *_ in store.execute(f"PRAGMA table_info({table})").fetchall():
                if kind != "TEXT" or column in _CODES | _NAMES:
                    continue
                sample = store.execute(f"SELECT {column} FROM {table} WHERE {column} LIKE '{{%' OR {column} LIKE '[%'")
                if texts := [text for (text,) in sample]:  # JSON keeps its form
                    for text in texts:
                        document = json.dumps(_poisoned(json.loads(text)))
                        store.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (document, text))
                    continue
                store.execute(f"UPDATE {table} SET {column} = {column} || ? WHERE {column} IS NOT NULL", (HOSTILE,))
        store.execute("UPDATE request SET path = path || ?", (HOSTILE,))
        store.execute("UPDATE url SET path = path || ? WHERE path LIKE '/other%'", (HOSTILE,))


def _poisoned(value: object) -> object:
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, list):
        return [_poisoned(each) for each in value]
    if isinstance(value, dict):
        return {key + HOSTILE: _poisoned(each) for key, each in value.items()}
    return value


@pytest.fixture
def poisoned(loopback: LoopbackWeb, db_path: Path, tmp_path: Path) -> tuple[Path, str]:
    """A store in which every text of strangers is hostile, and the URL of its start page."""
    loopback.sites["a.test"] = {
        "/robots.txt": Page("User-agent: *\nDisallow: /private\nDisallow: private\n", content_type="text/plain"),
        "/": Page(
            "<title>start</title><meta name=description content=d><meta name=keywords content=k>"
            "<meta name=robots content=max-snippet:3><a href=/other/1>anchor</a><a href=/private>p</a>"
            "<a href=/gone>gone</a><a href=/moved>moved</a><a href=mailto:a@b.test>mail</a>"
        ),
        "/other/1": Page("<title>other</title>", headers=(("ETag", '"e"'),)),
        "/moved": Page("", status=301, headers=(("Location", "/other/1"),)),
    }
    (tmp_path / "hasty.toml").write_text(HASTY)
    start = loopback.url("a.test", "/")
    ended = here("run", start, "--db", db_path, "--config", tmp_path / "hasty.toml", *LOOPBACK)
    assert ended.code == 0, ended.err
    assert here("index", "--db", db_path).code == 0
    assert here("rank", "--db", db_path).code == 0
    poison(db_path)
    return db_path, start


def test_nothing_in_the_store_controls_a_terminal(poisoned: tuple[Path, str], tmp_path: Path) -> None:
    db, start = poisoned
    reading: list[tuple[str | Path, ...]] = [
        ("status",),
        ("status", "--json"),
        *(("why", start + path) for path in ("", "gone", "private", "moved", "other/1")),
        ("why", start, "--json"),
        ("audit",),
        ("audit", "--json"),
        ("search", "start"),
        ("search", "start", "--json"),
        ("rank",),
        ("rank", "--json"),
        ("rup", "status"),
        ("control", "block", "b.test"),
        *(("export", form, "-") for form in ("jsonl", "csv", "graphml", "edges", "sitemap")),
        *(("export", "jsonl", "-", "--table", view) for view in ("urls", "links", "requests", "runs", "robots_texts")),
        ("report", tmp_path / "report.html"),
        ("store", "copy", tmp_path / "copy.db"),
    ]
    written = on_terminal(*((*arguments, "--db", db) for arguments in reading))
    assert written.count("\ufffd]52;c;") > len(reading), "what the store holds is shown"
    assert_harmless(written)


def test_a_crawl_that_goes_on_from_such_a_store_writes_nothing_hostile(poisoned: tuple[Path, str]) -> None:
    db, start = poisoned
    assert_harmless(on_terminal(("run", start, "--db", db, "--resolve", "*.test=127.0.0.1", "--allow-private")))


def test_a_binary_export_is_not_written_to_a_terminal(poisoned: tuple[Path, str]) -> None:
    written = on_terminal(*(("export", name, "-", "--db", poisoned[0]) for name in ("warc", "wacz", "parquet")))
    assert written.count("a binary format, which a terminal cannot show; name a file, or use a pipe") == 3
    assert_harmless(written)


def test_nothing_in_a_file_controls_a_terminal(tmp_path: Path) -> None:
    robots, page, seeds = tmp_path / "robots.txt", tmp_path / "page.html", tmp_path / "seeds.txt"
    robots.write_text(f"User-agent: *\nDisallow: /a{HOSTILE}\nNonsense{HOSTILE}: x\nSitemap: {HOSTILE}\n")
    page.write_text(
        f"<title>t{HOSTILE}</title><meta name=description content='{HOSTILE}'><a href='/{HOSTILE}'>{HOSTILE}</a>"
        f"<meta name=robots content='{HOSTILE}'><link rel=canonical href='{HOSTILE}'>"
    )
    seeds.write_text(f"not a URL {HOSTILE}\nhttp://a.test/{HOSTILE}\nftp://{HOSTILE}\n")
    written = on_terminal(
        ("robots", "check", "--file", robots, f"http://a.test/a{HOSTILE}"),
        ("robots", "check", "--file", robots, f"http://a.test/a{HOSTILE}", "--json"),
        ("page", "check", page, "--url", "http://a.test/"),
        ("page", "check", page, "--url", "http://a.test/", "--json"),
        ("run", "--seeds", seeds, "--db", tmp_path / "x.db", "--max-time", "1", "--resolve", "*=127.0.0.1"),
        ("why", f"http://a.test/{HOSTILE}", "--db", tmp_path / "x.db"),
        ("why", HOSTILE, "--db", tmp_path / "x.db"),
        ("status", "--db", tmp_path / HOSTILE.replace("/", "")),
        ("run", HOSTILE, "--config", tmp_path / HOSTILE.replace("/", "")),
        ("search", HOSTILE, "--db", tmp_path / "x.db"),
        ("export", HOSTILE, "-"),
        ("hint", HOSTILE),
        ("rup", "register", HOSTILE, "--email", HOSTILE, "--db", tmp_path / "x.db"),
        ("rup", "info", f"http://{HOSTILE}"),
        (HOSTILE,),
        ("run", f"--{HOSTILE}"),
    )
    assert "allowed    http://a.test/a" in written
    assert_harmless(written)
