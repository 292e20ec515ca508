"""Take the pictures of what people see from a real ``crawler demo``: ``python docs/images/take_pictures.py``.

It needs Chromium and the extra ``dev``. ``record_live.py`` records the live display.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from record_live import svg
from rich.segment import Segment

from tests.browser import browser_page

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1200, 800
COLUMNS = 104


def crawler(*words: str) -> str:
    """Run a command to its end, and return what it prints."""
    command = [sys.executable, "-m", "crawler", *words]
    wide = {**os.environ, "COLUMNS": str(COLUMNS)}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=wide).stdout


@contextmanager
def served(*words: str) -> Iterator[str]:
    """The address that a command serves while inside."""
    server = subprocess.Popen([sys.executable, "-u", "-m", "crawler", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield next(word for word in server.stdout.readline().split() if word.startswith("http://"))
    finally:
        server.terminate()
        server.wait()


def terminal(name: str, db: str, *words: str) -> None:
    """The output of a command on a crawl, as an SVG."""
    printed = crawler(*words, "--db", db).splitlines()
    cut = [line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in printed]
    drawn = svg([[[Segment(line)] for line in cut]], f"$ crawler {' '.join(words)}", f"crawler {words[0]}", COLUMNS)
    (HERE / name).write_text(drawn)


def main() -> None:
    """Crawl the demo's web, and take each picture."""
    with tempfile.TemporaryDirectory() as folder, browser_page() as page:
        db = f"{folder}/demo.db"
        shown = crawler("demo", "--db", db, "--no-progress")
        closed = next(word for word in shown.split() if word.endswith("/private/") and word.startswith("http://"))
        crawler("refresh-search", "--db", db)
        terminal("status.svg", db, "status")
        terminal("why.svg", db, "why", closed)
        crawler("report", f"{folder}/report.html", "--db", db)
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        page.goto(f"file://{folder}/report.html")
        page.screenshot(path=HERE / "report.png")
        with served("serve-search", "--db", db, "--listen", "127.0.0.1:0") as address:
            page.goto(f"{address}?q=museum")
            page.screenshot(path=HERE / "search.png")
        with served("dashboard", "--db", db, "--listen", "127.0.0.1:0") as address:
            page.goto(address)
            page.wait_for_function("document.querySelectorAll('#sites tr').length > 0 || document.title !== ''")
            page.wait_for_timeout(3000)
            page.screenshot(path=HERE / "dashboard.png")


if __name__ == "__main__":
    main()
