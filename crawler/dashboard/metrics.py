"""The metrics for Prometheus, in its text format 0.0.4 (prometheus.io, "Exposition formats")."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crawler.dashboard.cached_figures import RequestTotals
from crawler.reasons import EndCode

#: The ends of runs that came as they were meant to.
SUCCESSES = frozenset(
    {
        EndCode.DONE,
        EndCode.NO_REVISIT_DUE,
        EndCode.MAX_PAGES,
        EndCode.MAX_PAGES_NO_REVISIT_DUE,
        EndCode.MAX_PAGES_PER_SITE,
        EndCode.MAX_TIME,
        EndCode.ALL_WAIT,
    }
)
_RUN_STATES = ("none", "running", "paused", "stopping", "finished", "stopped", "failed", "crashed")
_WORST_SITES = 10

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[dict[str, str], float]


def exposition(seen: Mapping[str, Any], tally: RequestTotals) -> str:
    """``seen`` is a whole :meth:`crawler.dashboard.snapshot.SnapshotReader.snapshot`. Counters cover all runs."""
    return "".join(_lines(seen, tally))


def _lines(seen: Mapping[str, Any], tally: RequestTotals) -> Iterator[str]:
    run = seen["run"] or {}
    alive = run.get("state") in ("running", "pausing", "paused", "stopping")
    yield from _metric("pages_total", "counter", "Pages fetched and kept; revisits add none.", [({}, seen["pages"])])
    yield from _metric(
        "requests_total",
        "counter",
        "Requests sent, by purpose and status of the answer (none: no answer).",
        [
            ({"purpose": purpose, "status": "none" if status is None else str(status)}, n)
            for (purpose, status), n in sorted(tally.requests.items(), key=str)
        ],
    )
    yield from _metric(
        "request_errors_total",
        "counter",
        "Requests without a document for an answer, by kind of error.",
        [({"kind": kind}, n) for kind, n in sorted(tally.errors.items())],
    )
    yield from _metric("received_bytes_total", "counter", "Octets of bodies received.", [({}, tally.bytes)])
    urls = [({"state": state}, n) for state, n in seen["urls"].items()]
    yield from _metric("urls", "gauge", "URLs by state; fetched URLs are counted as pages.", urls)
    yield from _metric("excluded_urls", "gauge", "Excluded URLs by reason.", _reasons(seen["excluded_for"]))
    yield from _metric("failed_urls", "gauge", "Failed URLs by reason.", _reasons(seen["failed_for"]))
    left = seen["time_left"] or {"least_s": 0.0, "most_s": 0.0}
    bounds = (("lower", left["least_s"]), ("upper", math.inf if left["most_s"] is None else left["most_s"]))
    what = "Estimate of the time that the crawl still takes; +Inf without an upper end."
    yield from _metric("time_left_seconds", "gauge", what, [({"bound": name}, bound_s) for name, bound_s in bounds])
    groups = [({"state": state}, n) for state, n in seen["groups"].items()]
    yield from _metric("groups", "gauge", "Politeness groups with queued URLs, by state.", groups)
    yield from _metric("sites", "gauge", "Known sites.", [({}, seen["known_sites"])])
    yield from _metric("blocked", "gauge", "Hosts and sites blocked by the operator.", [({}, len(seen["blocked"]))])
    yield from _metric(
        "paused", "gauge", "1 while the operator has paused the crawl.", [({}, seen["paused_since"] is not None)]
    )
    yield from _metric("up", "gauge", "1 while a crawl is running.", [({}, alive)])
    states = [({"state": state}, state == _run_state(run)) for state in _RUN_STATES]
    what = "The state of the last run: finished in order, failed with an error, or crashed without an end."
    yield from _metric("run_state", "gauge", what, states)
    if (succeeded_at := seen.get("last_success_at")) is not None:
        what = "When a run last came to an end in order, in seconds since the epoch."
        yield from _metric("last_success_timestamp_seconds", "gauge", what, [({}, succeeded_at)])
    yield from _metric("site_wait_seconds", "gauge", "The ten sites that wait longest.", _longest_waits(seen))
    look_ups = sorted((run.get("look_ups") or {}).items())
    counts = [({"outcome": outcome}, n) for outcome, (n, _) in look_ups]
    seconds = [({"outcome": outcome}, took_s) for outcome, (_, took_s) in look_ups]
    what = "Look-ups of names in this run, by outcome (cached: the answer was known)."
    yield from _metric("name_lookups_total", "counter", what, counts)
    yield from _metric("name_lookup_seconds_total", "counter", "The seconds that they took.", seconds)
    what = "Claims of this run that were given back and brought neither a request nor the address of a host."
    yield from _metric("claims_in_vain_total", "counter", what, [({}, run.get("vain_claims", 0))])
    if alive:
        lag = "The worst lag of the event loop in the last five seconds."
        yield from _metric("event_loop_lag_seconds", "gauge", lag, [({}, run["lag_s"])])
        if run["memory_bytes"] is not None:
            memory = "Resident memory of the crawl."
            yield from _metric("resident_memory_bytes", "gauge", memory, [({}, run["memory_bytes"])])


def _run_state(run: Mapping[str, Any]) -> str:
    match run.get("state"):
        case None:
            return "none"
        case "silent":
            return "crashed"
        case "ended":
            return "finished" if run["ended_code"] in SUCCESSES else "failed" if _is_failure(run) else "stopped"
        case state:
            return "running" if state == "pausing" else str(state)


def _is_failure(run: Mapping[str, Any]) -> bool:
    return run["ended_code"] in (EndCode.STORE_FAILED, EndCode.HOOK, EndCode.FAILURE)


def _longest_waits(seen: Mapping[str, Any]) -> list[Sample]:
    waits = [
        (site["until"] - seen["at"], site["site"])
        for site in seen["sites"]
        if not site["at_limit"] and site["until"] > seen["at"]
    ]
    return [({"site": site}, wait_s) for wait_s, site in sorted(waits, reverse=True)[:_WORST_SITES]]


def _reasons(counts: Iterable[tuple[str, int]]) -> list[Sample]:
    return [({"reason": code}, n) for code, n in sorted(counts)]


def _metric(name: str, kind: str, what: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP crawler_{name} {what}\n# TYPE crawler_{name} {kind}\n"
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        number = "+Inf" if value == math.inf else f"{float(value):.15g}"
        yield f"crawler_{name}{{{inside}}} {number}\n" if inside else f"crawler_{name} {number}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
