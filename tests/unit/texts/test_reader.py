"""The answers of parser processes about texts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawler.texts.reader import TextReader, TextUnread
from tests.command import ROOT

#: Programs with which a parser process never ends to read a content, and divides by zero when it reads a text.
ENDLESS = """
import crawler.page.content
def content_of(*document):
    while True:
        pass
crawler.page.content.content_of = lambda body, *more: content_of() if body else None
"""
BUG = """
import crawler.page.main_text
crawler.page.main_text.clean = lambda text: 1 // 0
"""


async def test_a_content_beyond_the_bounds_leaves_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(ENDLESS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    async with TextReader(max_cpu_s=0.3) as reader:
        with pytest.raises(TextUnread, match="processor time"):
            await reader.content("http://a.test", b"<p>a", None, "text/html")
        assert (await reader.main_text("http://a.test", b"<p>a", None, "text/html")).text == "a"


async def test_a_text_that_brings_a_bug_to_light_is_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(BUG)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    async with TextReader() as reader:
        with pytest.raises(TextUnread, match=r"a bug in the crawler \(ZeroDivisionError"):
            await reader.main_text("http://a.test", b"<p>a", None, "text/html")
