"""README.md is true: its Python example runs as printed, but for the site it crawls."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

from crawler.demo.pages import Page
from crawler.store.postgres import PostgresStore
from tests.postgres import Cluster
from tests.web import LoopbackWeb

README, STORE = ((Path(__file__).parents[2] / name).read_text() for name in ("README.md", "docs/store.md"))


def test_the_python_example_crawls(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.M | re.S)
    pages = {"/": Page(b'<title>Home</title><a href="/two">two</a>'), "/two": Page(b"<title>Two</title>")}
    with LoopbackWeb({"home.test": pages}) as web:
        seed = web.url("home.test", "/")
        on_loopback = '"politeness.delay": 0, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True'
        there = code.replace("https://example.org/", seed).replace('"politeness.delay": 2', on_loopback)
        assert there != code
        done = subprocess.run(
            [sys.executable, "-c", there], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{seed} 200 Home 1", f"{web.url('home.test', '/two')} 200 Two 0"]
    with sqlite3.connect(tmp_path / "crawl.db") as db:
        assert db.execute("SELECT count(*) FROM pages").fetchone() == (2,)


def sql_examples() -> list[str]:
    blocks = re.findall(r"^```sql\n(.*?)^```", README + STORE, flags=re.M | re.S)
    assert len(blocks) == 2
    return [statement for block in blocks for statement in str(block).strip().removesuffix(";").split(";\n")]


async def test_the_sql_examples_answer_on_postgresql(postgres: Cluster) -> None:
    store = await PostgresStore.open(postgres.make_database())
    try:
        for statement in sql_examples():
            await store.query(statement)
    finally:
        await store.close()


def test_the_sql_examples_answer() -> None:
    schema = sorted((Path(__file__).parents[2] / "crawler/store/sql/sqlite").glob("0*.sql"))
    with sqlite3.connect(":memory:") as db:
        db.executescript("".join(file.read_text() for file in schema))
        for statement in sql_examples():
            db.execute(statement)
