"""The types that a type checker finds in a program that uses the crawler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import crawler

SCRIPT = """\
import crawler

async def main() -> None:
    try:
        async with crawler.open("crawl.db", {"politeness.delay": 5}) as crawl:
            async for page in crawl.run(seeds=["https://example.org/"], max_pages=10):
                print(page.url, page.links[0].url)
                link: crawler.Link = page.links[0]
                print(link.anchor, link.address)  # wrong
                print(page.adress)  # wrong
            crawl.run(max_pagess=10)  # wrong
            crawl.run(["https://example.org/"], max_time="2 hours", max_pages="10")  # wrong
            crawl.run([b"https://example.org/"])  # wrong
            await crawl.serach("words")  # wrong
            number: int = await crawl.body("https://example.org/")  # wrong
            async with crawl.rup("https://example.org") as subscriber:
                subscriber.sing()  # wrong
    except crawler.CrawlerError as error:
        print(error.exit_code)
    crawler.opne("crawl.db")  # wrong
    raise crawler.UsageErorr  # wrong
"""


@pytest.mark.long  # mypy reads the whole package
def test_misspellings_are_found_and_nothing_else(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(crawler.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "c", script],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = {int(line) for line in re.findall(r"script\.py:(\d+): error", done.stdout)}
    assert told == {n for n, line in enumerate(SCRIPT.splitlines(), 1) if "# wrong" in line}, done.stdout + done.stderr


def test_every_name_is_there() -> None:
    assert all(getattr(crawler, name) for name in crawler.__all__)


def test_help_shows_every_name_and_nothing_is_loaded_before(tmp_path: Path) -> None:
    look = (
        "import sys, crawler; print(*sorted({name.partition('.')[0] for name in sys.modules})); print(*dir(crawler)); "
        "import pydoc; print(pydoc.plain(pydoc.render_doc(crawler)))"
    )
    env = os.environ | {"PYTHONPATH": str(Path(crawler.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=True
    )
    loaded, names, text = done.stdout.split("\n", 2)
    assert not {"aiohttp", "aiosqlite", "asyncio", "sqlite3"} & set(loaded.split())
    assert set(crawler.__all__) <= set(names.split())
    assert "    open(db: " in text
    assert all(f"    class {name}(" in text for name in ("Link", "OpenCrawl", "Page", "PageLink", "StatementError"))
