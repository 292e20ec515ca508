"""What a store tells of a crawl as a whole, for whoever judges it: totals, exclusions, who asked for most restraint."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.store.protocols import Store

_SHOWN = 10

_TOTALS = """SELECT count(*) AS requests, count(DISTINCT site_id) AS sites, coalesce(sum(bytes), 0) AS bytes,
  min(started_at) AS first, max(finished_at) AS last FROM request"""
_ANSWERS = """SELECT purpose, coalesce(CAST(status / 100 AS TEXT) || 'xx', 'no answer') AS answer, count(*) AS n
  FROM request GROUP BY 1, 2 ORDER BY 1 DESC, 2"""
_PER_RUN = (
    "SELECT run_id, count(*) AS n, min(started_at) AS first, max(finished_at) AS last FROM request GROUP BY run_id"
)
_VERSIONS = (
    "SELECT action, count(*) AS n, count(DISTINCT text_id) AS texts FROM robots_copy GROUP BY action ORDER BY n DESC"
)
_EXCLUDED = """SELECT CASE WHEN reason LIKE 'mirror of %' THEN 'mirror'
    WHEN instr(reason, ':') BETWEEN 2 AND 12 THEN substr(reason, 1, instr(reason, ':') - 1)
    ELSE substr(reason, 1, 40) END AS why, count(*) AS n
  FROM url WHERE state = 'excluded' GROUP BY why ORDER BY n DESC, why"""
_CRAWL_DELAYS = "SELECT name, crawl_delay_s FROM site WHERE crawl_delay_s > 0 ORDER BY crawl_delay_s DESC, name LIMIT ?"
_RETRY_AFTERS = """SELECT s.name, max(q.retry_after_s) AS longest, count(*) AS n
  FROM request q JOIN site s ON s.id = q.site_id
  WHERE q.retry_after_s > 0 GROUP BY s.id, s.name ORDER BY longest DESC, s.name LIMIT ?"""
_DEFERRED = """SELECT s.name, count(*) AS n FROM request q JOIN site s ON s.id = q.site_id
  WHERE q.purpose = 'robots' AND q.path = '/robots.txt' AND (q.status IS NULL OR q.status IN (408, 425, 429)
    OR q.status >= 500 OR (q.status < 400 AND q.error IS NOT NULL))
  GROUP BY s.id, s.name ORDER BY n DESC, s.name LIMIT ?"""
_RESTRICTED = """SELECT s.name, count(*) AS n FROM robots_copy r JOIN site s ON s.id = r.site_id
  WHERE r.action = 'restricted' GROUP BY s.id, s.name ORDER BY n DESC, s.name LIMIT ?"""


@dataclass(frozen=True, slots=True)
class LogTotals:
    """Totals of a request log. Times in seconds since the epoch; ``None`` where the log is empty."""

    requests: int
    sites: int
    bytes: int
    first_at: float | None
    last_at: float | None
    answers: list[tuple[str, str, int]]  # purpose, class of status, how many
    per_run: dict[int, int]  # requests by run
    clock_steps: list[
        tuple[int, float]
    ]  # runs whose first request is before the last end of one before, and by how much
    versions: list[tuple[str, int, int]]  # what robots.txt meant, answers, distinct texts
    excluded: list[tuple[str, int]]
    crawl_delays: list[tuple[str, float]]
    retry_afters: list[tuple[str, float, int]]
    deferred: list[tuple[str, int]]
    restricted: list[tuple[str, int]]


async def read_totals(store: Store) -> LogTotals:
    """Read it; some sums over the whole log, no more than a few rows each."""
    (totals,) = await store.query(_TOTALS)
    runs = await store.query(_PER_RUN)
    return LogTotals(
        requests=totals["requests"],
        sites=totals["sites"],
        bytes=totals["bytes"],
        first_at=totals["first"],
        last_at=totals["last"],
        answers=[(row["purpose"], row["answer"], row["n"]) for row in await store.query(_ANSWERS)],
        per_run={row["run_id"]: row["n"] for row in runs},
        clock_steps=_steps([(row["run_id"], row["first"], row["last"]) for row in runs]),
        versions=[(row["action"], row["n"], row["texts"]) for row in await store.query(_VERSIONS)],
        excluded=[(row["why"], row["n"]) for row in await store.query(_EXCLUDED)],
        crawl_delays=[(row["name"], row["crawl_delay_s"]) for row in await store.query(_CRAWL_DELAYS, (_SHOWN,))],
        retry_afters=[(row["name"], row["longest"], row["n"]) for row in await store.query(_RETRY_AFTERS, (_SHOWN,))],
        deferred=[(row["name"], row["n"]) for row in await store.query(_DEFERRED, (_SHOWN,))],
        restricted=[(row["name"], row["n"]) for row in await store.query(_RESTRICTED, (_SHOWN,))],
    )


def _steps(runs: list[tuple[int, float, float]]) -> list[tuple[int, float]]:
    """Where time goes backwards from one run to the next, by how many seconds."""
    steps = []
    latest = 0.0
    for run_id, first, last in sorted(runs):
        if first < latest:
            steps.append((run_id, latest - first))
        latest = max(latest, last)
    return steps
