"""The protocol of a connection, fed piece by piece over a transport of the test."""

from __future__ import annotations

import asyncio
import math
from unittest.mock import Mock

import pytest

from crawler.fetch.connection import (
    FRAMING_BYTES,
    FREE_READS,
    MAX_HEAD_BYTES,
    MAX_INTERIM,
    BoundExceeded,
    Connection,
    Transfer,
)
from crawler.model import Purpose, Request

OK = b"HTTP/1.1 200 OK\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
MAX_BODY = 1000


class Peer:
    """A connection on which a request was sent; :meth:`send` is what its server sends, and ``first`` came before."""

    def __init__(self, first: bytes = b"", within_s: float = math.inf) -> None:
        self.transport = Mock(spec=asyncio.Transport)
        self.transport.is_closing.return_value = False
        self.transport.get_extra_info.return_value = None  # no TLS
        self.connection = Connection(asyncio.get_running_loop())
        self.connection.connection_made(self.transport)
        if first:
            self.send(first)
        self.request(asyncio.get_running_loop().time() + within_s)

    def request(self, ends_at: float = math.inf) -> None:
        self.transfer = Transfer(Request("http://a.test/", Purpose.PAGE, 100_000), ends_at=ends_at)
        with self.transfer:
            self.connection.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                read_timeout=30,
                max_line_size=32_768,
                max_field_size=32_768,
                max_headers=256,
            )
        self.connection.start_timeout()

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.data_received(piece)

    async def answer(self) -> tuple[int, bytes]:
        async with asyncio.timeout(300):
            message, body = await self.connection.read()
            return message.code, await body.read()


@pytest.mark.parametrize("newline", [b"\r\n", b"\n"])
@pytest.mark.parametrize("interim", [b"", INTERIM, INTERIM * 3], ids=["none", "one", "three"])
async def test_an_answer_may_be_cut_at_any_octet(interim: bytes, newline: bytes) -> None:
    whole = (b"\r\n" + interim + OK + b"Content-Length: 2\r\n\r\nok").replace(b"\r\n", newline)
    for cut in range(len(whole)):
        peer = Peer()
        peer.send(whole[:cut], whole[cut:] + b"junk")
        assert await peer.answer() == (200, b"ok")
        assert peer.transport.close.called
        assert peer.connection.should_close


@pytest.mark.parametrize("newline", [b"\r\n", b"\n"])
async def test_junk_is_told_from_a_head_without_a_body_wherever_it_is_cut(newline: bytes) -> None:
    whole = b"HTTP/1.1 204 No Content\r\n\r\n".replace(b"\r\n", newline) + b"junk"
    for cut in range(len(whole)):
        peer = Peer()
        peer.send(whole[:cut], whole[cut:])
        assert await peer.answer() == (204, b"")
        assert peer.connection.should_close
        assert peer.transfer.received == len(whole) - 4


async def test_every_octet_counts_once_and_each_request_from_zero() -> None:
    chunks = OK + b"Transfer-Encoding: chunked\r\n\r\n2;extension\r\nok\r\n0\r\nTrailer: x\r\n\r\n"
    peer = Peer()
    for number in range(3):
        if number:
            peer.request()
        peer.send(INTERIM, *(bytes([octet]) for octet in chunks))
        assert await peer.answer() == (200, b"ok")
        assert peer.transfer.received == len(INTERIM + chunks)
    assert not peer.connection.should_close


async def test_interim_answers_up_to_the_bound_are_skipped() -> None:
    peer = Peer()
    peer.send(INTERIM * MAX_INTERIM + OK + b"Content-Length: 2\r\n\r\nok")
    assert await peer.answer() == (200, b"ok")


async def test_no_interim_answer_beyond_the_bound_is_parsed() -> None:
    peer = Peer()
    peer.send(INTERIM * 1000)
    assert peer.transfer.received == len(INTERIM) * (MAX_INTERIM + 1)
    assert peer.transport.abort.called
    with pytest.raises(BoundExceeded, match="more than 16 interim answers"):
        await peer.answer()


@pytest.mark.parametrize(("surplus", "fits"), [(0, True), (1, False)])
async def test_the_bound_on_headers_is_exact(surplus: int, fits: bool) -> None:
    start, end = OK + b"Content-Length: 0\r\n", b"\r\n"
    field = b"X: " + b"y" * 2043 + b"\r\n"
    count, rest = divmod(MAX_HEAD_BYTES - len(start + end), len(field))
    last = b"X: " + b"y" * (rest - 5 + surplus) + b"\r\n"
    peer = Peer()
    peer.send(start + field * (count - 1), field + last + end)
    if fits:
        assert await peer.answer() == (200, b"")
    else:
        with pytest.raises(BoundExceeded, match="more than 262,144 bytes of headers"):
            await peer.answer()


async def test_a_small_body_in_chunks_of_one_octet_is_within_the_bound() -> None:
    body = b"1\r\nx\r\n" * MAX_BODY + b"0\r\n\r\n"
    peer = Peer()
    peer.send(OK + b"Transfer-Encoding: chunked\r\n\r\n" + body)
    assert await peer.answer() == (200, b"x" * MAX_BODY)


@pytest.mark.parametrize(("size", "chunks"), [(1, 53_000), (8, 58_000), (64, 131_000)])
async def test_the_number_of_chunks_is_bounded_by_their_size(size: int, chunks: int) -> None:
    """Chunks of 96 octets and more are all read: the body pays for its framing."""
    peer = Peer()
    peer.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    _, body = await peer.connection.read()
    sent, piece = 0, (b"%x\r\n%s\r\n" % (size, b"x" * size)) * 500
    while peer.connection.exception() is None and sent < 2 * chunks:
        peer.send(piece)
        sent += 500
        if peer.connection.exception() is None:
            await body.readany()
    assert chunks * 0.9 < sent < chunks * 1.1
    with pytest.raises(BoundExceeded, match="bytes of framing for its first"):
        await body.read()


async def test_many_small_pieces_are_collected_by_the_system() -> None:
    """The transport rests after each small read, until a timer ends the rest or the pieces are no longer small."""
    peer = Peer()
    peer.send(OK + b"Content-Length: 1000000\r\n\r\n", *[b"x"] * (FREE_READS - 2))
    assert not peer.transport.pause_reading.called
    peer.send(b"x", b"x")
    assert peer.transport.pause_reading.call_count == 1
    peer.connection.resume_reading()
    assert not peer.transport.resume_reading.called, "the reader of the body does not end the rest"
    resumed = asyncio.Event()
    peer.transport.resume_reading.side_effect = resumed.set
    await resumed.wait()
    peer.send(b"x" * 100_000, b"x")
    assert peer.transport.pause_reading.call_count == 1, "the pieces are large on average"


async def test_the_time_of_the_event_loop_is_measured() -> None:
    peer = Peer()
    peer.send(OK + b"Content-Length: 2\r\n\r\nok")
    assert peer.transfer.loop_s > 0
    assert peer.transfer.reads == 1


async def test_the_bound_on_framing_does_not_count_the_body() -> None:
    """Octets of a body beyond its limit are for the reader of the body to judge, also while reading is paused."""
    peer = Peer()
    peer.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    piece = b"%x\r\n%s\r\n" % (FRAMING_BYTES, bytes(FRAMING_BYTES))
    peer.send(*[piece] * 5)  # the server does not stop, though reading was paused
    assert peer.transport.pause_reading.called
    assert peer.connection.exception() is None


async def test_a_bound_in_the_body_reaches_its_reader() -> None:
    peer = Peer()
    peer.send(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n1;")
    message, body = await peer.connection.read()
    reading = asyncio.ensure_future(body.read())
    await asyncio.sleep(0)
    peer.send(*[b"x" * 100_000] * 3)
    assert peer.transport.abort.called
    peer.connection.connection_lost(None)
    with pytest.raises(BoundExceeded, match="262,144 bytes of framing for its first 1 bytes"):
        await reading
    assert message.code == 200


async def test_a_server_that_speaks_before_the_request_has_no_more_time_to_answer_it() -> None:
    peer = Peer(OK + b"Content-Length: 2\r\n\r\n", within_s=0.01)
    async with asyncio.timeout(60):
        _, body = await peer.connection.read()
        with pytest.raises(TimeoutError):
            await body.read()


async def test_an_idle_connection_takes_nothing() -> None:
    peer = Peer()
    peer.send(OK + b"Content-Length: 2\r\n\r\nok")
    assert await peer.answer() == (200, b"ok")
    assert not peer.transport.close.called
    peer.send(OK)
    assert peer.transport.close.called
    assert peer.connection.should_close
