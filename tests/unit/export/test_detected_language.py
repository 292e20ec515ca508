"""The languages that a classifier sees: only where the page has a text, and only in tables of pages."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from crawler.export.languages import DetectedLanguage, LanguageDetector
from crawler.page.main_text import main_text
from crawler.page.texts import MainText
from crawler.store.sqlite.store import SqliteStore
from crawler.texts.reader import TextReader, TextUnread
from tests.unit.export.conftest import Exporter

GERMAN = "<title>x</title><script>var the = of and</script><main>Wir gehen morgen mit den Kindern in den Wald.</main>"


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector()


def test_the_text_of_a_page_is_classified(detector: LanguageDetector) -> None:
    found = detector.detect(main_text(GERMAN.encode(), "utf-8", "text/html").text)
    assert found.language == "de"
    assert 0.9 < found.confidence <= 1


def test_a_text_without_letters_has_no_language(detector: LanguageDetector) -> None:
    assert detector.detect("1 + 1 = 2") == DetectedLanguage("und", 0.0)


async def test_a_page_beyond_the_bounds_has_no_language_and_is_counted(
    save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unread(self: TextReader, site: str, body: bytes, charset: str | None, content_type: str) -> MainText:
        raise TextUnread("too long")

    monkeypatch.setattr(TextReader, "main_text", unread)
    made = await save("jsonl", tmp_path / "pages", add=("language",))
    rows = [json.loads(line) for line in (tmp_path / "pages").read_text("utf-8").split("\n")[:-1]]
    assert {row["detected_language"] for row in rows} == {None}
    assert made.unread["too long"] == sum(row["body_sha256"] is not None for row in rows) > 0


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
async def test_tables_of_pages_have_both_columns(
    save: Exporter, store: SqliteStore, tmp_path: Path, format: str
) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "pages"
    await save(format, out, add=("language",))
    if format == "jsonl":
        rows = [json.loads(line) for line in out.read_text("utf-8").split("\n")[:-1]]
    elif format == "csv":
        rows = list(csv.DictReader(out.open(newline="", encoding="utf-8")))
    else:
        rows = pq.read_table(out).to_pylist()
    kept = {row["url"]: row["body_sha256"] for row in await store.query("SELECT url, body_sha256 FROM pages")}
    assert len(rows) == len(kept) > 5
    for row in rows:
        assert bool(row["detected_language"]) == (kept[row["url"]] is not None)
        assert (row["detection_confidence"] not in (None, "")) == (kept[row["url"]] is not None)
