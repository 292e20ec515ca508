"""Archives, read by FastWARC and warcio, equal the store; and a WACZ file is what its specification says."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker

from crawler.export.wacz import search_key
from crawler.store.sqlite.store import SqliteStore
from crawler.version import VERSION
from tests.unit.export.conftest import BODIES, A, Exporter

KEPT = {url: body for url, body in BODIES.items() if body is not None}


def records(file: Path) -> list[dict[str, Any]]:
    """By FastWARC, which skips what does not match its digests."""
    with file.open("rb") as stream:
        return [
            {
                "type": record.record_type,
                "headers": dict(record.headers),
                "http": record.http_headers.asdict() if record.http_headers else None,
                "status": record.http_headers.status_code if record.http_headers else None,
                "line": record.http_headers.status_line if record.http_headers else None,
                "body": record.reader.read(),
            }
            for record in ArchiveIterator(stream, verify_digests=True)
        ]


@pytest.fixture
async def archive(save: Exporter, tmp_path: Path) -> Path:
    out = tmp_path / "pages.warc.gz"
    tally = await save("warc", out)
    assert (tally.written, tally.left_out) == (len(KEPT), 1)
    return out


async def test_bodies_equal_the_store(archive: Path, store: SqliteStore) -> None:
    responses = [record for record in records(archive) if record["type"] == WarcRecordType.response]
    assert {record["headers"]["WARC-Target-URI"]: record["body"] for record in responses} == KEPT
    with archive.open("rb") as stream:
        read = [
            (record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read())
            for record in WarcioIterator(stream, check_digests="raise")
            if record.rec_type == "response"
        ]
    assert dict(read) == KEPT
    pages = await store.query("SELECT url, body_sha256 FROM pages WHERE body_sha256 IS NOT NULL")
    assert {row["url"]: row["body_sha256"] for row in pages} == {
        url: hashlib.sha256(body).hexdigest() for url, body in read
    }


def test_warcio_finds_nothing_wrong(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Checker(Namespace(inputs=[str(archive)], verbose=True)).process_all() == 0
    assert "digest pass" in capsys.readouterr().out


def test_a_visit_is_three_records_that_belong_together(archive: Path) -> None:
    info, *rest = records(archive)
    assert info["type"] == WarcRecordType.warcinfo
    assert info["headers"]["WARC-Date"] == "2027-01-15T08:01:00.000000Z"
    said = info["body"].decode()
    assert f"software: polite-crawler/{VERSION}\r\n" in said
    assert f"http-header-user-agent: PoliteCrawler/{VERSION} (+mailto:me@example.org)\r\n" in said
    assert "Missing: other response headers, chunking" in said
    visit = [record for record in rest if record["headers"]["WARC-Target-URI"] == f"{A}sum"]
    response, request, metadata = visit
    assert [record["type"] for record in visit] == [
        WarcRecordType.response,
        WarcRecordType.request,
        WarcRecordType.metadata,
    ]
    assert {record["headers"]["WARC-Date"] for record in visit} == {"2027-01-15T07:59:59.500000Z"}
    assert {record["headers"]["WARC-Warcinfo-ID"] for record in visit} == {info["headers"]["WARC-Record-ID"]}
    assert {record["headers"].get("WARC-Concurrent-To") for record in visit} == {
        None,
        response["headers"]["WARC-Record-ID"],
    }
    assert response["line"] == "HTTP/1.1 200 OK"
    assert response["http"] == {
        "Content-Type": "text/html; charset=utf-8",
        "ETag": '"v1"',
        "Last-Modified": "Sat, 21 Nov 2026 11:16:22 GMT",
        "Content-Length": "2",
    }
    assert request["line"] == "GET /sum HTTP/1.1"
    assert (request["http"]["Host"], request["http"]["From"]) == ("a.test", "me@example.org")
    assert metadata["body"].decode().split("\r\n")[:-1] == [
        "purpose: page",
        "hopsFromSeed: L",
        "fetchTimeMs: 500",
        f"via: {A}",
        "bytesOnWire: 100",
        f"bodySha256: {hashlib.sha256(KEPT[f'{A}sum']).hexdigest()}",
        "rebuilt: from a crawl's store, see warcinfo",
    ]


def test_a_request_that_is_not_in_the_log_is_not_made_up(archive: Path) -> None:
    visit = [record for record in records(archive) if record["headers"].get("WARC-Target-URI") == f"{A}broken"]
    assert [record["type"] for record in visit] == [WarcRecordType.response, WarcRecordType.metadata]


def test_each_record_is_compressed_by_itself(archive: Path) -> None:
    stream = io.BytesIO(archive.read_bytes())
    with archive.open("rb") as file:
        offsets = [record.stream_pos for record in ArchiveIterator(file)]
    for start in offsets:
        stream.seek(start)
        assert gzip.GzipFile(fileobj=stream).read(9) == b"WARC/1.1\r"


async def test_a_name_without_gz_is_not_compressed(save: Exporter, tmp_path: Path, archive: Path) -> None:
    out = tmp_path / "pages.warc"
    await save("warc", out)
    assert out.read_bytes().startswith(b"WARC/1.1\r\n")
    assert [record["body"] for record in records(out)] == [record["body"] for record in records(archive)]


async def test_headers_cannot_be_forged(save: Exporter, filled: Path, tmp_path: Path) -> None:
    with sqlite3.connect(filled) as db:
        db.execute("UPDATE page SET etag = 'x' || char(13, 10) || 'X-Forged: 1', last_modified = 'é', status = 299")
    db.close()
    await save("warc", tmp_path / "pages.warc.gz")
    for record in records(tmp_path / "pages.warc.gz"):
        if record["type"] == WarcRecordType.response:
            assert record["status"] == 299
            assert record["http"]["ETag"] == "x X-Forged: 1"
            assert not {"X-Forged", "Last-Modified"} & set(record["http"])


async def test_a_wacz_file_agrees_with_its_manifest(save: Exporter, tmp_path: Path) -> None:
    await save("wacz", tmp_path / "crawl.wacz")
    with zipfile.ZipFile(tmp_path / "crawl.wacz") as package:
        assert package.testzip() is None
        manifest = package.read("datapackage.json")
        digest = json.loads(package.read("datapackage-digest.json"))
        assert digest == {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(manifest).hexdigest()}"}
        told = json.loads(manifest)
        assert (told["profile"], told["wacz_version"]) == ("data-package", "1.1.1")
        assert {resource["path"] for resource in told["resources"]} | {
            "datapackage.json",
            "datapackage-digest.json",
        } == {*package.namelist()}
        for resource in told["resources"]:
            data = package.read(resource["path"])
            assert resource["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
            assert resource["bytes"] == len(data)
            if resource["path"].endswith(".gz"):
                assert package.getinfo(resource["path"]).compress_type == zipfile.ZIP_STORED


async def test_the_index_of_a_wacz_file_leads_to_its_records(
    save: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.export.wacz._LINES_PER_BLOCK", 4)
    await save("wacz", tmp_path / "crawl.wacz")
    with zipfile.ZipFile(tmp_path / "crawl.wacz") as package:
        warc, index = package.read("archive/data.warc.gz"), package.read("indexes/index.cdx.gz")
        meta, *places = package.read("indexes/index.idx").decode().splitlines()
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
    lines = gzip.decompress(index).splitlines()
    assert lines == sorted(lines)
    bodies = {}
    for line in lines:
        key, at, place = line.decode().split(" ", 2)
        told = json.loads(place)
        assert key == search_key(told["url"])
        assert at == ("20270115080000" if told["url"] == f"{A}broken" else "20270115075959")
        start = int(told["offset"])
        piece = io.BytesIO(warc[start : start + int(told["length"])])
        record = next(iter(WarcioIterator(piece, check_digests="raise")))
        assert record.rec_headers.get_header("WARC-Target-URI") == told["url"]
        assert record.rec_headers.get_header("WARC-Payload-Digest") == told["digest"]
        bodies[told["url"]] = record.content_stream().read()
    assert bodies == KEPT
    assert json.loads(meta.split(" ", 2)[2])["filename"] == "index.cdx.gz"
    blocks = [json.loads(place.split(" ", 2)[2]) for place in places]
    parts = [index[block["offset"] : block["offset"] + block["length"]] for block in blocks]
    assert [len(gzip.decompress(part).splitlines()) for part in parts] == [4, 4, 2]
    assert [place.split(" ")[0] for place in places] == [lines[n].decode().split(" ")[0] for n in (0, 4, 8)]
    assert pages[0]["format"] == "json-pages-1.0"
    assert {page["url"] for page in pages[1:]} == set(KEPT)
    assert {page["ts"] for page in pages[1:]} == {"2027-01-15T07:59:59Z", "2027-01-15T08:00:00Z"}


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.example.org/index.html", "org,example)/index.html"),
        ("http://example.org/", "org,example)/"),
        ("http://www2.a.example.org:8080/A/b/?b=2&A=1&a", "org,example,a:8080)/a/b/?a&a=1&b=2"),
        ("http://wwwa.test/", "test,wwwa)/"),
        ("http://127.0.0.1/?", "1,0,0,127)/"),
    ],
)
def test_search_keys(url: str, key: str) -> None:
    assert search_key(url) == key
