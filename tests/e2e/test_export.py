"""``crawler export`` after a real crawl of a loopback web, as people call it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crawler.export import FORMATS
from tests.command import HASTY, LOOPBACK, ROOT, crawler, finish, forking_python, here, start, until
from tests.web import LoopbackWeb, random_web


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the store ``crawl.db`` of four sites."""
    folder = tmp_path_factory.mktemp("crawl")
    (folder / "hasty.toml").write_text(HASTY)
    with LoopbackWeb() as loopback:
        web = random_web(5, hosts=4, pages_per_host=6, port=loopback.port)
        loopback.sites.update(web.sites)
        options = ("--db", folder / "crawl.db", "--config", folder / "hasty.toml", "--scope", "any", *LOOPBACK)
        done = crawler("run", *web.seeds, *options)
    assert done.code == 0, done.err
    return folder


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_says_what_it_wrote(crawled: Path, format: str) -> None:
    done = crawler("export", format, f"out.{format}", cwd=crawled)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"crawler: out.{format}: ")
    assert f" {FORMATS[format].counts}s in " in done.err
    written = [path for path in (crawled / f"out.{format}", *(crawled / f"out.{format}").rglob("*")) if path.is_file()]
    assert sum(path.stat().st_size for path in written) > 100
    assert list(crawled.glob("*.part")) == []


def test_standard_output(crawled: Path) -> None:
    done = crawler("export", "csv", "-", "--table", "links", "--where", "source LIKE '%/'", cwd=crawled)
    rows = list(csv.DictReader(done.out.splitlines()))
    assert done.code == 0
    assert len(rows) > 3
    assert all(row["source"].endswith("/") for row in rows)


def test_a_reader_that_has_seen_enough(crawled: Path) -> None:
    command = f"{sys.executable} -m crawler export jsonl - --add body | head -n 1"
    done = subprocess.run(
        command, shell=True, cwd=crawled, capture_output=True, timeout=300, env=environment(), check=False
    )
    assert json.loads(done.stdout)["status"] == 200
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_what_was_there(crawled: Path, number: signal.Signals) -> None:
    out = crawled / "old.csv"
    out.write_text("old")
    ages = (
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000000) SELECT max(i) FROM n) > 0"
    )
    process = start("export", "csv", out, "--db", crawled / "crawl.db", "--where", ages)
    until(lambda: bool(list(crawled.glob("*.part"))), "a draft")
    process.send_signal(number)
    assert finish(process).code == 3
    assert out.read_text() == "old"
    assert list(crawled.glob("*.part")) == []


def test_wrong_usage_is_told_in_a_line(crawled: Path) -> None:
    db = crawled / "crawl.db"
    for arguments, said in (
        (["csv", crawled / "x", "--where", "nosuch = 1"], "no such column: nosuch"),
        (["csv", crawled / "x", "--where", "1); DROP TABLE page; --"], "brackets do not match"),
        (["csv", crawled / "x", "--where", " "], "contains no condition; omit the option"),
        (["csv", db], "which is not overwritten"),
        (["warc", crawled / "x", "--table", "links"], "warc is made of pages"),
        (["xml", crawled / "x"], "is not one of"),
    ):
        done = here("export", *arguments, "--db", db)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert said in done.err
        assert not (crawled / "x").exists()
    assert here("status", "--db", db).code == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("export", "jsonl", "terminal.jsonl"), " 0 rows "),
        (("index", "--json"), " looking for changed pages "),
        (("rank", "--json"), " ranking "),
        (("report", "terminal.html"), " reading the store "),
        (("audit", "--json"), " requests judged "),
        (("store", "copy", "crawl.db", "copy.db"), " beginning "),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_progress_is_shown_on_a_terminal_and_keeps_out_of_results(
    crawled: Path, command: tuple[str, ...], said: str
) -> None:
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [forking_python(), "-m", "crawler", *command],
        cwd=crawled,
        check=False,
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=300,
        env={**environment(), "TERM": "xterm"},
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert said in shown
    assert said.strip() not in done.stdout.decode()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}
