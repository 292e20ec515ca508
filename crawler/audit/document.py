"""The audit as a Markdown document, for example for an ethics board. Markdown is also readable as plain text.

The text stands in ``templates/audit.md.j2``. Needs Jinja2, which the extras ``report`` and ``export`` bring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from crawler.atomic_files import AtomicFiles
from crawler.audit.checks import MAX_LISTED
from crawler.audit.records import TOLERANCE_S, RunRecord
from crawler.audit.run_audit import AuditResult
from crawler.audit.run_settings import described_settings
from crawler.audit.totals import unsent_sentence
from crawler.cli.templates import template_environment
from crawler.clock import iso
from crawler.formatting import instant, many, ranges, seconds
from crawler.frontier.sample_design import amount_of
from crawler.model import RobotsAction
from crawler.reasons import ReasonCode
from crawler.terminal_text import printable
from crawler.version import VERSION


def write_report(path: Path, result: AuditResult) -> None:
    """Write the document, whole or not at all. Raises :class:`UsageError` if the file cannot be written."""
    with AtomicFiles() as files:
        files.open(path).file.write(document(result).encode(errors="backslashreplace"))


def document(result: AuditResult) -> str:
    """The document."""
    totals = result.totals
    text = _TEMPLATE.render(
        result=result,
        crawls=[run for run in result.runs if not run.is_auxiliary],
        run_rows=[_run_row(run, totals.requests_per_run) for run in result.runs],
        runs_by_settings=list(_by_settings(result.runs)),
        robots_rows=[(RobotsAction(row.action).meaning, row.answers, row.texts) for row in totals.robots_actions],
        check_rows=[(check.sentence, count.judged, count.violations) for check, count in result.counts.items()],
        closed=sum(row.urls for row in totals.exclusions if row.reason_code == ReasonCode.ROBOTS),
        blocked_rows=[
            (name, iso(since), result.standing.because.get(name, "")) for name, since in result.standing.blocked.items()
        ],
        exclusion_rows=[(_meaning(row.reason_code), row.urls) for row in totals.exclusions],
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


def _run_row(run: RunRecord, requests: dict[int, int]) -> tuple[object, ...]:
    until = "not recorded" if run.finished_at is None else iso(run.finished_at)
    return str(run.run), iso(run.started_at), until, run.ended_by or "", requests.get(run.run, 0)


def _by_settings(runs: Iterable[RunRecord]) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """The numbers of the runs that are described alike, and the description."""
    alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for run in runs:
        alike.setdefault(tuple(described_settings(run)), []).append(run.run)
    for described, numbers in alike.items():
        yield f"{'Run' if len(numbers) == 1 else 'Runs'} {', '.join(ranges(numbers))}", described


def _meaning(reason_code: str) -> str:
    try:
        return ReasonCode(reason_code).meaning
    except ValueError:  # only in a forged record
        return reason_code or "no reason recorded"


def in_markdown(value: Any) -> Any:
    """Text of unknown origin on one line; a character to which Markdown gives a meaning where it stands is escaped."""
    if isinstance(value, Markup):
        return value
    return Markup(re.sub(r"([\\`*\[\]<|]|^[>#]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", printable(str(value))))


def _code(text: str) -> Markup:
    """Text of unknown origin as inline code; the fence is longer than any run of backticks in the text."""
    line = printable(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return Markup(f"{fence}{pad}{line}{pad}{fence}")


def _environment() -> Environment:
    environment = template_environment("crawler.audit", finalize=in_markdown)
    environment.filters.update(
        code=_code,
        codes=lambda texts: Markup(", ").join(map(_code, texts)),
        figure=lambda number: f"{number:,}",
        instant=instant,
        iso=iso,
        seconds=seconds,
    )
    environment.globals.update(
        MAX_LISTED=MAX_LISTED,
        TOLERANCE_S=TOLERANCE_S,
        VERSION=VERSION,
        amount_of=amount_of,
        iso=iso,
        many=many,
        unsent_sentence=unsent_sentence,
    )
    return environment


_TEMPLATE = _environment().get_template("audit.md.j2")
