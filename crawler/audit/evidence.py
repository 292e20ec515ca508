"""How the evidence of an audit is worded, on the terminal and in the document."""

from __future__ import annotations

from collections.abc import Iterator

from crawler.audit.checks import Violation
from crawler.formatting import instant


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
