"""The main text of pages: blocks, Markdown, chunks, the folder, and what pages ask for."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from crawler.errors import UsageError
from crawler.export.job import Job
from crawler.export.main_text import Chunk, chunks, require_library, with_links
from crawler.page.texts import Content, MainText
from crawler.texts.reader import TextReader, TextUnread
from tests.unit.export.conftest import A, Exporter
from tests.unit.export.test_page_restrictions import filled  # noqa: F401 (pages that ask for something)


def test_links_are_whole() -> None:
    content = Content("[a](page-link:0) [b](page-link:1) [c](page-link:2)", "", ("../x\ny(1)", "#z", "http://["))
    assert with_links(content, "http://a.test/b/c/") == (
        "[a](http://a.test/b/xy%281%29) [b](http://a.test/b/c/#z) [c](http%3A%2F%2F%5B)"
    )


def test_chunks_end_at_headings_lines_sentences_and_blanks() -> None:
    parts = ["before", "# One `x` \\* [y](z)", "First sentence. Second one is longer.", "### Deep", "x" * 45]
    found = list(chunks("\n\n".join([*parts, "## Two", "- a\n- b", "```\none\n\n  two\n```"]), 25))
    one = "One x * y"
    assert found == [
        Chunk((), "before"), Chunk((one,), "First sentence."), Chunk((one,), "Second one is longer."),
        Chunk((one, "Deep"), "x" * 25), Chunk((one, "Deep"), "x" * 20),
        Chunk((one, "Two"), "- a\n- b"), Chunk((one, "Two"), "```\none\n\n  two\n```"),
    ]  # fmt: skip
    assert [chunk.text for chunk in chunks("```\none\n  two\n```", 14)] == ["```\none\n```", "```\n  two\n```"]
    assert [chunk.text for chunk in chunks("一二三。四五。六", 3)] == ["一二三", "。", "四五。", "六"]


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
    async def fail(*_: object) -> Content:
        raise KeyboardInterrupt

    await save("text", tmp_path / "out")
    before = (tmp_path / "out" / "pages.jsonl").read_text()
    monkeypatch.setattr(Job, "content_of", fail)
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
    async def read(self: TextReader, site: str, body: bytes, charset: str | None, content_type: str) -> MainText:
        if body == b"<p>body":
            raise TextUnread("too long")
        return MainText("", "x", content=Content("x", "x"))

    monkeypatch.setattr(TextReader, "main_text", read)
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
