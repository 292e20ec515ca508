"""A real browser for tests, and texts that would do harm if they were parsed as markup."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # loading it takes a quarter of a second in each process of pytest
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")


def hostile(port: int) -> str:
    """A text that runs, loads and leaves a mark if it is parsed as markup in text, attribute, style or script."""
    load = f"<img src=http://127.0.0.1:{port}/leak onerror=\"document.title='OWNED'\">"
    return (
        f"\"'></title></style></script><script>document.title='OWNED'</script>{load}<svg onload=\"document.title=1\">"
    )


def doctor(db: Path, text: str) -> None:
    """Write the text into every column that the report shows."""
    with sqlite3.connect(db) as doctored:
        for statement in (
            "UPDATE url SET path = path || :t, reason = reason || :t",
            "UPDATE site SET name = name || :t",
            "UPDATE page SET title = :t, content_type = :t",
            "UPDATE run SET ended_by = :t, crawler_version = :t",
            "UPDATE run SET settings = json_replace(settings, '$.identity.contact', :t, '$.identity.agent', :t)",
            "UPDATE run SET settings = json_replace(settings, '$.scope.include', json_array(:t))",
            "UPDATE request SET path = path || :t, error = :t",
            "UPDATE robots_copy SET status = :t",
            "INSERT INTO mirror (site, main_site, evidence, seen_at) VALUES ('javascript:1' || :t, :t, 'host', 0)",
        ):
            doctored.execute(statement, {"t": text})
    doctored.close()


def expect(shown: Any) -> Any:
    """Playwright's assertions about ``shown``. What takes milliseconds may take longer on a busy machine."""
    from playwright.sync_api import expect

    expect.set_options(timeout=120_000)
    return expect(shown)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium that reaches only loopback. No event loop can run in this thread meanwhile."""
    options = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def browser_page(*, bypass_csp: bool = False) -> Iterator[Page]:
    """A page of :func:`chromium`. Every dialog is accepted."""
    with chromium() as browser:
        page = browser.new_page(bypass_csp=bypass_csp)
        page.on("dialog", lambda dialog: dialog.accept())
        yield page
