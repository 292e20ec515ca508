"""Answers drawn octet by octet, from the wire to the store. ``python -m tests.fuzz answers`` judges more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.frontier.decide import Queued
from crawler.model import Kind
from crawler.reasons import ReasonCode
from tests.fuzz_answers import Case, Sent, judge, judged


async def test_answers_are_read_decided_on_and_stored(tmp_path: Path) -> None:
    assert await judged(0, range(300), tmp_path) == []


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
async def test_an_empty_body_may_have_any_coding(coding: str) -> None:
    answer = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {coding}\r\nContent-Length: 0\r\n\r\n"
    assert await _ends_by(answer.encode(), ()) is ReasonCode.FETCHED


async def test_the_broken_gzip_of_an_error_says_nothing() -> None:
    head = b"HTTP/1.1 403 No\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: 18\r\n\r\n"
    assert await _ends_by(head + b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\xff" * 8, ()) is ReasonCode.CLIENT_ERROR


async def test_a_garbled_chunk_behind_the_end_of_another_ends_the_request() -> None:
    """The library wakes the reader at the end of a chunk, and then does not tell it of the exception."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n<\r\ngarbled\r\n"
    cut = answer.index(b"\r\ngarbled")
    assert await _ends_by(answer, (cut, cut)) is ReasonCode.PROTOCOL


async def _ends_by(octets: bytes, cuts: tuple[int, ...]) -> ReasonCode:
    async with judge() as judging:
        sent = Sent(octets, cuts, is_reset=False)
        outcome = await judging.outcome(Case(0, Kind.PAGE, sent, ()), Queued(1, "http://h.test/", 1, 0))
    assert outcome is not None
    return outcome.reason.code
