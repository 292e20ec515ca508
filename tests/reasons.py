"""Reasons for tests, written as the sentences that people see."""

from __future__ import annotations

from crawler.reasons import Reason, ReasonCode, StoredReason

_BEGINNINGS = {
    "mirror of": ReasonCode.MIRROR,
    "mirror cycle": ReasonCode.MIRROR_CYCLE,
    "blocked": ReasonCode.BLOCKED,
    "404": ReasonCode.NOT_FOUND,
    "410": ReasonCode.GONE,
    "gone": ReasonCode.GONE,
    "500": ReasonCode.SERVER_ERROR,
    "503": ReasonCode.SERVER_ERROR,
    "too large": ReasonCode.TOO_LARGE,
    "301": ReasonCode.REDIRECT,
    "302": ReasonCode.REDIRECT,
}


def reason(sentence: str) -> Reason:
    """The reason that is rendered as ``sentence``: by its beginning, or else a fetched URL's."""
    beginning = sentence.partition(":")[0]
    if beginning in list(ReasonCode):
        return StoredReason(ReasonCode(beginning), sentence)
    codes = (code for begins, code in _BEGINNINGS.items() if sentence.startswith(begins))
    return StoredReason(next(codes, ReasonCode.FETCHED), sentence)


def refusal(sentence: str | None) -> Reason | None:
    return None if sentence is None else reason(sentence)


def said(reason: Reason | None) -> str | None:
    """The sentence of a reason that may be none."""
    return None if reason is None else reason.sentence
