"""``crawler audit``: replay the request log, and tell whether every rule was kept. Only reads.

What is judged and how, and what cannot be proven: ``docs/audit.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crawler.audit import log_reader as audit_log
from crawler.audit.evidence import evidence
from crawler.audit.log_reader import RunCount
from crawler.audit.records import TITLES, Check, CheckCount, RunRecord, Violation
from crawler.audit.replay import Replay
from crawler.audit.restrictions import Restrictions
from crawler.audit.totals import LogTotals, read_totals
from crawler.formatting import many, seconds
from crawler.store.protocols import Store

#: Violations kept with their evidence; more are counted. A log so broken needs no longer list.
LISTED = 10_000


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result. ``at`` is when the log was read, in seconds since the epoch."""

    at: float
    runs: Sequence[RunRecord]
    tally: dict[Check, CheckCount]
    violations: list[Violation]
    history: LogTotals
    sha256: str
    limits: list[str] = field(default_factory=list)

    @property
    def broken(self) -> int:
        """How many violations there are, listed or not."""
        return sum(tally.violations for tally in self.tally.values())


async def audit(store: Store, now: float) -> AuditResult:
    """Replay the whole log of a store. Raises :class:`crawler.errors.UsageError` for runs without readable settings."""
    async with audit_log.snapshot(store):
        runs = await audit_log.runs(store)
        restraints = Restrictions.of(await store.control.orders())
        judge = Replay({run.run: run for run in runs}, await audit_log.blind(store), restraints)
        counts = await audit_log.counts(store)
        violations = await _whole_log(store, judge, counts)
        forged: set[str] = set()
        async for piece in audit_log.slices(store, runs):
            for sha256 in piece.forged - forged:
                _note(judge, violations, "a text that has the SHA-256 recorded for it", f"version {sha256} has another")
            forged |= piece.forged
            for found in judge.judge(piece.events, piece.texts):
                if len(violations) < LISTED:
                    violations.append(found)
        violations.sort(key=lambda found: (found.started_at or 0.0, found.request or 0))
        history = await read_totals(store)
        sha256 = await audit_log.canonical_sha256(store)
        limits = [*_uncounted(counts), *_limits(runs, judge.tally, history)]
    return AuditResult(now, runs, judge.tally, violations, history, sha256, limits)


async def _whole_log(store: Store, judge: Replay, counts: Sequence[RunCount]) -> list[Violation]:
    """Requests are numbered from 1 and counted, and none is ever removed: one that lacks was taken out by somebody."""
    held, placed, last = await audit_log.numbering(store)
    violations: list[Violation] = []
    if held != last:
        _note(judge, violations, "requests numbered from 1 without a gap", f"{last - held:,} of {last:,} missing")
    for run, logged, counted in counts:
        if counted is not None and counted != logged:
            required = f"as many requests of run {run} as were counted when they were logged: {counted:,}"
            _note(judge, violations, required, f"the log has {logged:,}")
    if placed != held:
        _note(
            judge, violations, "a site for every request", f"{many(held - placed, 'request')} without one, not judged"
        )
    return violations


def _uncounted(counts: Sequence[RunCount]) -> list[str]:
    """Runs of early stores, whose requests nobody counted."""
    early = [run for run, logged, counted in counts if logged and counted is None]
    if not early:
        return []
    which = f"run {early[0]}" if len(early) == 1 else f"{len(early):,} runs, {_listed(early)},"
    return [f"The requests of {which} were not counted apart from the log: one taken from its end is not noticed."]


def _note(judge: Replay, violations: list[Violation], required: str, done: str) -> None:
    judge.tally[Check.LOG].violations += 1
    violations.append(Violation(Check.LOG, required, done))


def _limits(runs: Sequence[RunRecord], tally: dict[Check, CheckCount], history: LogTotals) -> list[str]:
    """What this very log does not prove."""
    limits = [
        f"{many(tally[check].unproven, 'time')} the records do not suffice to judge: {TITLES[check]}."
        for check in Check
        if tally[check].unproven
    ]
    if unended := [run.run for run in runs if run.finished_at is None]:
        which = f"Run {unended[0]} has" if len(unended) == 1 else f"{len(unended):,} runs, {_listed(unended)}, have"
        limits.append(
            f"{which} no recorded end: killed, or still running. What is sent in the last half second before a kill, "
            "or is under way then, is not in the log."
        )
    limits += [
        f"The clock was set back by {seconds(back_s)} before run {run_id}: pauses across it are not proven."
        for run_id, back_s in history.clock_steps
    ]
    return limits


def as_json(found: AuditResult) -> dict[str, Any]:
    """The audit as one JSON object; times in seconds since the epoch."""
    return {
        "at": found.at,
        "requests": found.history.requests,
        "sites": found.history.sites,
        "runs": len(found.runs),
        "violations_found": found.broken,
        "checks": [
            {
                "check": check.value,
                "title": TITLES[check],
                "judged": tally.judged,
                "violations": tally.violations,
                "unproven": tally.unproven,
            }
            for check, tally in found.tally.items()
        ],
        "violations": [violation.as_json() for violation in found.violations],
        "limits": found.limits,
        "sha256": found.sha256,
    }


def _listed(runs: Sequence[int]) -> str:
    shown = ", ".join(map(str, runs[:10]))
    return f"{shown} …" if len(runs) > 10 else shown


def render(found: AuditResult, console: Console) -> None:
    """Print an audit for people."""
    if not found.history.requests:
        console.print("The log is empty: no request was ever sent, and there is nothing to judge.")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("check", overflow="fold")
    for name in ("judged", "violations", "unproven"):
        table.add_column(name, justify="right")
    for check, tally in found.tally.items():
        style = "bold red" if tally.violations else "green" if tally.judged else "dim"
        broken = Text(f"{tally.violations:,}", style=style)
        table.add_row(TITLES[check], f"{tally.judged:,}", broken, f"{tally.unproven:,}" if tally.unproven else "")
    console.print(table)
    for violation in found.violations:
        console.print(Text(f"{violation.check}: {violation.url or 'the log'}", style="bold red"))
        for label, fact in evidence(violation):
            console.print(Text(f"  {label:12} {fact}"))
    if found.broken > len(found.violations):
        console.print(f"… and {many(found.broken - len(found.violations), 'more violation')}")
    for limit in found.limits:
        console.print(Text(f"Not proven: {limit}", style="yellow"))
    history = found.history
    verdict = many(found.broken, "violation") if found.broken else "No violation"
    request = "logged request" if any(run.finished_at is None for run in found.runs) else "request"
    console.print(
        Text(
            f"{verdict} in {many(history.requests, request)} to {many(history.sites, 'site')}",
            style="bold red" if found.broken else "bold green",
        )
    )
    console.print(f"SHA-256 of what was judged: {found.sha256}", soft_wrap=True)
