"""The metrics as another program's parser reads them."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import promql_parser
import yaml

from crawler.dashboard.cached_figures import RequestTotals
from crawler.dashboard.metrics import exposition
from crawler.store.sqlite.store import SqliteStore
from tests.command import ROOT

STATES = ("none", "running", "paused", "stopping", "finished", "stopped", "failed", "crashed")


def look(**changes: Any) -> dict[str, Any]:
    run: dict[str, Any] = {"state": "running", "lag_s": 0.25, "memory_bytes": 70_000_001}
    run |= {"ended_code": None}
    run["look_ups"] = {"cached": [40, 0.0], "dns_timeout": [2, 15.5]}
    run["vain_claims"] = 12
    return {
        "run": run,
        "at": 100.0,
        "last_success_at": 90.0,
        "sites": [{"site": f"http://{n}.test", "until": 100.0 + n, "at_limit": n == 12} for n in range(13)],
        "pages": 12_345_678_901,
        "known_sites": 7,
        "urls": {"queued": 5, "failed": 1},
        "groups": {"worked_on": 2, "waiting": 3, "ready": 0},
        "blocked": [{"name": "a.test", "since": 1.0}],
        "paused_since": None,
        "excluded_for": [("robots", 3), ("blocked", 1), ("sample", 4)],
        "failed_for": [("timeout", 1)],
        "time_left": {"least_s": 90.5, "most_s": None},
    } | changes


def tally() -> RequestTotals:
    made = RequestTotals.__new__(RequestTotals)
    made.requests = Counter({("page", 200): 8, ("page", None): 2, ("robots", 404): 1})
    made.errors = Counter({"timeout": 2, "http": 1})
    made.bytes = 1 << 40
    return made


def samples(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    from prometheus_client.parser import text_string_to_metric_families

    read = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("counter", "gauge")
        for sample in family.samples:
            key = (sample.name, tuple(sample.labels.values()))
            assert key not in read
            read[key] = sample.value
    return read


def test_every_figure_reads_back_exactly() -> None:
    read = samples(exposition(look(), tally()))
    assert read == {
        ("crawler_pages_total", ()): 12_345_678_901,
        ("crawler_requests_total", ("page", "200")): 8,
        ("crawler_requests_total", ("page", "none")): 2,
        ("crawler_requests_total", ("robots", "404")): 1,
        ("crawler_request_errors_total", ("timeout",)): 2,
        ("crawler_request_errors_total", ("http",)): 1,
        ("crawler_received_bytes_total", ()): 1 << 40,
        ("crawler_claims_in_vain_total", ()): 12,
        ("crawler_name_lookups_total", ("cached",)): 40,
        ("crawler_name_lookups_total", ("dns_timeout",)): 2,
        ("crawler_name_lookup_seconds_total", ("cached",)): 0,
        ("crawler_name_lookup_seconds_total", ("dns_timeout",)): 15.5,
        ("crawler_urls", ("queued",)): 5,
        ("crawler_urls", ("failed",)): 1,
        ("crawler_excluded_urls", ("blocked",)): 1,
        ("crawler_excluded_urls", ("sample",)): 4,
        ("crawler_excluded_urls", ("robots",)): 3,
        ("crawler_failed_urls", ("timeout",)): 1,
        ("crawler_time_left_seconds", ("lower",)): 90.5,
        ("crawler_time_left_seconds", ("upper",)): math.inf,
        ("crawler_groups", ("worked_on",)): 2,
        ("crawler_groups", ("waiting",)): 3,
        ("crawler_groups", ("ready",)): 0,
        ("crawler_sites", ()): 7,
        ("crawler_blocked", ()): 1,
        ("crawler_paused", ()): 0,
        ("crawler_up", ()): 1,
        **{("crawler_run_state", (state,)): state == "running" for state in STATES},
        ("crawler_last_success_timestamp_seconds", ()): 90,
        **{("crawler_site_wait_seconds", (f"http://{n}.test",)): n for n in range(2, 12)},
        ("crawler_event_loop_lag_seconds", ()): 0.25,
        ("crawler_resident_memory_bytes", ()): 70_000_001,
    }


def test_without_a_living_run_it_is_down_and_has_no_memory() -> None:
    for run, state in (
        (None, "none"),
        ({"state": "silent", "lag_s": 0.0, "memory_bytes": 5}, "crashed"),
        ({"state": "ended", "lag_s": 0.0, "ended_code": "max_time"}, "finished"),
        ({"state": "ended", "lag_s": 0.0, "ended_code": "signal"}, "stopped"),
        ({"state": "ended", "lag_s": 0.0, "ended_code": "store_failed"}, "failed"),
    ):
        read = samples(exposition(look(run=run, paused_since=5.0), tally()))
        assert {each for each in STATES if read["crawler_run_state", (each,)]} == {state}
        assert read["crawler_up", ()] == 0
        assert read["crawler_paused", ()] == 1
        assert ("crawler_resident_memory_bytes", ()) not in read


def test_the_alert_rules_are_promql_over_metrics_that_exist() -> None:
    rules = yaml.safe_load((ROOT / "config" / "alerts.yml").read_text())["groups"][0]["rules"]
    served = {name for name, _ in samples(exposition(look(), tally()))}
    for rule in rules:
        promql_parser.parse(rule["expr"])
        if "for" in rule:
            promql_parser.parse(f"up[{rule['for']}]")
        assert set(re.findall(r"crawler_\w+", rule["expr"])) <= served, rule["alert"]
        assert rule["annotations"]["summary"]
        assert "pages_total" not in rule["expr"], "a revisit adds no page"
    assert len({rule["alert"] for rule in rules}) == len(rules) == 7


async def test_the_log_is_summed_once_however_often_it_is_read(tmp_path: Any) -> None:
    store = await SqliteStore.open(tmp_path / "c.db")
    try:

        async def sent(n: int, status: int | None, at: float) -> None:
            row = (1, 1, "/", "page", at, at, status, 10)
            sql = """INSERT INTO request (run_id, site_id, path, purpose, started_at, finished_at, status, bytes)
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
            await store._db.executemany(sql, [row] * n)

        summed = RequestTotals(store)
        await sent(3, 200, 100.0)
        await summed.read(1000.0)
        await sent(2, None, 990.5)
        await summed.read(1000.0)
        await summed.read(1000.0, whole=True)
        assert summed.requests == {("page", 200): 3, ("page", None): 2}
        assert (summed.bytes, summed.caught_up, dict(summed.recent)) == (50, True, {990: 2})
        await summed.read(1291.0)
        assert dict(summed.recent) == {}
    finally:
        await store.close()
