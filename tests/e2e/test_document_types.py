"""Documents that are not HTML: wanted by type, read in bounds, found by `search`, exported as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from crawler.demo.pages import Page, plain
from crawler.frontier.request_values import TYPES
from crawler.page.headers import PDF
from crawler.page.main_text import main_text
from crawler.page.pdf import MAX_PAGES, read_pdf
from tests.command import HASTY, LOOPBACK, crawler, here
from tests.web import LoopbackWeb


def pdf(pages: Sequence[str], title: str = "") -> bytes:
    """A PDF file with these texts."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(pages)))
    objects = {
        1: "<</Type/Catalog/Pages 2 0 R>>", 2: f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        3: "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", 4: f"<</Title({title})>>",
    }  # fmt: skip
    for n, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 20 700 Td ({text}) Tj ET"
        fonts = "/Resources<</Font<</F1 3 0 R>>>>"
        objects[10 + 2 * n] = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]{fonts}/Contents {11 + 2 * n} 0 R>>"
        objects[11 + 2 * n] = f"<</Length {len(stream)}>>stream\n{stream}\nendstream"
    body, places = "%PDF-1.4\n", {}
    for n, said in objects.items():
        places[n] = len(body)
        body += f"{n} 0 obj\n{said}\nendobj\n"
    table = "".join(f"{n} 1\n{place:010d} 00000 n \n" for n, place in places.items())
    size = max(objects) + 1
    return (
        f"{body}xref\n0 1\n0000000000 65535 f \n{table}trailer\n<</Size {size}/Root 1 0 R/Info 4 0 R>>\n"
        f"startxref\n{len(body)}\n%%EOF\n"
    ).encode()


FILE = pdf(["An introduction", "The heron eats eels"], "A report on herons")


def test_pages_of_a_file_are_sections() -> None:
    found = main_text(FILE, None, PDF)
    assert found.text == "An introduction The heron eats eels"
    assert [(s.heading, s.anchor, found.text[s.start :][:3]) for s in found.sections] == [
        ("page 1", "page=1", "An "), ("page 2", "page=2", "The"),
    ]  # fmt: skip


def test_files_that_cannot_be_read_and_long_ones() -> None:
    assert read_pdf(b"%PDF-1.4 no more", 100) is None
    long = read_pdf(pdf(["word"] * (MAX_PAGES + 5)), 10**6)
    assert long is not None
    assert len(long.pages) == MAX_PAGES
    short = read_pdf(pdf(["a word", "another"]), 8)
    assert short is not None
    assert short.pages == ("a word", "an")
    assert main_text(b"\x00\x01binary", None, "application/zip").text == ""


def test_short_names_of_types() -> None:
    assert TYPES.read(["html,pdf", "text/markdown"]) == (
        "text/html", "application/xhtml+xml", "application/pdf", "text/markdown",
    )  # fmt: skip
    with pytest.raises(ValueError, match="html, pdf, text"):
        TYPES.read(["doc"])


def test_from_the_crawl_to_the_search_and_the_export(loopback: LoopbackWeb, tmp_path: Path) -> None:
    (tmp_path / "hasty.toml").write_text(HASTY)
    links = "".join(f"<a href=/{name}>{name}</a>" for name in ("r.pdf", "n.txt", "bad.pdf", "z"))
    loopback.sites["a.test"] = {
        "/": Page(f"<title>Start</title>{links}"),
        "/r.pdf": Page(FILE, content_type=PDF),
        "/bad.pdf": Page(b"%PDF-1.4 no more", content_type=PDF),
        "/n.txt": plain("Notes about the kingfisher.\n\nIt dives."),
        "/z": Page(b"PK", content_type="application/zip"),
    }
    options = ("--types", "html,pdf", "--types", "text", "--config", "hasty.toml", *LOOPBACK)
    done = crawler("run", loopback.url("a.test"), *options, cwd=tmp_path)
    assert done.code == 0, done.err
    assert crawler("index", cwd=tmp_path).code == 0
    found = json.loads(crawler("search", "heron", "--json", cwd=tmp_path).out)["hits"]
    assert [(hit["title"]["text"], hit["section"]["url"]) for hit in found] == [
        ("A report on herons", loopback.url("a.test", "/r.pdf#page=2"))
    ]
    (notes,) = json.loads(crawler("search", "kingfisher", "--json", cwd=tmp_path).out)["hits"]
    assert notes["url"].endswith("/n.txt")
    assert crawler("export", "jsonl", "pages.jsonl", "--add", "text", cwd=tmp_path).code == 0
    pages = {page["url"].rpartition("/")[2]: page for page in map(json.loads, (tmp_path / "pages.jsonl").open())}
    assert pages.keys() == {"", "r.pdf", "bad.pdf", "n.txt"}, "other types are excluded"
    assert pages["r.pdf"]["main_text"] == "An introduction\n\nThe heron eats eels"
    assert pages["n.txt"]["main_text"] == "Notes about the kingfisher.\n\nIt dives."
    assert (pages["bad.pdf"]["main_text"], pages["bad.pdf"]["note"]) == (None, "not a readable PDF file")


def test_a_missing_reader_is_named_before_the_first_request(loopback: LoopbackWeb, tmp_path: Path) -> None:
    with mock.patch("crawler.session.refusals.find_spec", return_value=None):
        ended = here("run", loopback.url("a.test"), "--types", "pdf", *LOOPBACK, "--db", tmp_path / "c.db")
    assert ended.code == 2
    assert "documents" in ended.err
