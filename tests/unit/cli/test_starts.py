"""A process loads what it needs: a command that sends nothing starts without the HTTP client.

Each test asks a fresh interpreter for its modules, so none measures time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawler.reasons import EndCode, RunEnd
from crawler.search.build_index import build_index
from crawler.settings.loading import settings_from
from crawler.settings.stored import to_record
from crawler.settings.stores import open_store
from tests.reading import TextsInProcess

SEED = "http://a.test/"
#: What no command of this test needs.
NEVER = {
    "aiohttp",
    "aiodns",
    "asyncpg",
    "cryptography",
    "email",
    "filelock",
    "importlib.resources",
    "jinja2",
    "pypdfium2",
    "pyarrow",
    "scipy",
    "crawler.engine.gate",
    "crawler.run.execution",
    "crawler.rup",
    "crawler.sitemaps",
    "crawler.store.sql.commit",
}
#: What few commands need: for a word that is spelled wrong, a file of settings, and hours.
RARE = {"difflib", "tomllib", "zoneinfo"}
PARSERS = {"selectolax", "crawler.engine.parser_pool", "crawler.page.html"}
STORES = {"sqlite3", "crawler.store.sql", "crawler.search"}
#: The commands in the order in which one interpreter runs them, each with what is not loaded yet.
COMMANDS = {
    ("--version",): NEVER | PARSERS | STORES | {"rich", "crawler.settings.settings", "crawler.robots"},
    ("--help",): NEVER | PARSERS | STORES | {"rich", "crawler.settings.settings", "crawler.robots"},
    ("run", "--help"): NEVER | PARSERS | STORES | {"rich", "crawler.robots.readings"},
    ("export", "jsonl", "-"): NEVER | PARSERS | {"rich", "crawler.export.wacz"},
    ("settings",): NEVER | PARSERS | {"rich", "crawler.robots.readings", "crawler.frontier.decide"} | RARE,
    ("status",): NEVER | PARSERS | {"crawler.robots.readings", "crawler.frontier.decide"} | RARE,
    ("why", SEED): NEVER | PARSERS | {"crawler.frontier.decide"} | RARE,
    ("rup", "status"): NEVER - {"crawler.rup"},
    ("search", "word"): NEVER - {"crawler.rup"},
    ("plan", "http://127.0.0.1/", "--allow-private"): NEVER - {"crawler.rup", "crawler.sitemaps"},
}

_RUN = """
import json, sys
from crawler.__main__ import main
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""
_IMPORT = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps([0, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded_by(script: str, argument: str) -> list[tuple[int, set[str]]]:
    """The exit codes that a fresh interpreter tells, each with the modules that it had loaded then."""
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", script, argument],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env=unmeasured,
    )
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    return [(code, set(modules)) for code, modules in told]


@pytest.fixture
async def db(tmp_path: Path) -> str:
    """A store with a run, a seed that waits, and an index."""
    path = str(tmp_path / "crawl.db")
    settings = settings_from({"store.db": path}, source="test")
    store = await open_store(settings)
    try:
        await store.start_run(to_record(settings), 1.0)
        await store.add_seeds([(SEED, None)])
        await store.end_run(RunEnd(EndCode.SIGNAL, "SIGINT"), 2.0)
        await build_index(path, store, TextsInProcess())
    finally:
        await store.close()
    return path


def test_a_command_that_sends_nothing_loads_no_http_client(db: str) -> None:
    commands = [[*words, *([] if words[-1] in ("--version", "--help") else ["--db", db])] for words in COMMANDS]
    ended = loaded_by(_RUN, json.dumps(commands))
    for (words, unneeded), (code, modules) in zip(COMMANDS.items(), ended, strict=True):
        assert code == 0, words
        assert "crawler.cli.shared" in modules
        assert unneeded & modules == set(), words
    assert {"crawler.search.results", "sqlite3"} <= modules, "a command has searched"


def test_a_parser_process_loads_only_what_reads_pages() -> None:
    """Every crawl waits for the start of one."""
    ((_, modules),) = loaded_by(_IMPORT, "crawler.engine.parser_process")
    own = {name.split(".")[1] for name in modules if name.startswith("crawler.")}
    shared = {"dates", "errors", "gunzip", "model", "preferences", "reasons", "terminal_text", "url", "version"}
    assert own == {"engine", "fetch", "page", "sitemaps"} | shared
    assert {name for name in modules if name.startswith("crawler.fetch.")} == {"crawler.fetch.decoding"}
    unneeded = {"aiohttp", "asyncio", "crawler.engine.parser_pool", "ctypes", "publicsuffixlist", "sqlite3"}
    assert unneeded.isdisjoint(modules)


def test_a_worker_loads_no_display_and_no_other_feature() -> None:
    ((_, modules),) = loaded_by(_IMPORT, "crawler.run.worker")
    allowed = {"aiohttp", "aiodns", "email", "crawler.engine.gate", "crawler.rup", "crawler.sitemaps"}
    assert "crawler.engine.gate" in modules
    further = {"rich", "selectolax", "crawler.inspect.status", "crawler.rup.protocol.forms", "crawler.rup.robot"}
    assert (NEVER - allowed | further).isdisjoint(modules)
