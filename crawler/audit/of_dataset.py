"""``crawler audit`` on a dataset.

The store of each bucket has the whole log of its sites, with the robots.txt versions in force: it is audited as any
store is, one after the other. What no store knows is judged over the Parquet files: that the dataset has the log of
each store, that an address was asked by one task of a round, and the pauses after the requests of lost tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from crawler.audit.checks import MAX_LISTED, Check, CheckCount, Findings, Violation
from crawler.audit.log_reader import canonical_sha256, read_runs
from crawler.audit.records import TOLERANCE_S
from crawler.audit.run_audit import AuditResult, run_audit
from crawler.audit.study import read_study_facts
from crawler.audit.totals import read_totals
from crawler.dataset.tables import SQL
from crawler.dataset.views import Views
from crawler.engine.workbench import exempt_networks, is_exempt, network_of
from crawler.formatting import many, seconds
from crawler.frontier.operator import standing

if TYPE_CHECKING:
    from crawler.store.sections import Store


async def audit_dataset(
    views: Views, now: float, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> AuditResult:
    """Check the whole log of a dataset. Raises :class:`crawler.errors.UsageError` if settings cannot be read."""
    findings, limits, done = Findings(), list[str](), 0
    counts = findings.counts
    total = (await views.counts()).requests
    buckets = views.manifests[-1].buckets if views.manifests else {}
    for bucket in sorted(buckets):
        async with views.store_of(bucket) as store:
            if store is None:
                continue
            result = await run_audit(store, now)
            findings.add(await _brought(views, store, counts[Check.LOG]))
        for check, count in result.counts.items():
            counts[check].judged += count.judged
            counts[check].violations += count.violations
        findings.listed.extend(result.violations[: MAX_LISTED - len(findings.listed)])
        limits += [limit for limit in result.limits if limit not in limits]
        done += result.totals.requests
        on_progress(done, total)
        published = sum(each.parts[bucket]["requests"] for each in views.manifests if bucket in each.parts)
        logged = result.totals.requests + result.totals.unsent
        counts[Check.LOG].judged += 1
        if published != logged:
            required = f"the {many(logged, 'request')} in the log of bucket {bucket}"
            findings.add([Violation(Check.LOG, required, f"the dataset has {published:,}")])
    findings.add(_crowded(views, counts[Check.OVERLAP]))
    findings.add(_after_lost(views, counts))
    if lost := sum(len(manifest.lost) for manifest in views.manifests):
        ((requests,),) = views.fetch(SQL["count_lost"])
        limits.append(
            f"{many(lost, 'task')} {'was' if lost == 1 else 'were'} lost. The log has {many(requests, 'request')} of "
            "lost tasks, and lacks those of their last seconds. The pauses after them are judged. No robots.txt is "
            "recorded for them, so their permission is not proven."
        )
    store = cast(Any, views)
    return AuditResult(
        now,
        await read_runs(store),
        counts,
        findings.in_order(),
        await read_totals(store),
        await canonical_sha256(store),
        standing(()),
        await read_study_facts(store),
        limits,
    )


async def _brought(views: Views, store: Store, count: CheckCount) -> list[Violation]:
    """The copies of sites of other buckets in a store that these buckets have not published so."""
    violations = []
    for row in await store.query(SQL["usable_copies"]):
        if store.bucket is None or store.bucket.other_of(row["site"]) is None:
            continue
        count.judged += 1
        if not views.fetch(SQL["published_copy"], row):
            required = f"a copy of {row['site']}, which is of another bucket, as that has published it"
            violations.append(Violation(Check.LOG, required, f"the store of bucket {store.bucket.number} has another"))
    return violations


def _crowded(views: Views, count: CheckCount) -> Iterator[Violation]:
    """The addresses that several tasks of a round have asked."""
    settings = views.dataset.settings
    exempt = exempt_networks(settings.politeness)
    chosen = {str(address) for _, address in settings.fetch.resolve}
    ((judged,),) = views.fetch(SQL["count_addresses"])
    count.judged += judged
    for run, address, first_at, sites in views.fetch(SQL["crowded_addresses"]):
        buckets = {views.bucket_of(site) for site in sites}
        if len(buckets) > 1 and address not in chosen and not is_exempt(network_of(address), exempt):
            required = f"{address} asked by one task of round {run}"
            done = f"asked by the tasks of the buckets {', '.join(map(str, sorted(buckets)))}"
            yield Violation(Check.OVERLAP, required, done, run=run, url=sites[0], started_at=first_at)


def _after_lost(views: Views, counts: dict[Check, CheckCount]) -> Iterator[Violation]:
    """The pauses after the requests of lost tasks that were shorter than the settings and a Retry-After ask for."""
    politeness = views.dataset.settings.politeness
    for row in views.fetch(SQL["after_lost"]):
        url, site, run, started_at, finished_at, retry_after_s, next_url, next_started_at, next_run = row
        if next_started_at is None:
            continue
        pause_s = next_started_at - finished_at
        for check, needed_s in ((Check.PAUSE, politeness.of(site).delay_s), (Check.RETRY_AFTER, retry_after_s)):
            if needed_s is None:
                continue
            counts[check].judged += 1
            if pause_s < needed_s - TOLERANCE_S:
                yield Violation(
                    check,
                    f"a pause of {seconds(needed_s)} after a request of the lost task of round {run}",
                    seconds(pause_s),
                    run=next_run,
                    url=next_url,
                    started_at=next_started_at,
                    before=url,
                    before_started_at=started_at,
                    before_finished_at=finished_at,
                )
