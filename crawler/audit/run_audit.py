"""``crawler audit``: checks every request in the log against the rules. It only reads the store.

What is checked, how, and what cannot be proven: ``docs/audit.md``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crawler.audit import log_reader
from crawler.audit.checks import Check, CheckCount, Findings, Violation
from crawler.audit.log_reader import read_rows
from crawler.audit.records import LoggedRequest, RunRecord
from crawler.audit.replay import Replay
from crawler.audit.restrictions import Restrictions
from crawler.audit.study import StudyFacts, read_study_facts
from crawler.audit.totals import LogTotals, read_totals
from crawler.audit.use import judge_kept_by_header, judge_kept_by_robots
from crawler.formatting import instant, many, ranges, seconds
from crawler.frontier.operator import Standing, standing
from crawler.store.location import names_dataset
from crawler.url import host_of

if TYPE_CHECKING:
    from crawler.store.sections import Store

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit. ``at`` is when the log was read, in seconds since the epoch.

    ``sha256`` is the hash of the records that were judged, ``standing`` the effect of the operator's orders so far,
    and ``study`` the facts for an ethics board.
    ``limits`` says in sentences what this log cannot prove.
    """

    at: float
    runs: Sequence[RunRecord]
    counts: dict[Check, CheckCount]
    violations: list[Violation]
    totals: LogTotals
    sha256: str
    standing: Standing
    study: StudyFacts
    limits: list[str] = field(default_factory=list)

    @property
    def violation_count(self) -> int:
        """How many violations there are, listed or not."""
        return sum(count.violations for count in self.counts.values())

    def as_json(self) -> dict[str, Any]:
        """One JSON object; times in seconds since the epoch."""
        return {
            "at": self.at,
            "requests": self.totals.requests,
            "sites": self.totals.sites,
            "unsent": self.totals.unsent,
            "sites_without_address": self.totals.sites_without_address,
            "runs": len(self.runs),
            "violations_found": self.violation_count,
            "checks": [
                {"check": check.value, "title": check.sentence, "judged": count.judged, "violations": count.violations}
                for check, count in self.counts.items()
            ],
            "violations": [violation.as_json() for violation in self.violations],
            "blocked": [
                {"name": name, "since": since, "because": self.standing.because.get(name, "")}
                for name, since in self.standing.blocked.items()
            ],
            "study": self.study.as_json(),
            "limits": self.limits,
            "sha256": self.sha256,
        }


def audit_for(db: str) -> Callable[..., Awaitable[AuditResult]]:
    """The audit of what ``db`` names: :func:`run_audit` of a store, or that of a dataset."""
    if names_dataset(db):
        from crawler.audit.of_dataset import audit_dataset

        return audit_dataset
    return run_audit


async def run_audit(store: Store, now: float, on_progress: OnProgress = lambda done, total: None) -> AuditResult:
    """Check the whole log of a store. Raises :class:`crawler.errors.UsageError` if a run has no readable settings.

    ``on_progress`` is called with the requests that are judged, and their total.
    """
    async with log_reader.snapshot(store):
        return await audit_snapshot(store, now, on_progress)


async def audit_snapshot(store: Store, now: float, on_progress: OnProgress = lambda done, total: None) -> AuditResult:
    """As :func:`run_audit`, within a snapshot of the caller."""
    runs = await log_reader.read_runs(store)
    orders = await store.control.orders()
    refuted = {row.site: row.main_site for row in await read_rows(store, "refuted_mirrors")}
    licences = await log_reader.read_licences(store)
    findings = Findings()
    restrictions = Restrictions.from_orders(orders)
    replay = Replay({run.run: run for run in runs}, restrictions, refuted, licences, store.bucket, findings.counts)
    (numbering,) = await read_rows(store, "log_numbering")
    findings.add(_incomplete_log(numbering, await read_rows(store, "request_counts")))
    forged: set[str] = set()
    done = 0
    async for piece in log_reader.read_slices(store, runs):
        forged |= piece.forged
        done += sum(isinstance(event.fact, LoggedRequest) for event in piece.events)
        on_progress(done, numbering.requests)
        findings.add(replay.replay(piece.events, piece.texts))
        await judge_kept_by_robots(store, replay.limited, findings)
    findings.add(_forged_text(sha256) for sha256 in sorted(forged))
    await judge_kept_by_header(store, findings)
    await _judge_pages_kept(store, runs, findings)
    await _judge_sample(store, findings)
    await _judge_limits(store, runs, findings)
    totals = await read_totals(store)
    return AuditResult(
        now,
        runs,
        findings.counts,
        findings.in_order(),
        totals,
        await log_reader.canonical_sha256(store),
        standing(orders),
        await read_study_facts(store),
        _limits(runs, totals),
    )


async def _judge_pages_kept(store: Store, runs: Sequence[RunRecord], findings: Findings) -> None:
    """Find the pages that are kept although they refuse a purpose that their run declared."""
    for run in runs:
        purposes = run.settings.identity.purpose
        if purposes and not run.is_auxiliary:
            pages, kept = await log_reader.read_pages_kept(store, run)
            findings.counts[Check.PREFERENCE].judged += pages
            required = f"a page without refusal of the purposes {', '.join(purposes)}, or none of its body"
            findings.add(
                Violation.of_page(
                    Check.PREFERENCE, page, required, f"its body is kept; it states {page.stated}", run.run
                )
                for page in kept
            )


async def _judge_sample(store: Store, findings: Findings) -> None:
    """Find the requests for pages that the sample in the store had left out."""
    (judged,) = await read_rows(store, "sample_judged")
    if not judged.requests:
        return  # there is no sample, or it decides nothing, because the crawl requests everything
    findings.counts[Check.SAMPLE].judged += judged.requests
    findings.add(
        Violation(
            Check.SAMPLE,
            f"a page that was drawn on {instant(each.drawn_at)}, or that led to the sample before",
            "asked for, though not drawn",
            request=each.request_id,
            run=each.run_id,
            url=each.url,
            started_at=each.started_at,
            finished_at=each.finished_at,
        )
        for each in await read_rows(store, "not_drawn")
    )


async def _judge_limits(store: Store, runs: Sequence[RunRecord], findings: Findings) -> None:
    """Find the sites with more pages than any run allowed. Nothing is judged of a site that a run did not limit."""
    crawls = [run for run in runs if not run.is_auxiliary]
    if not crawls or not all(run.limits_pages for run in crawls):
        return
    for site in await read_rows(store, "page_counts"):
        limits = [run.pages_allowed(host_of(site.site)) for run in crawls]
        most = max((limit for limit in limits if limit is not None), default=0)
        if None in limits:
            continue
        findings.counts[Check.PAGES].judged += 1
        if site.pages <= most:
            continue
        (first,) = await read_rows(store, "pages_at_once", site_id=site.site_id)  # a revisit is not limited
        if first.pages > most:
            required = f"at most {many(most, 'page')} of the site, as the settings of the runs say"
            done = f"{many(first.pages, 'page')} at a first visit"
            findings.add([Violation(Check.PAGES, required, done, url=site.site)])


def _incomplete_log(numbering: Any, counts: Sequence[Any]) -> Iterator[Violation]:
    """Signs of removed requests. Requests are numbered from 1 and counted, and the crawler never removes one."""
    if missing := numbering.last_id - numbering.requests:
        done = f"{missing:,} of {numbering.last_id:,} missing"
        yield Violation(Check.LOG, "requests numbered from 1 without a gap", done)
    for count in counts:
        if count.counted != count.logged:
            required = f"as many requests of run {count.run} as its workers counted: {count.counted:,}"
            yield Violation(Check.LOG, required, f"the log has {count.logged:,}")
    if without := numbering.requests - numbering.with_site:
        done = f"{many(without, 'request')} without one, not judged"
        yield Violation(Check.LOG, "a site for every request", done)


def _forged_text(sha256: str) -> Violation:
    return Violation(Check.LOG, "a text that has the SHA-256 recorded for it", f"version {sha256} has another")


def _limits(runs: Sequence[RunRecord], totals: LogTotals) -> list[str]:
    """The limits of the proof that this log gives, in sentences."""
    limits: list[str] = []
    if without_end := [run for run in runs if run.finished_at is None]:
        unended = [run.run for run in without_end]
        which = f"Run {unended[0]} has" if len(unended) == 1 else f"Runs {_listed(unended)} have"
        most = max(run.settings.limits.concurrency for run in without_end)
        limits.append(
            f"{which} no recorded end: killed, or still running. If neither, this is a copy from before the "
            "end, or of the file without its write-ahead log (docs/backups.md). The log lacks requests that were under "
            f"way when a process was killed ({most:,} at most in each), and those answered since its last commit. The "
            "next run repeats them: a server's log may have them twice, and this log has them once."
        )
    if unverified := sorted({pattern for run in runs for pattern in run.settings.fetch.verify_off}):
        limits.append(
            f"The certificates of {', '.join(unverified)} were not verified (fetch.verify): anyone on the way may have "
            "sent the answers of these hosts, their robots.txt included."
        )
    if totals.redacted:
        limits.append(
            f"The addresses of {many(totals.redacted, 'request')} were reduced to their sites (`crawler store forget "
            "--redact`): whether robots.txt allowed them is not proven. Their pauses are."
        )
    limits += [
        f"The clock was set back by {seconds(step.back_s)} before run {step.run}: pauses across it are not proven."
        for step in totals.clock_steps
    ]
    return limits


def _listed(runs: Sequence[int]) -> str:
    """``1 to 4 and 6``: at most ten ranges of numbers."""
    shown = ranges(runs)
    if len(shown) > 10:
        return f"{', '.join(shown[:10])} … ({len(runs):,} runs)"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
