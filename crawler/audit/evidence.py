"""How the evidence of an audit is worded, on the terminal and in the document."""

from __future__ import annotations

from collections.abc import Iterator

from crawler.audit.checks import Violation
from crawler.clock import iso


def instant(epoch_s: float) -> str:
    """``2026-11-21T10:42:00.125Z``, with milliseconds because pauses can be shorter than a second."""
    whole, thousandths = divmod(round(epoch_s * 1000), 1000)
    return f"{iso(whole)[:-1]}.{thousandths:03d}Z"


def seconds(span_s: float) -> str:
    """``2 s``, ``0.125 s``, ``3,600 s``: milliseconds without trailing zeros."""
    return f"{span_s:,.3f}".rstrip("0").rstrip(".") + " s"


def evidence(violation: Violation) -> Iterator[tuple[str, str]]:
    """The evidence of a violation, as (label, fact)."""
    yield "required", violation.required
    yield "done", violation.done
    if violation.started_at is not None and violation.finished_at is not None:
        span = f"{instant(violation.started_at)} to {instant(violation.finished_at)}"
        yield "request", f"number {violation.request} of run {violation.run}, {span}"
    if violation.version_from is not None and violation.version_until is not None:
        span = f"in force {instant(violation.version_from)} to {instant(violation.version_until)}"
        yield "robots.txt", f"version {violation.version or 'without a text'}, {span}"
    if violation.line is not None:
        yield "rule", f"line {violation.line}: {violation.rule}"
    if violation.before_started_at is not None and violation.before_finished_at is not None:
        span = f"{instant(violation.before_started_at)} to {instant(violation.before_finished_at)}"
        yield "before it", f"{violation.before}, {span}"
