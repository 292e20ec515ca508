"""Answers that wait in the store to be read."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from crawler.model import Exchange, Fetched, TlsFacts
from crawler.store.sql.unread import answer_of, unread_row

PAGE = b"<title>x</title>"
HEADERS = (("Content-Type", "text/html"), ("ETag", '"1"'))
TLS = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", 1_900_000_000.0)
EXCHANGE = Exchange(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + PAGE, "192.0.2.1", complete=True)
ANSWER = Fetched("http://a.test/", 10.0, 11.5, HEADERS, content_type="text/html", charset="utf-8", plain=PAGE)


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER,
        replace(ANSWER, plain=None, gzipped=gzip.compress(PAGE)),
        replace(ANSWER, plain=None, gzipped=gzip.compress(PAGE), unchecked=100),
        replace(ANSWER, tls=TLS, exchange=EXCHANGE),
        replace(ANSWER, status=206, truncated=True, address="192.0.2.1", wire_bytes=900),
    ],
)
def test_an_answer_comes_back_as_it_was(answer: Fetched) -> None:
    assert answer_of(SimpleNamespace(**unread_row(7, answer))) == answer
