"""The main text of pages: blocks, Markdown, chunks, the folder, and what pages ask for."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from crawler.errors import UsageError
from crawler.export.main_text import Chunk, as_markdown, as_text, chunks, require_library
from crawler.page.blocks import blocks
from crawler.page.texts import Block
from crawler.texts.reader import TextReader, TextUnread
from tests.unit.export.conftest import A, Exporter
from tests.unit.export.test_page_restrictions import filled  # noqa: F401 (pages that ask for something)

PAGE = """<html><head><title>T</title></head><body><nav><a href=/a>Menu</a></nav>
<main><h1>The page</h1><p>The first paragraph says a thing or two, and it ends here.</p>
<h2>A part</h2><p># not a heading</p><pre>code
  indented</pre></main><footer>Imprint</footer></body></html>"""


def test_navigation_is_left_out_and_structure_is_kept() -> None:
    page = blocks(PAGE.encode(), "utf-8", "text/html")
    assert [(block.kind, block.text) for block in page if block.kind == "heading"] == [
        ("heading", "The page"), ("heading", "A part"),
    ]  # fmt: skip
    text = as_text(page)
    assert "Menu" not in text
    assert "Imprint" not in text
    assert "The first paragraph says a thing or two" in text
    markdown = as_markdown(page)
    assert markdown.startswith("# The page\n\nThe first")
    assert "\n\n## A part\n\n\\# not a heading\n\n```\ncode\n  indented\n```" in markdown


ITEM = "What this option does is said here at some length, as in a manual, see <a href=/x>the other options</a>"
MENU = "<ul><li><a href=/a>Chapter one of the manual</a><li><a href=/b>Chapter two of the manual</a></ul>"
TEASERS = f"<div><ul><li><h3>Other news</h3>{ITEM}</ul></div>"


def test_a_list_of_text_is_kept_and_a_menu_is_not() -> None:
    page = f"<body>{MENU}<h1>Options</h1><p>These are the options.<ul><li>{ITEM} 1<li>{ITEM} 2</ul><p>{TEASERS}"
    found = blocks(page.encode(), "utf-8", "text/html")
    assert [block.text[-9:] for block in found if block.kind == "item"] == ["options 1", "options 2"]
    assert "Chapter" not in as_text(found)
    assert "Other news" not in as_text(found)
    nested = f"<body><p>Text<ul><li>{ITEM} 1<ul><li>{ITEM} 2</ul><li>{ITEM} 3</ul>"
    found = blocks(nested.encode(), "utf-8", "text/html")
    assert [block.text[-1:] for block in found if block.kind == "item"] == ["1", "2", "3"]


def test_other_types_and_encodings() -> None:
    assert blocks("Größe\n\nzwei".encode("latin-1"), "windows-1252", "text/plain") == [
        Block("text", "Größe"), Block("text", "zwei"),
    ]  # fmt: skip
    assert blocks(b"", None, "text/html") == []


def test_a_deep_page_does_not_end_the_export() -> None:
    html = "<main><p>a</p>" + "<ol><li>word and word and word " * 1200
    page = blocks(html.encode(), "utf-8", "text/html")
    assert max(block.level for block in page) == 50
    assert as_text(page).count("word and word and word") == 1200


def test_chunks_end_at_headings_sentences_and_blanks() -> None:
    page = [
        Block("text", "before"), Block("heading", "One", 1), Block("text", "First sentence. Second one is longer."),
        Block("heading", "Deep", 3), Block("text", "x" * 45), Block("heading", "Two", 2), Block("item", "a", 1),
        Block("item", "b", 1),
    ]  # fmt: skip
    assert list(chunks(page, 25)) == [
        Chunk((), "before"), Chunk(("One",), "First sentence."), Chunk(("One",), "Second one is longer."),
        Chunk(("One", "Deep"), "x" * 25), Chunk(("One", "Deep"), "x" * 20), Chunk(("One", "Two"), "- a\n\n- b"),
    ]  # fmt: skip
    assert all(len(chunk.text) <= 7 for chunk in chunks(page, 7))
    assert [chunk.text for chunk in chunks([Block("text", "一二三。四五。六")], 3)] == ["一二三", "。", "四五。", "六"]


async def test_a_folder_of_files_leaves_out_what_may_not_be_copied(save: Exporter, tmp_path: Path) -> None:
    tally = await save("markdown", tmp_path / "out")
    listed = [json.loads(line) for line in (tmp_path / "out" / "pages.jsonl").read_text().splitlines()]
    urls = {page["url"] for page in listed}
    assert urls >= {A, f"{A}copy", f"{A}told"}
    assert not urls & {f"{A}plain", f"{A}sum", f"{A}hidden"}, "NOARCHIVE, over, NOINDEX"
    assert len(listed) == len({page["file"] for page in listed}) == tally.written
    start = (tmp_path / "out" / next(page["file"] for page in listed if page["url"] == A)).read_text()
    assert start.startswith(f'---\nurl: "{A}"\ntitle: "Start"\n')
    assert re.search(r"\nfetched_at: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", start)
    assert start.endswith("---\n\nbody\n")


async def test_a_folder_is_replaced_if_only_an_export_wrote_there(save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "out"
    await save("markdown", out)
    await save("text", out)
    files = {json.loads(line)["file"] for line in (out / "pages.jsonl").read_text().splitlines()}
    assert {path.relative_to(out).as_posix() for path in out.rglob("*.*") if path.is_file()} == {*files, "pages.jsonl"}
    assert all(file.endswith(".txt") for file in files), "no file of the first export is left"
    (out / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"contains note\.txt, which no earlier export wrote"):
        await save("text", out)
    assert (out / "note.txt").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()


async def test_a_failed_export_leaves_the_earlier_folder(
    save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> list[Block]:
        raise KeyboardInterrupt

    await save("text", tmp_path / "out")
    before = (tmp_path / "out" / "pages.jsonl").read_text()
    monkeypatch.setattr(TextReader, "blocks", fail)
    for place in ("out", "new"):
        with pytest.raises(KeyboardInterrupt):
            await save("text", tmp_path / place)
    assert (tmp_path / "out" / "pages.jsonl").read_text() == before
    assert not (tmp_path / "new").exists()
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()


async def test_chunks_and_the_column(save: Exporter, tmp_path: Path) -> None:
    done = await save("jsonl", tmp_path / "chunks", chunk=800)
    lines = [json.loads(line) for line in (tmp_path / "chunks").read_text().splitlines()]
    found = {line["url"]: line for line in lines}
    assert (done.written, done.chunks) == (len(found), len(lines))
    assert found[A]["text"] == "body"
    assert found[A].keys() >= {"headings", "chunk", "preferences", "robots_preferences"}
    assert not found.keys() & {f"{A}plain", f"{A}sum", f"{A}hidden"}
    await save("jsonl", tmp_path / "table", add=("text",))
    rows = {row["url"]: row for row in map(json.loads, (tmp_path / "table").read_text().splitlines())}
    assert (rows[A]["main_text"], rows[f"{A}plain"]["main_text"], rows[f"{A}hidden"]["main_text"]) == (
        "body",
        None,
        None,
    )
    for wrong in ({"chunk": 10}, {"chunk": 800, "add": ("body",)}, {"add": ("text",), "table": "links"}):
        with pytest.raises(UsageError):
            await save("jsonl", tmp_path / "wrong", **wrong)
    with pytest.raises(UsageError, match="jsonl"):
        await save("csv", tmp_path / "wrong", chunk=800)


def test_a_pdf_file_without_its_reader_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(UsageError, match="documents"):
        require_library("application/pdf")


async def test_exports_go_on_without_a_page_beyond_the_bounds(
    filled: Path,  # noqa: F811
    save: Exporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read(self: TextReader, site: str, body: bytes, charset: str | None, content_type: str) -> list[Block]:
        if body == b"<p>body":
            raise TextUnread("too long")
        return [Block("text", "x")]

    monkeypatch.setattr(TextReader, "blocks", read)
    whole = await save("jsonl", tmp_path / "table", add=("text",))
    assert whole.unread == {"too long": 1}
    rows = {row["url"]: row["main_text"] for row in map(json.loads, (tmp_path / "table").read_text().splitlines())}
    assert (rows[A], len(rows)) == (None, whole.written)
    for format, options in (("text", {}), ("jsonl", {"chunk": 800})):
        made = await save(format, tmp_path / format, **options)
        assert made.unread == {"too long": 1}
    listed = (tmp_path / "text" / "pages.jsonl").read_text().splitlines()
    assert A not in {json.loads(line)["url"] for line in listed}
    assert len(listed) == made.written
