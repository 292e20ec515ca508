"""The sitemap of what was found, read by an XML parser and by the crawler itself."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import pytest

from crawler.errors import UsageError
from crawler.export import sitemap
from crawler.store.keys import url_number
from tests.unit.export.conftest import PAGES, A, Exporter

NAME = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def entries(file: Path, tag: str = "url") -> dict[str, str | None]:
    root = ElementTree.parse(file).getroot()
    return {f"{entry.findtext(f'{NAME}loc')}": entry.findtext(f"{NAME}lastmod") for entry in root.iter(f"{NAME}{tag}")}


async def test_the_sitemap_has_indexable_pages_without_duplicates(save: Exporter, tmp_path: Path) -> None:
    out = tmp_path / "sitemap.xml"
    tally = await save("sitemap", out)
    found = entries(out)
    assert set(found) == {A} | {f"{A}{path}" for path in PAGES} - {f"{A}hidden", f"{A}copy"}
    assert tally.written == len(found)
    assert {url: at for url, at in found.items() if at} == {f"{A}sum": "2026-11-21T11:16:22Z"}


async def test_the_sitemap_has_present_pages_only(save: Exporter, filled: Path, tmp_path: Path) -> None:
    with sqlite3.connect(filled) as db:
        db.execute("UPDATE url SET state = 'redirected' WHERE path = '/plain'")
        db.execute("UPDATE url SET state = 'failed', reason = '403' WHERE path = '/told'")
        db.execute("UPDATE url SET state = 'queued' WHERE path = '/sum'")
    db.close()
    out = tmp_path / "sitemap.xml"
    await save("sitemap", out)
    assert {f"{A}plain", f"{A}told", f"{A}sum"} & set(entries(out)) == {f"{A}sum"}


async def test_dates(save: Exporter, filled: Path, tmp_path: Path) -> None:
    with sqlite3.connect(filled) as db:
        db.execute("UPDATE url SET lastmod = CASE path WHEN '/' THEN 86400 WHEN '/plain' THEN 9e999 ELSE -1 END")
        db.execute("UPDATE page SET last_modified = 'Sat, 99 Nov 99999 11:16:22 GMT' WHERE etag IS NULL")
    db.close()
    out = tmp_path / "sitemap.xml"
    await save("sitemap", out)
    dated = {url: at for url, at in entries(out).items() if at}
    assert dated == {A: "1970-01-02T00:00:00Z", f"{A}sum": "2026-11-21T11:16:22Z"}


async def test_many_urls_make_several_files_and_an_index(
    save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "all.xml"
    await save("sitemap", out)
    whole = entries(out)
    monkeypatch.setattr(sitemap, "URLS_PER_FILE", 4)
    await save("sitemap", out)
    parts = [tmp_path / f"all-{n}.xml" for n in (1, 2, 3)]
    assert list(entries(out, "sitemap")) == [f"{A}{part.name}" for part in parts]
    assert [len(entries(part)) for part in parts] == [4, 4, 1]
    assert {url for part in parts for url in entries(part)} == set(whole)


async def test_no_file_is_larger_than_allowed(save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "BYTES_PER_FILE", 300)
    await save("sitemap", tmp_path / "all.xml")
    parts = list(tmp_path.glob("all-*.xml"))
    assert len(parts) > 2
    assert max(part.stat().st_size for part in parts) <= 300


async def test_several_files_need_names(save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "URLS_PER_FILE", 4)
    stream = io.BytesIO()
    with pytest.raises(UsageError, match="name a file"):
        await save("sitemap", stream)
    assert stream.getvalue() == b"", "whole, or not at all"
    assert [path for path in tmp_path.iterdir() if "all" in path.name or "part" in path.name] == []


def spread(filled: Path, *sites: str) -> None:
    """Put one page each on further sites."""
    with sqlite3.connect(filled) as db:
        db.row_factory = sqlite3.Row
        site = dict(db.execute("SELECT * FROM site ORDER BY id").fetchone())
        moved = [row[0] for row in db.execute("SELECT url_id FROM page WHERE noindex = 0 ORDER BY url_id DESC")]
        for n, (name, number) in enumerate(zip(sites, moved, strict=False), 1000):
            other = site | {"id": site["id"] + n, "name": name, "host": f"{n}"}
            marks = ", ".join("?" * len(other))
            db.execute(f"INSERT INTO site ({', '.join(other)}) VALUES ({marks})", tuple(other.values()))
            there = url_number(other["id"], f"/{n}", 0)
            db.execute("UPDATE url SET id = ?, path = ? WHERE id = ?", (there, f"/{n}", number))
            db.execute("UPDATE page SET url_id = ?, canonical_url = NULL WHERE url_id = ?", (there, number))
    db.close()


async def test_each_of_several_sites_has_its_own_file(
    save: Exporter, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await save("sitemap", tmp_path / "all.xml")
    before = len(entries(tmp_path / "all.xml"))
    spread(filled, "http://b.test:81", "https://b.test:81", "http://[::1]")
    await save("sitemap", tmp_path / "all.xml")
    own = A.partition("://")[2].rstrip("/").replace(":", "-")
    named = {f"all-{own}.xml", "all-http-b.test-81.xml", "all-https-b.test-81.xml", "all-1.xml"}
    assert {path.name for path in tmp_path.glob("all-*")} == named
    assert set(entries(tmp_path / "all.xml", "sitemap")) == {
        f"{A}all-{own}.xml",
        "http://b.test:81/all-http-b.test-81.xml",
        "https://b.test:81/all-https-b.test-81.xml",
        "http://[::1]/all-1.xml",
    }
    assert [len(entries(tmp_path / name)) for name in sorted(named)] == [1, before - 3, 1, 1]
    monkeypatch.setattr(sitemap, "URLS_PER_FILE", 4)
    await save("sitemap", tmp_path / "more.xml")
    assert f"{A}more-{own}-2.xml" in entries(tmp_path / "more.xml", "sitemap")
    with pytest.raises(UsageError, match="name a file"):
        await save("sitemap", io.BytesIO())


async def test_a_page_is_left_out_that_another_stands_for(save: Exporter, filled: Path, tmp_path: Path) -> None:
    with sqlite3.connect(filled) as db:
        db.execute(
            "UPDATE url SET reason_code = 'refresh', target = (SELECT id FROM url WHERE path = '/told')"
            " WHERE path = '/plain'"
        )
    db.close()
    tally = await save("sitemap", tmp_path / "all.xml")
    assert f"{A}plain" not in entries(tmp_path / "all.xml")
    assert f"{A}told" in entries(tmp_path / "all.xml")
    assert tally.left_out_for["refreshing to another page"] == 1


async def test_what_is_left_out_is_counted_by_its_reason(save: Exporter, filled: Path, tmp_path: Path) -> None:
    with sqlite3.connect(filled) as db:
        db.execute("UPDATE url SET state = 'redirected' WHERE path = '/plain'")
        db.execute("UPDATE page SET gone_at = 1 WHERE url_id = (SELECT id FROM url WHERE path = '/told')")
    db.close()
    tally = await save("sitemap", tmp_path / "all.xml")
    assert dict(tally.left_out_for) == {
        "NOINDEX": 1,
        "gone": 1,
        "naming another page as canonical": 1,
        "redirected or failed at the last visit": 1,
    }
    assert tally.left_out == 4
