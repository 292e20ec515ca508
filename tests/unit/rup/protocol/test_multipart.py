"""Reading forms in parts costs little, whatever a client sends."""

from __future__ import annotations

import time

from crawler.rup.protocol.forms import MAX_FIELDS, read_multipart
from crawler.rup.server.web import MAX_FORM_BYTES

FIELD = b'--X\r\nContent-Disposition: form-data; name="a"'
HOSTILE = [
    FIELD + b'; name="a"' * 2000,
    FIELD[:-1] + b';"' * 8000,
    FIELD + b";" * 16_000 + b"\r\n\r\nc",
    FIELD + b"".join(b'; name*%d="a"' % number for number in range(1300)),
    FIELD[:-1] + b'\\"' * 8000 + b"\r\n\r\nc",
    (FIELD + b';"' * 990 + b"\r\n\r\nc\r\n") * 8,
    (FIELD[:-1] + b";" * 250 + b"\r\n\r\nc\r\n") * 50,
    FIELD + b"\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"=" * 16_000,
    FIELD + b"\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\n" + b"begin 644 a\n" * 1300,
    b"--X\r\n" * 4000,
    b"--X" + b" " * 16_000 + b"y",
    b"--X\r\n" + b"a:b\r\n" * 3200 + b"\r\n",
    b"--X\r\nContent-Disposition: " + b" \r\n " * 4000,
    b"--X\r\n" + b"Content-Type: message/rfc822\r\n\r\n" * 500,
    b"--X\r\n" + b"Content-Type: multipart/mixed; boundary=X\r\n\r\n--X\r\n" * 300,
    b"\r\n" * 8000,
]
HOSTILE_TYPES = ['; boundary="' + ';"' * 4000, "; boundary=X" * 600, ';boundary="' + '\\"' * 4000]


def test_hostile_forms_cost_little() -> None:
    """The worst form takes 15 ms; one took 3 s."""
    began = time.process_time()
    for body in HOSTILE:
        read_multipart("multipart/form-data; boundary=X", body[:MAX_FORM_BYTES])
    for written in HOSTILE_TYPES:
        read_multipart("multipart/form-data" + written, HOSTILE[0])
    assert time.process_time() - began < 3


def test_a_nested_message_is_no_field() -> None:
    body = b"--X\r\n" + b"Content-Type: message/rfc822\r\n\r\n" * 5000 + FIELD + b"\r\n\r\nc\r\n--X--"
    assert read_multipart("multipart/form-data; boundary=X", body) == [("a", "c")]


def test_a_form_has_one_field_too_many_at_most() -> None:
    body = (FIELD + b"\r\n\r\nc\r\n") * 1000
    assert len(read_multipart("multipart/form-data; boundary=X", body)) == MAX_FIELDS + 1


def test_the_largest_lists_of_patterns_fit() -> None:
    """20 patterns of 200 characters, each percent-encoded in three octets."""
    assert MAX_FORM_BYTES > 20 * 200 * 3 + 1000
