"""The examples in README.md, docs/python.md and docs/store.md run as printed, on a site on loopback."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

from crawler.demo.pages import Page
from crawler.store.postgres.store import PostgresStore
from crawler.store.sql.schema import schema
from tests.postgres import Cluster
from tests.web import LoopbackWeb

README, STORE, PYTHON = (
    (Path(__file__).parents[2] / name).read_text() for name in ("README.md", "docs/store.md", "docs/python.md")
)


def test_the_python_example_crawls(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.M | re.S)
    pages = {"/": Page(b'<title>Home</title><a href="/two">two</a>'), "/two": Page(b"<title>Two</title>")}
    with LoopbackWeb({"home.test": pages}) as web:
        seed = web.url("home.test", "/")
        on_loopback = '"politeness.delay": 0, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True'
        there = code.replace("https://example.org/", seed).replace('"politeness.delay": 2', on_loopback)
        assert there != code
        done = subprocess.run(
            [sys.executable, "-c", there], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{seed} 200 Home 1", f"{web.url('home.test', '/two')} 200 Two 0"]
    with sqlite3.connect(tmp_path / "crawl.db") as db:
        assert db.execute("SELECT count(*) FROM pages").fetchone() == (2,)


def test_the_python_page_handles_every_page_once_despite_a_kill(tmp_path: Path) -> None:
    *_, code = re.findall(r"^```python\n(.*?)^```", PYTHON, flags=re.M | re.S)
    pages = {f"/{n}": Page(f"<title>{n}</title>".encode()) for n in range(6)}
    home = Page(b"<title>Home</title>" + b"".join(f"<a href=/{n}>{n}</a>".encode() for n in range(6)))
    with LoopbackWeb({"home.test": pages | {"/": home}}) as web:
        on_loopback = '"politeness.delay": 0, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True'
        there = code.replace("https://example.org/", web.url("home.test", "/"))
        there = there.replace('"politeness.delay": 2', on_loopback)
        noting = "(page.url, page.title))"
        killed = there.replace(noting, f"{noting}\n            if page.title == '2': import os; os._exit(9)")
        assert len({code, there, killed}) == 3
        ends = [
            subprocess.run([sys.executable, "-c", script], cwd=tmp_path, timeout=300, check=False).returncode
            for script in (killed, there)
        ]
        left = web.url("home.test", "/2")
    assert ends == [9, 0]
    with sqlite3.connect(tmp_path / "results.db") as db:
        handled = db.execute("SELECT url, title FROM titles").fetchall()
    assert sorted(title for _, title in handled) == ["0", "1", "2", "3", "4", "5", "Home"]
    assert (left, "2") in handled


def sql_examples() -> list[str]:
    blocks = re.findall(r"^```sql\n(.*?)^```", STORE, flags=re.M | re.S)
    assert len(blocks) == 3
    return [statement for block in blocks for statement in str(block).strip().removesuffix(";").split(";\n")]


async def test_the_sql_examples_run_on_postgresql(postgres: Cluster) -> None:
    store = await PostgresStore.open(postgres.make_store())
    try:
        for statement in sql_examples():
            await store.query(statement)
    finally:
        await store.close()


def test_the_sql_examples_run_on_sqlite() -> None:
    with sqlite3.connect(":memory:") as db:
        db.executescript(schema("sqlite"))
        for statement in sql_examples():
            db.execute(statement)
