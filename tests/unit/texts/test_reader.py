"""The answers of parser processes about texts."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from crawler.engine.text_messages import pack_text, unpack_text
from crawler.page.texts import Content, MainText, Section
from crawler.texts.reader import TextReader, TextUnread
from tests.command import ROOT

TEXT = MainText("A", "A b", (Section(0, 1, "A", "x"),), "en", content=Content("# A\n\nb", "A\n\nb", ("/x",)))
#: A program with which a parser process divides by zero when it reads a text.
BUG = """
import crawler.page.main_text
crawler.page.main_text.clean = lambda text: 1 // 0
"""


def test_an_answer_is_unpacked() -> None:
    assert unpack_text(pack_text(TEXT)) == TEXT
    with pytest.raises(msgspec.DecodeError):
        unpack_text(b"\x00")


async def test_a_text_that_brings_a_bug_to_light_is_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(BUG)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    async with TextReader() as reader:
        with pytest.raises(TextUnread, match=r"a bug in the crawler \(ZeroDivisionError"):
            await reader.main_text("http://a.test", b"<p>a", None, "text/html")
