"""Content codings: every one that is offered, in pieces of any size, within bounds."""

import gzip
import random
import sys
import zlib

import brotli
import pytest

from crawler.fetch.decoding import (
    ACCEPT_ENCODING,
    ENDS_EARLY,
    MAX_MEMBERS,
    BadCoding,
    coding_of,
    decode_gzip,
    decoder_of,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGE = b"<p>words " * 3000 + random.Random(7).randbytes(2000)


def bare_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


ENCODE = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": bare_deflate,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def decode(coding: str, data: bytes, step: int, room: int = 10**6) -> tuple[bytes, bool]:
    decoder = decoder_of(coding_of((coding,)))
    decoded = b""
    for start in range(0, len(data), step):
        decoded += decoder.feed(data[start : start + step], room - len(decoded))
        if len(decoded) == room:
            break
    return decoded, decoder.complete()


@pytest.mark.parametrize("coding", ENCODE)
@pytest.mark.parametrize("step", [1, 7, 10**6])
def test_round_trip_in_pieces(coding: str, step: int) -> None:
    assert decode(coding, ENCODE[coding](PAGE), step) == (PAGE, True)


@pytest.mark.parametrize("coding", ENCODE)
def test_a_stream_that_stops_half_way_is_not_complete(coding: str) -> None:
    whole = ENCODE[coding](PAGE)
    decoded, complete = decode(coding, whole[: len(whole) // 2], 100)
    assert PAGE.startswith(decoded)
    assert not complete


@pytest.mark.parametrize("coding", ENCODE)
def test_a_bomb_yields_no_more_than_there_is_room_for(coding: str) -> None:
    bomb = ENCODE[coding](bytes(10_000_000))
    decoded, _ = decode(coding, bomb, 10**6, room=1000)
    assert decoded == bytes(1000)


@pytest.mark.parametrize("coding", ENCODE)
def test_garbage_is_told_by_name(coding: str) -> None:
    with pytest.raises(BadCoding, match="the body is not valid"):
        decode(coding, b"\xff<html>hello, this is no compressed stream</html>" * 9, 10**6)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("step", [1, 10**6])
def test_several_members_are_one_body(coding: str, step: int) -> None:
    encode = ENCODE[coding]
    assert decode(coding, encode(b"one ") + encode(b"") + encode(b"two"), step) == (b"one two", True)
    assert decode(coding, encode(PAGE) + encode(PAGE), step, room=len(PAGE) + 3)[0] == PAGE + PAGE[:3]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("step", [1, 10**6])
def test_padding_after_the_stream_is_ignored(coding: str, step: int) -> None:
    assert decode(coding, ENCODE[coding](b"page") + bytes(20) + ENCODE[coding](b"more"), step) == (b"page", True)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_too_many_members_are_refused(coding: str) -> None:
    member = ENCODE[coding](b"x")
    assert decode(coding, member * MAX_MEMBERS, 10**6) == (b"x" * MAX_MEMBERS, True)
    with pytest.raises(BadCoding, match=f"more than {MAX_MEMBERS} {coding} streams"):
        decode(coding, member * (MAX_MEMBERS + 1), 10**6)


def test_identity_needs_no_decoder() -> None:
    for values in ([], [""], ["identity"], ["Identity, ", ""]):
        assert not coding_of(tuple(values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["gzip, gzip"], "encoded 2 times over"),
        (["gzip", "br"], "encoded 2 times over"),
        (["compress"], "encoding 'compress' was not offered"),
        (["x" * 500], "was not offered"),
    ],
)
def test_what_was_not_offered_is_refused(values: list[str], message: str) -> None:
    with pytest.raises(BadCoding, match=message) as caught:
        coding_of(tuple(values))
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("values", [["evil"], ["gzip, chunked"], ["chunked", "gzip"]])
def test_rfc9110_10_1_4_no_transfer_coding_but_chunked_is_offered(values: list[str]) -> None:
    with pytest.raises(BadCoding, match=r"transfer coding '(evil|gzip)' was not offered"):
        coding_of((), tuple(values))
    assert not coding_of((), ("Chunked", " identity,"))


def test_what_is_offered_can_be_decoded() -> None:
    assert ACCEPT_ENCODING == "gzip, deflate, br, zstd"
    assert all(decoder_of(coding_of((coding,))) for coding in ACCEPT_ENCODING.split(", "))


def test_only_one_whole_gzip_member_may_stand_for_its_body() -> None:
    member = gzip.compress(PAGE)
    assert decode_gzip(member, 10**6) == (PAGE, True)
    assert decode_gzip(member[:-1], 10**6) == ENDS_EARLY
    for behind in (b"junk", bytes(20), gzip.compress(b"")):
        assert decode_gzip(member + behind, 10**6) == (PAGE, False)


@pytest.mark.parametrize(("window_log", "accepted"), [(23, True), (24, False)])
def test_rfc9659_3_the_window_of_zstd_is_at_most_8_mb(window_log: int, accepted: bool) -> None:
    stream = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: window_log})
    encoded = stream.compress(PAGE) + stream.flush()
    if accepted:
        assert decode("zstd", encoded, 100) == (PAGE, True)
    else:
        with pytest.raises(BadCoding, match="not valid zstd with a window of at most 8 MB"):
            decode("zstd", encoded, 100)
