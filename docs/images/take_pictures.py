"""Take the pictures of the pages from a real ``crawler demo``: ``python docs/images/take_pictures.py``.

It needs Chromium, and the extras ``dev`` and ``report``. ``record_live.py`` records the live display.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser import browser_page

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1200, 800


def crawler(*words: str) -> None:
    """Run a command to its end."""
    subprocess.run([sys.executable, "-m", "crawler", *words], check=True, stdout=subprocess.DEVNULL)


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


def main() -> None:
    """Crawl the demo's web, and take each picture."""
    with tempfile.TemporaryDirectory() as folder, browser_page() as page:
        db = f"{folder}/demo.db"
        crawler("demo", "--db", db, "--no-progress")
        crawler("index", "--db", db)
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
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
