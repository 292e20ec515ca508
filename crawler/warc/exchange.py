"""A request and its answer as WARC 1.1 records, octet by octet as they were transferred.

Source: "The WARC Format 1.1" (IIPC, https://iipc.github.io/warc-specifications/). Where it is open, the records follow
the common practice of readers: a payload digest covers the payload as it is in the record, with chunks and codings.
If a body is omitted or truncated (WARC-Truncated), the headers about its length are renamed, as Common Crawl
does.
"""

from __future__ import annotations

import re

from crawler.model import Failed, NotModified, Recorded
from crawler.reasons import ErrorKind
from crawler.warc.records import (
    REQUEST,
    RESPONSE,
    WARC_FIELDS,
    Fields,
    digest,
    new_id,
    preference_fields,
    record,
    warc_date,
    warc_fields,
)

_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_HEAD = re.compile(rb"HTTP/[0-9.]+ +[1-9][0-9][0-9][ \r\n].*?\r?\n\r?\n", re.DOTALL)
_LENGTH = re.compile(rb"(?<=\n)(Content-Length)(?=[ \t]*:)", re.IGNORECASE)
_FRAMING = re.compile(rb"(?<=\n)(Content-Length|Content-Encoding|Transfer-Encoding)(?=[ \t]*:)", re.IGNORECASE)
_CUT_SHORT = {ErrorKind.TRUNCATED: "disconnect", ErrorKind.TIMEOUT: "time", ErrorKind.TOO_LARGE: "length"}


def records_of(recorded: Recorded, info_id: str, more: Fields = ()) -> list[bytes]:
    """The records of one request: response or revisit, request, and metadata with ``more``; those that apply."""
    answer, exchange = recorded.answer, recorded.answer.exchange
    common = [("WARC-Target-URI", answer.url), ("WARC-Date", warc_date(answer.started_at))]
    common.append(("WARC-Warcinfo-ID", info_id))
    if exchange is not None and exchange.address:
        common.append(("WARC-IP-Address", exchange.address))
    records: list[bytes] = []
    first = ""
    if exchange is not None and (head := _head(recorded)):
        first = new_id()
        kind, fields, block = _answered(recorded, head)
        records.append(record(kind, first, [*common, *fields], block, RESPONSE))
    if exchange is not None and exchange.request:
        number = new_id()
        fields = [("WARC-Concurrent-To", first)] if first else []
        records.append(record("request", number, common + fields, exchange.request, REQUEST))
        first = first or number
    fields = common + ([("WARC-Concurrent-To", first)] if first else [])
    records.append(record("metadata", new_id(), fields, warc_fields([*_said(recorded), *more]), WARC_FIELDS))
    return records


def _head(recorded: Recorded) -> bytes:
    """The status line and headers of the answer; empty if the answer is not HTTP, or ends within them."""
    exchange = recorded.answer.exchange
    head = exchange and _HEAD.match(exchange.response)
    return head[0] if head else b""


def _answered(recorded: Recorded, head: bytes) -> tuple[str, Fields, bytes]:
    """Type, fields and block of the record of an answer."""
    answer, exchange = recorded.answer, recorded.answer.exchange
    assert exchange is not None
    if isinstance(answer, NotModified):
        profile = ("WARC-Profile", _NOT_MODIFIED)
        return "revisit", [profile, ("WARC-Refers-To-Target-URI", answer.url)], head
    body = exchange.response[len(head) :]
    if recorded.left_out and (body or not exchange.complete):
        reason = _CUT_SHORT.get(answer.kind, "unspecified") if isinstance(answer, Failed) else "unspecified"
        return "response", [("WARC-Truncated", reason)], _renamed(head, _FRAMING)
    if not exchange.complete:
        return "response", [("WARC-Truncated", "length")], _renamed(head, _LENGTH) + body
    return "response", [("WARC-Payload-Digest", digest(body))], exchange.response


def _renamed(head: bytes, names: re.Pattern[bytes]) -> bytes:
    """The headers with these names prefixed, for a body that is missing or incomplete.

    A replayed answer with the original headers would make its reader wait for the rest of the body.
    """
    return names.sub(rb"X-Crawler-\1", head)


def _said(recorded: Recorded) -> Fields:
    answer = recorded.answer
    took_s = answer.finished_at - answer.started_at
    error = answer.error.sentence if isinstance(answer, Failed) else ""
    return [
        ("purpose", recorded.purpose),
        ("hopsFromSeed", "L" * recorded.depth),
        ("fetchTimeMs", str(round(took_s * 1000)) if took_s else ""),
        ("error", error),
        *preference_fields(recorded.preferences),
        ("bodyLeftOut", recorded.left_out if recorded.left_out != error else ""),
    ]
