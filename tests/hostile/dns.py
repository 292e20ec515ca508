"""Names whose DNS answers are hostile, and the few octets of DNS that this needs (RFC 1035)."""

from __future__ import annotations

BEHAVIOURS = ()


def name_of(query: bytes) -> str:
    """The name in the question, in lower case; empty for octets that are no query."""
    labels, at = [], 12
    while at < len(query) and (size := query[at]):
        labels.append(query[at + 1 : at + 1 + size].decode("latin-1").lower())
        at += size + 1
    return ".".join(labels)


def no_such_name(query: bytes) -> bytes:
    """NXDOMAIN."""
    return reply(query, code=3)


def reply(query: bytes, *answers: bytes, code: int = 0, flags: int = 0x8180) -> bytes:
    """An answer to ``query`` with these resource records."""
    question = query[12:]
    end = question.index(b"\0") + 5
    counts = (1).to_bytes(2) + len(answers).to_bytes(2) + bytes(4)
    return query[:2] + (flags | code).to_bytes(2) + counts + question[:end] + b"".join(answers)
