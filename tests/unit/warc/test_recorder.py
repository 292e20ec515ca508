"""WARC files written while crawling: what each record says, and that a crash costs no whole record."""

from __future__ import annotations

import asyncio
import errno
import gzip
import hashlib
import io
import os
from argparse import Namespace
from base64 import b32encode
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker

from crawler.clock import SystemClock
from crawler.errors import StoreError, StoreFull, UsageError
from crawler.model import (
    Exchange,
    Failed,
    Fetched,
    NotModified,
    Purpose,
    Reading,
    Recorded,
    Redirected,
)
from crawler.reasons import ErrorKind
from crawler.warc import recorder as warc_recorder
from crawler.warc.recorder import WarcFolder, repair
from tests.records import replace

NOW = 1_800_000_000.0
ASKED = b"GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n"
HEAD = b"HTTP/1.1 200 Fine  by me\r\nCONTENT-type:text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = b"00002;x=y\r\nok\r\n0\r\nTrailer: t\r\n\r\n"
ERROR = b"HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\n"
ALONE = HEAD.replace(b"Transfer-", b"X-Crawler-Transfer-")
ERROR_ALONE = ERROR.replace(b"Content-", b"X-Crawler-Content-")
ODD = b"HTTP/1.0 200 OK\ncontent-length : 9\nX-Content-Length: 8\nCONTENT-ENCODING:br\n\n"


class Still(SystemClock):
    """A clock that stands at ``NOW``."""

    def now(self) -> float:
        return NOW


def exchange(response: bytes = HEAD + BODY, *, complete: bool = True) -> Exchange:
    return Exchange(ASKED, response, "192.0.2.1", complete)


def page(path: str = "a", response: bytes = HEAD + BODY, left_out: str = "") -> Recorded:
    answer = Fetched(f"http://a.test/{path}", NOW, NOW + 0.25, plain=b"ok", exchange=exchange(response))
    return Recorded(answer, Purpose.PAGE, left_out, depth=2)


def failed(kind: ErrorKind, response: bytes | None, *, complete: bool = False, **said: Any) -> Recorded:
    made = None if response is None else exchange(response, complete=complete)
    return Recorded(Failed("http://a.test/a", NOW, NOW + 1, kind=kind, exchange=made, **said), Purpose.PAGE, "unread")


async def record(folder: Path, *batches: list[Recorded], max_file_bytes: int = 10**9) -> None:
    async with folder_at(folder, max_file_bytes) as archive:
        for batch in batches:
            await archive.record(batch)


def folder_at(folder: Path, max_file_bytes: int = 10**9) -> WarcFolder:
    return WarcFolder(
        folder,
        Still(),
        user_agent="Bot/1",
        contact="me@example.org",
        reading=Reading.STRICT,
        max_file_bytes=max_file_bytes,
    )


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.warc.gz*"))


def read(*paths: Path) -> list[tuple[str, dict[str, str], bytes]]:
    """Type, headers and block of each record, by FastWARC, which leaves out what does not match its digests."""
    found = []
    for path in paths:
        with path.open("rb") as stream:
            records = ArchiveIterator(stream, verify_digests=True, parse_http=False)
            found += [(record.headers["WARC-Type"], dict(record.headers), record.reader.read()) for record in records]
    return found


async def one(folder: Path, recorded: Recorded) -> list[tuple[str, dict[str, str], bytes]]:
    """The records made of one request, without the warcinfo."""
    await record(folder, [recorded])
    info, *rest = read(*files(folder))
    assert info[0] == "warcinfo"
    return rest


def sha1(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data).digest()).decode()


async def test_a_page_is_three_records(tmp_path: Path) -> None:
    response, request, metadata = await one(tmp_path, page())
    assert (response[0], response[2]) == ("response", HEAD + BODY)
    assert response[1]["WARC-Target-URI"] == "http://a.test/a"
    assert response[1]["WARC-Date"] == "2027-01-15T08:00:00.000000Z"
    assert response[1]["WARC-IP-Address"] == "192.0.2.1"
    assert response[1]["WARC-Payload-Digest"] == sha1(BODY)
    assert response[1]["WARC-Block-Digest"] == sha1(HEAD + BODY)
    assert (request[0], request[2]) == ("request", ASKED)
    assert metadata[2] == b"purpose: page\r\nhopsFromSeed: LL\r\nfetchTimeMs: 250\r\n"
    for other in (request, metadata):
        assert other[1]["WARC-Concurrent-To"] == response[1]["WARC-Record-ID"]


async def test_the_file_names_its_writer(tmp_path: Path) -> None:
    await record(tmp_path, [page()])
    (file,) = files(tmp_path)
    kind, headers, block = read(file)[0]
    assert (kind, headers["WARC-Filename"]) == ("warcinfo", file.name)
    for said in (b"operator: me@example.org\r\n", b"http-header-user-agent: Bot/1\r\n", b"robots: obeyed, strict"):
        assert said in block


async def test_pages_that_forbid_keeping_have_headers_only(tmp_path: Path) -> None:
    response, _, metadata = await one(tmp_path, page(left_out="the page asks that no copy is kept"))
    assert response[2] == ALONE
    assert response[1]["WARC-Truncated"] == "unspecified"
    assert "WARC-Payload-Digest" not in response[1]
    assert b"bodyLeftOut: the page asks that no copy is kept\r\n" in metadata[2]


@pytest.mark.parametrize(
    ("recorded", "truncated", "block"),
    [
        (
            failed(ErrorKind.HTTP, ERROR + b"gone!", complete=True, status=404),
            "unspecified",
            b"HTTP/1.1 404 No\r\nX-Crawler-Content-Length: 5\r\n\r\n",
        ),
        (failed(ErrorKind.TRUNCATED, HEAD + BODY[:5]), "disconnect", ALONE),
        (failed(ErrorKind.TIMEOUT, HEAD), "time", ALONE),
        (failed(ErrorKind.TOO_LARGE, HEAD + BODY), "length", ALONE),
        (
            failed(
                ErrorKind.TIMEOUT,
                b"HTTP/1.0 200 OK\ncontent-length : 9\nX-Content-Length: 8\nCONTENT-ENCODING:br\n\n",
            ),
            "time",
            b"HTTP/1.0 200 OK\nX-Crawler-content-length : 9\nX-Content-Length: 8\nX-Crawler-CONTENT-ENCODING:br\n\n",
        ),
        (
            Recorded(
                Fetched("http://a.test/robots.txt", NOW, NOW, exchange=exchange(ERROR + b"two", complete=False)),
                Purpose.ROBOTS,
            ),
            "length",
            ERROR_ALONE + b"two",
        ),
        (failed(ErrorKind.HTTP, ERROR, complete=True), None, ERROR),
        (Recorded(Redirected("http://a.test/", NOW, NOW, exchange=exchange(ERROR)), Purpose.PAGE, "x"), None, ERROR),
        (
            Recorded(
                Fetched("http://a.test/robots.txt", NOW, NOW, exchange=exchange(HEAD + BODY[:9], complete=False)),
                Purpose.ROBOTS,
            ),
            "length",
            HEAD + BODY[:9],
        ),
    ],
)
async def test_truncation_has_a_reason(tmp_path: Path, recorded: Recorded, truncated: str | None, block: bytes) -> None:
    response = (await one(tmp_path, recorded))[0]
    assert (response[0], response[2], response[1].get("WARC-Truncated")) == ("response", block, truncated)


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nHalf a hea", b"not HTTP at all\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n"]
)
async def test_without_an_answer_there_is_no_response(tmp_path: Path, answer: bytes) -> None:
    request, metadata = await one(tmp_path, failed(ErrorKind.CONNECT, answer, detail="it broke\r\nForged: 1"))
    assert (request[0], metadata[0]) == ("request", "metadata")
    assert metadata[1]["WARC-Concurrent-To"] == request[1]["WARC-Record-ID"]
    assert b"error: it broke Forged: 1\r\n" in metadata[2]


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: s=" + b"a" * 9000 + b"\r\n\r\n",
        b"HTTP/1.1 200\nBad Header\nOdd : 1\n\n",
    ],
)
async def test_of_an_answer_that_the_parser_refuses_the_headers_are_kept(tmp_path: Path, head: bytes) -> None:
    refused = failed(ErrorKind.PROTOCOL, head + b"okEXTRA", detail="the answer is not HTTP within limits")
    response, _, metadata = await one(tmp_path, refused)
    assert response[2] == head.replace(b"Content-", b"X-Crawler-Content-")
    assert response[1]["WARC-Truncated"] == "unspecified"
    assert b"error: the answer is not HTTP within limits\r\n" in metadata[2]
    (file,) = files(tmp_path)
    assert Checker(Namespace(inputs=[str(file)], verbose=False)).process_all() == 0


async def test_an_unsent_request_is_noted_in_metadata(tmp_path: Path) -> None:
    (metadata,) = await one(tmp_path, failed(ErrorKind.DNS, None, detail="no such name"))
    assert (metadata[0], metadata[1]["WARC-Target-URI"]) == ("metadata", "http://a.test/a")
    assert b"error: no such name\r\n" in metadata[2]


async def test_not_modified_is_a_revisit(tmp_path: Path) -> None:
    head = b"HTTP/1.1 304 Same\r\nETag: x\r\n\r\n"
    answer = NotModified("http://a.test/robots.txt", NOW, NOW, exchange=exchange(head))
    revisit = (await one(tmp_path, Recorded(answer, Purpose.ROBOTS, "unread")))[0]
    assert (revisit[0], revisit[2]) == ("revisit", head)
    assert revisit[1]["WARC-Profile"].endswith("/revisit/server-not-modified")


async def test_other_readers_find_nothing_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = HEAD + b"2\r\nok\r\n0\r\n\r\n"  # warcio does not know the trailers of chunks
    batch = [
        page("a", plain),
        page("b", plain),
        page("c", left_out="asked"),
        failed(ErrorKind.HTTP, ERROR + b"gone!", status=404),
    ]
    await record(tmp_path, batch, batch)
    (file,) = files(tmp_path)
    assert Checker(Namespace(inputs=[str(file)], verbose=True)).process_all() == 0
    assert "digest pass" in capsys.readouterr().out
    with file.open("rb") as stream:
        bodies = [
            record.content_stream().read()
            for record in WarcioIterator(stream, check_digests="raise")
            if record.rec_type == "response"
        ]
    assert bodies == [b"ok", b"ok", b"", b""] * 2


async def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    await record(tmp_path, *([page(str(n), HEAD + os.urandom(500))] for n in range(10)), max_file_bytes=3000)
    found = files(tmp_path)
    assert len(found) > 2
    assert [path.name for path in found] == [f"crawl-20270115080000-{n:05}.warc.gz" for n in range(len(found))]
    assert all(read(path)[0][0] == "warcinfo" for path in found)
    assert [kind for kind, _, _ in read(*found)].count("response") == 10


@pytest.mark.slow
async def test_a_crash_at_any_octet_costs_no_whole_record(tmp_path: Path) -> None:
    await record(tmp_path / "whole", [page("a"), page("b")])
    (file,) = files(tmp_path / "whole")
    data, ends = file.read_bytes(), [0]
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        member = warc_recorder.member()
        rest = stream.read()
        member.decompress(rest)
        stream.seek(len(data) - len(member.unused_data))
        ends.append(stream.tell())
    assert len(ends) == 8
    torn = tmp_path / "x.warc.gz.open"
    for cut in {*range(0, len(data), 7), *ends, *(end - 1 for end in ends[1:])}:
        for tail in (b"", bytes(10)):  # zeros: a file that had grown when the power went
            torn.write_bytes(left := data[:cut] + tail)
            repair(torn)
            whole = max(end for end in ends if left[:end] == data[:end])
            mended = tmp_path / "x.warc.gz"
            assert (mended.read_bytes() if mended.exists() else b"") == data[:whole]
            mended.unlink(missing_ok=True)


async def test_the_next_run_mends_and_goes_on_in_a_file_of_its_own(tmp_path: Path) -> None:
    await record(tmp_path, [page("a")])
    (file,) = files(tmp_path)
    file.rename(torn := file.with_name(file.name + ".open"))
    torn.write_bytes(torn.read_bytes()[:-5])
    await record(tmp_path, [page("b")])
    assert [path.name for path in files(tmp_path)] == [file.name, file.name.replace("00000", "00001")]
    assert [kind for kind, _, _ in read(file)] == ["warcinfo", "response", "request"]
    assert gzip.decompress(file.read_bytes())


async def test_a_folder_is_one_crawls(tmp_path: Path) -> None:
    async with folder_at(tmp_path):
        with pytest.raises(UsageError, match="another crawl is recording into it"):
            await record(tmp_path)


async def test_a_path_that_cannot_be_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "none" / "deeper"):
        with pytest.raises(UsageError, match=r"output\.warc = .*: cannot be written"):
            await record(place)


async def test_a_disk_that_fails_ends_the_run_and_the_next_one_mends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async with folder_at(tmp_path) as archive:
        await archive.record([page("a")])
        with monkeypatch.context() as patch:
            patch.setattr(warc_recorder.os, "fsync", broken)
            with pytest.raises(StoreError, match="Input/output error; what was committed is kept"):
                await archive.record([page("b")])
    (left,) = files(tmp_path)
    assert left.name.endswith(".open")
    await record(tmp_path, [replace(page("c"), left_out="asked")])
    assert not list(tmp_path.glob("*.open"))
    assert len(files(tmp_path)) == 2


@pytest.mark.parametrize("before", [0, 1], ids=["of a new file", "of a file with records"])
async def test_a_batch_that_a_full_disk_did_not_take_may_be_tried_again(
    before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with folder_at(tmp_path) as archive:
        for _ in range(before):
            await archive.record([page("a")])
        with monkeypatch.context() as patch:
            patch.setattr(warc_recorder.os, "fsync", full)
            for _ in range(2):
                with pytest.raises(StoreFull, match="No space left on device; what was committed is kept"):
                    await archive.record([page("b"), page("c", HEAD + b"other")])
        await archive.record([page("b"), page("c", HEAD + b"other")])
    (file,) = files(tmp_path)
    kinds = [kind for kind, _, _ in read(file)]
    assert (kinds[0], kinds.count("warcinfo"), kinds.count("request")) == ("warcinfo", 1, before + 2)
    assert kinds.count("response") == before + 2


async def test_a_cancelled_writer_does_not_damage_a_file(tmp_path: Path) -> None:
    async with folder_at(tmp_path) as archive:
        task = asyncio.create_task(archive.record([page(str(n), HEAD + os.urandom(9000)) for n in range(200)]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert all(kind for kind, _, _ in read(*files(tmp_path)))
    assert not list(tmp_path.glob("*.open"))


async def test_foreign_files_are_kept(tmp_path: Path) -> None:
    names = ("other.warc.gz.open", "crawl-2026-00000.warc.gz.open", "crawl-20260101000000-00000.warc.gz.open.bak")
    for name in names:
        (tmp_path / name).write_bytes(b"somebody else's")
    folder = tmp_path / "crawl-20260101000000-00000.warc.gz.open"
    folder.mkdir()
    (tmp_path / "crawl-20260101000000-00001.warc.gz.open").write_bytes(b"half a record of ours")
    await record(tmp_path, [page()])
    assert {(tmp_path / name).read_bytes() for name in names} == {b"somebody else's"}
    assert folder.is_dir()
    assert not (tmp_path / "crawl-20260101000000-00001.warc.gz.open").exists()
