"""A request and its answer as WARC 1.1 records, octet by octet as they were transferred.

Source: "The WARC Format 1.1" (IIPC, https://iipc.github.io/warc-specifications/). Where it is open, the records follow
the common practice of readers: a payload digest covers the payload as it is in the record, with chunks and codings.
This module does not use warcio, which parses HTTP headers and writes them anew, because the records must keep every
octet. If a body is omitted or truncated (WARC-Truncated), the headers about its length are renamed, as Common Crawl
does.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from base64 import b32encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crawler.export.warc import preference_fields, warc_date, warc_fields
from crawler.model import Failed, NotModified, Purpose, Recorded
from crawler.reasons import ErrorKind

_PROFILE = "http://netpreserve.org/warc/1.1/revisit/"
_HEAD = re.compile(rb"HTTP/[0-9.]+ +[1-9][0-9][0-9][ \r\n].*?\r?\n\r?\n", re.DOTALL)
_LENGTH = re.compile(rb"(?<=\n)(Content-Length)(?=[ \t]*:)", re.IGNORECASE)
_FRAMING = re.compile(rb"(?<=\n)(Content-Length|Content-Encoding|Transfer-Encoding)(?=[ \t]*:)", re.IGNORECASE)
_CUT_SHORT = {ErrorKind.TRUNCATED: "disconnect", ErrorKind.TIMEOUT: "time", ErrorKind.TOO_LARGE: "length"}

Fields = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload that the archive contains completely: its digest, and the URL and date of its record."""

    digest: str
    url: str
    date: str


@dataclass(frozen=True, slots=True)
class ExchangeRecords:
    """The records of an exchange in order, and the payload that is new in the archive."""

    records: list[bytes]
    payload: Payload | None = None


def warcinfo(filename: str, fields: Sequence[tuple[str, str]], now: float) -> tuple[str, bytes]:
    """The id and the content of the first record of a file. ``now`` is in seconds since the epoch."""
    number = _number()
    head = [("WARC-Date", warc_date(now)), ("WARC-Filename", filename)]
    return number, _record("warcinfo", number, head, warc_fields(fields), "application/warc-fields")


def records_of(recorded: Recorded, info_id: str, seen: Callable[[str], Payload | None]) -> ExchangeRecords:
    """The records of one request: response or revisit, request, and metadata; those that apply.

    ``seen`` returns the archived payload with a digest, if there is one.
    """
    answer, exchange = recorded.answer, recorded.answer.exchange
    common = [("WARC-Target-URI", answer.url), ("WARC-Date", warc_date(answer.started_at))]
    common.append(("WARC-Warcinfo-ID", info_id))
    if exchange is not None and exchange.address:
        common.append(("WARC-IP-Address", exchange.address))
    records: list[bytes] = []
    first = ""
    payload = None
    if exchange is not None and (head := _head(recorded)):
        first = _number()
        kind, fields, block, payload = _answered(recorded, head, seen)
        records.append(_record(kind, first, common + fields, block, "application/http;msgtype=response"))
    if exchange is not None:
        number = _number()
        fields = [("WARC-Concurrent-To", first)] if first else []
        records.append(
            _record("request", number, common + fields, exchange.request, "application/http;msgtype=request")
        )
        first = first or number
    fields = common + ([("WARC-Concurrent-To", first)] if first else [])
    records.append(_record("metadata", _number(), fields, warc_fields(_said(recorded)), "application/warc-fields"))
    return ExchangeRecords(records, payload)


def _head(recorded: Recorded) -> bytes:
    """The status line and headers of the answer; empty if the answer is not HTTP, or ends within them."""
    exchange = recorded.answer.exchange
    head = exchange and _HEAD.match(exchange.response)
    return head[0] if head else b""


def _answered(
    recorded: Recorded, head: bytes, seen: Callable[[str], Payload | None]
) -> tuple[str, Fields, bytes, Payload | None]:
    """Type, fields and block of the record of an answer, and its payload if no earlier record has the same."""
    answer, exchange = recorded.answer, recorded.answer.exchange
    assert exchange is not None
    if isinstance(answer, NotModified):
        profile = ("WARC-Profile", f"{_PROFILE}server-not-modified")
        return "revisit", [profile, ("WARC-Refers-To-Target-URI", answer.url)], head, None
    body = exchange.response[len(head) :]
    if recorded.left_out and (body or not exchange.complete):
        reason = _CUT_SHORT.get(answer.kind, "unspecified") if isinstance(answer, Failed) else "unspecified"
        return "response", [("WARC-Truncated", reason)], _renamed(head, _FRAMING), None
    if not exchange.complete:
        return "response", [("WARC-Truncated", "length")], _renamed(head, _LENGTH) + body, None
    payload = Payload(_digest(body), answer.url, warc_date(answer.started_at))
    fields = [("WARC-Payload-Digest", payload.digest)]
    if not body or recorded.purpose is Purpose.ROBOTS:  # every robots.txt that was obeyed is archived in full
        return "response", fields, exchange.response, None
    before = seen(payload.digest)
    if before is not None:
        fields.append(("WARC-Profile", f"{_PROFILE}identical-payload-digest"))
        fields += [("WARC-Refers-To-Target-URI", before.url), ("WARC-Refers-To-Date", before.date)]
        return "revisit", fields, head, None
    return "response", fields, exchange.response, payload


def _renamed(head: bytes, names: re.Pattern[bytes]) -> bytes:
    """The headers with these names prefixed, for a body that is missing or incomplete.

    A replayed answer with the original headers would make its reader wait for the rest of the body.
    """
    return names.sub(rb"X-Crawler-\1", head)


def _said(recorded: Recorded) -> Fields:
    answer = recorded.answer
    error = answer.error.sentence if isinstance(answer, Failed) else ""
    return [
        ("purpose", recorded.purpose),
        ("hopsFromSeed", "L" * recorded.depth),
        ("fetchTimeMs", str(round((answer.finished_at - answer.started_at) * 1000))),
        ("error", error),
        *preference_fields(recorded.preferences),
        ("bodyLeftOut", recorded.left_out if recorded.left_out != error else ""),
    ]


def _record(kind: str, number: str, fields: Fields, block: bytes, content_type: str) -> bytes:
    head = [
        ("WARC-Type", kind),
        ("WARC-Record-ID", number),
        *fields,
        ("WARC-Block-Digest", _digest(block)),
        ("Content-Type", content_type),
        ("Content-Length", str(len(block))),
    ]
    lines = "".join(f"{name}: {value}\r\n" for name, value in head)
    return b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def _number() -> str:
    return f"<{uuid.uuid4().urn}>"


def _digest(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()
