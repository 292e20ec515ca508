"""The audit requires the pauses that the gate keeps, whatever the settings and the answers are."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.audit.checks import Check
from crawler.audit.records import TOLERANCE_S, LoggedRequest
from crawler.frontier import politeness
from crawler.frontier.politeness import (
    Pace,
    PauseFacts,
    PolitenessSettings,
    after_answer,
    pauses,
)
from crawler.reasons import WaitCode
from tests.unit.audit.audit_cases import breaches, paced, robots, sent, version

Answered = tuple[tuple[int | None, str | None], float, float | None]

_PAUSE = st.floats(0, 100)
_SETTINGS = {
    "delay_s": _PAUSE,
    "slow_factor": st.floats(0, 10),
    "slow_cap_s": _PAUSE,
    "crawl_delay_cap_s": st.none() | _PAUSE,
    "backoff_first_s": st.floats(1, 100),
    "backoff_max_s": st.floats(1, 4000),
}
SETTINGS = st.fixed_dictionaries(_SETTINGS)
#: (status, kind of error): answers, and failures below HTTP.
ANSWERS = [(200, None), (301, None), (404, "http"), (500, "http"), (429, "http"), (503, "http")]
FAILURES = [(None, "timeout"), (None, "dns"), (None, "connect"), (None, "stopped"), (200, "truncated")]
TOOK_S = st.floats(0.01, 20)
RETRY_AFTER = st.none() | st.floats(0, 5000)
ANSWER = st.tuples(st.sampled_from(ANSWERS), TOOK_S, RETRY_AFTER)
ANY = st.tuples(st.sampled_from(ANSWERS + FAILURES), TOOK_S, RETRY_AFTER)
CRAWL_DELAY = st.none() | st.integers(1, 200)


def logged(at: float, answer: Answered) -> LoggedRequest:
    """The request that started at ``at`` and had this answer."""
    (status, kind), took_s, retry_after_s = answer
    return sent(at, took_s=took_s, status=status, error=kind, error_kind=kind, retry_after_s=retry_after_s)


def facts(request: LoggedRequest) -> PauseFacts:
    return PauseFacts(
        request.started_at,
        request.finished_at,
        request.status,
        request.error_kind,
        request.retry_after_s,
        request.lag_s,
    )


def found(settings: dict[str, Any], crawl_delay_s: int | None, *requests: LoggedRequest) -> list[Check]:
    """The violations of a log that begins with a robots.txt a day before, which is in force all the time."""
    line = "" if crawl_delay_s is None else f"Crawl-delay: {crawl_delay_s}\n"
    body = f"User-agent: *\n{line}Disallow: /closed/\n".encode()
    terms = [paced(**settings)]
    first = robots(0)
    return breaches(first, *requests, versions=[version(0.1, body)], texts=[body], terms=terms)


def test_every_setting_of_pauses_is_drawn() -> None:
    assert {field.name for field in fields(PolitenessSettings)} - set(_SETTINGS) == {
        "group",
        "hours",
        "per_address",
        "large_hosts",
        "workers",
        "sites",
    }


@given(SETTINGS, st.lists(ANY, min_size=1, max_size=8), CRAWL_DELAY)
def test_a_log_that_keeps_every_pause_has_no_violation(
    settings: dict[str, Any], answers: list[Answered], crawl_delay_s: int | None
) -> None:
    pace, at, log = Pace(), 86_000.0, []
    for answer in [*answers, ((200, None), 0.1, None)]:
        log.append(logged(at, answer))
        pace = after_answer(pace, facts(log[-1]), crawl_delay_s, PolitenessSettings(**settings))
        at = pace.next_at
    assert found(settings, crawl_delay_s, *log) == []


@given(SETTINGS, ANSWER, CRAWL_DELAY, st.floats(0.01, 1.0))
def test_a_pause_that_is_too_short_is_a_violation(
    settings: dict[str, Any], answer: Answered, crawl_delay_s: int | None, part: float
) -> None:
    first = logged(86_000.0, answer)
    pace = after_answer(Pace(), facts(first), crawl_delay_s, PolitenessSettings(**settings))
    early_s = max(part * pace.pause_s, 2 * TOLERANCE_S)
    second = sent(max(pace.next_at - early_s, first.finished_at))
    checks = set(found(settings, crawl_delay_s, first, second))
    if pace.next_at - second.started_at > TOLERANCE_S + 1e-6:
        assert checks
        assert checks <= {Check.PAUSE, Check.RETRY_AFTER}
    else:
        assert checks == set(), "the pause itself is shorter than the tolerance"


def test_requests_out_of_the_hours_of_their_host_are_violations() -> None:
    """The windows are from 00:00 to 01:00; the times are seconds since 1970-01-01 00:00 UTC."""
    log = [sent(86_500.0), sent(90_500.0)]
    for hours, broken in {
        (): [],
        ("0-1 UTC",): [Check.HOURS],
        ("other.test=0-1 UTC",): [],
        ("0-1 Asia/Tokyo",): [Check.HOURS] * 3,
    }.items():
        assert found({"hours": hours}, None, *log) == broken


def test_a_new_constraint_of_the_gate_is_one_of_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate and the audit read one table."""

    def stricter(*args: Any) -> tuple[tuple[float, WaitCode], ...]:
        return (*pauses(*args), (50.0, WaitCode.DELAY))

    monkeypatch.setattr(politeness, "pauses", stricter)
    first = sent(86_000.0)
    due_at = after_answer(Pace(), facts(first), None, PolitenessSettings()).next_at
    assert due_at == first.finished_at + 50.0
    assert found({}, None, first, sent(due_at)) == []
    assert found({}, None, first, sent(due_at - 1)) == [Check.PAUSE]
