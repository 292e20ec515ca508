"""When a group may be asked again (docs/protocols.md, section 6)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from crawler.frontier.politeness import (
    AnswerTimes,
    GroupBy,
    Pace,
    PauseFacts,
    PolitenessSettings,
    after_answer,
    after_crash,
    constraints,
    facts_of,
    group_name,
    with_crawl_delay,
    within_reason,
)
from crawler.model import Failed, Fetched, Redirected
from crawler.reasons import ErrorKind, WaitCode, WaitReason

END = 1_800_000_000.0
DEFAULT = PolitenessSettings()


def page(took_s: float = 0.0) -> PauseFacts:
    return facts_of(Fetched("http://a.test/", END - took_s, END))


def failure(
    status: int | None = None, *, kind: ErrorKind = ErrorKind.HTTP, retry_after: str | None = None
) -> PauseFacts:
    headers = () if retry_after is None else (("Retry-After", retry_after),)
    return facts_of(Failed("http://a.test/", END, END, headers, kind=kind, status=status))


@pytest.mark.parametrize(
    ("took_s", "crawl_delay_s", "pause_s", "waits_for"),
    [
        (0.1, None, 2.0, "delay"),
        (0.39, None, 2.0, "delay"),
        (0.5, None, 2.5, "5 times its last response time"),
        (6.0, None, 30.0, "5 times its last response time"),
        (60.0, None, 30.0, "5 times its last response time"),
        (0.1, 1.0, 2.0, "delay"),
        (0.1, 2.5, 2.5, "Crawl-delay"),
        (60.0, 31.0, 31.0, "Crawl-delay"),
        (0.1, 86_400.0, 86_400.0, "Crawl-delay"),
    ],
)
def test_the_pause_is_the_longest_that_anything_asks_for(
    took_s: float, crawl_delay_s: float | None, pause_s: float, waits_for: str
) -> None:
    pace = after_answer(Pace(), page(took_s), crawl_delay_s, DEFAULT)
    assert pace.pause_s == pytest.approx(pause_s)
    assert pace.next_at == pytest.approx(END + pause_s)
    assert (str(pace.waits_for), pace.backoff_s) == (waits_for, 0.0)


def test_redirects_pause_like_pages() -> None:
    redirect = Redirected("http://a.test/", END - 1, END, location="/x")
    assert after_answer(Pace(), facts_of(redirect), None, DEFAULT).pause_s == 5.0


def test_the_users_cap_on_crawl_delay() -> None:
    capped = PolitenessSettings(crawl_delay_cap_s=60.0)
    assert after_answer(Pace(), page(), 3600.0, capped).pause_s == 60.0
    assert after_answer(Pace(), page(), 10.0, capped).pause_s == 10.0
    assert with_crawl_delay(Pace(), END, 3600.0, capped).pause_s == 60.0


@pytest.mark.parametrize(("asked", "pause_s"), [("3600", 3600.0), ("864000", 864_000.0), ("3", 10.0), ("soon", 10.0)])
def test_retry_after_is_kept_uncut(asked: str, pause_s: float) -> None:
    pace = after_answer(Pace(), failure(503, retry_after=asked), None, DEFAULT)
    assert pace.next_at == END + pause_s
    assert str(pace.waits_for) == ("Retry-After of a 503" if pause_s > 10 else "back-off after 503")


TROUBLES = [
    failure(429),
    failure(503),
    *(failure(kind=getattr(ErrorKind, kind)) for kind in ("DNS", "CONNECT", "TLS", "TIMEOUT", "TRUNCATED")),
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_doubles_the_back_off_up_to_its_longest(trouble: PauseFacts) -> None:
    pace, backoffs = Pace(), []
    for _ in range(12):
        pace = after_answer(pace, trouble, None, DEFAULT)
        assert pace.pause_s == pace.backoff_s
        backoffs.append(pace.backoff_s)
    assert backoffs[:4] == [10.0, 20.0, 40.0, 80.0]
    assert backoffs[-1] == 3600.0


@pytest.mark.parametrize("kind", [ErrorKind.STOPPED, ErrorKind.FAULT])
def test_a_request_that_the_crawler_broke_off_leaves_the_back_off_as_it_is(kind: ErrorKind) -> None:
    """``python -m tests.world --seed 102 --hosts 30000 --days 30``: a stop of the operator halved back-offs."""
    pace = after_answer(Pace(), failure(503), None, DEFAULT)
    pace = after_answer(pace, failure(kind=kind), None, DEFAULT)
    assert (pace.backoff_s, pace.pause_s) == (10.0, 10.0)
    assert after_answer(pace, failure(503), None, DEFAULT).backoff_s == 20.0


def test_a_back_off_names_its_cause() -> None:
    """Of a body that was cut short not the status that came before it."""
    cut = failure(200, kind=ErrorKind.TRUNCATED)
    assert after_answer(Pace(), cut, None, DEFAULT).waits_for == WaitReason(WaitCode.BACKOFF, "a body cut short")
    assert after_answer(Pace(), failure(429), None, DEFAULT).waits_for == WaitReason(WaitCode.BACKOFF, "429")


def test_success_lets_a_site_recover_slowly() -> None:
    pace, pauses = Pace(backoff_s=80.0), []
    for _ in range(7):
        pace = after_answer(pace, page(), None, DEFAULT)
        pauses.append(pace.pause_s)
    assert pauses == [40.0, 20.0, 10.0, 5.0, 2.5, 2.0, 2.0]
    assert pace.backoff_s == 0.0


@pytest.mark.parametrize("answer", [failure(404), failure(500), failure(kind=ErrorKind.TOO_LARGE)])
def test_other_failures_slow_nothing_down(answer: PauseFacts) -> None:
    assert after_answer(Pace(), answer, None, DEFAULT).pause_s == 2.0


def after_times(*took_s: float) -> AnswerTimes:
    """The times of a group after answers that took so many seconds."""
    times = AnswerTimes()
    for seconds in took_s:
        times = times.after(page(seconds))
    return times


def test_a_group_is_slower_if_its_recent_answers_take_twice_as_long_as_usual() -> None:
    assert after_times().slowdown == 1
    assert after_times(*[0.2] * 50, 4.0).slowdown == 1, "one answer that takes twenty times as long"
    assert after_times(*[0.2] * 50, *[0.38] * 50).slowdown == 1
    assert after_times(*[0.2] * 200, *[0.8] * 9).slowdown == pytest.approx(2.95, abs=0.01)
    assert after_times(*[0.2] * 50, *[4.0] * 500).slowdown == 1, "that is usual by now"
    assert after_times(*[4.0] * 50, *[0.2] * 50).slowdown == 1, "faster"


def test_the_first_answers_are_usual_and_quick_ones_never_slow() -> None:
    assert after_times(0.2, 8.0, 8.0, 8.0, 8.0).slowdown == 1
    assert after_times(*[0.001] * 50, *[0.1] * 50).slowdown == 1


@pytest.mark.parametrize("answer", [failure(503), failure(429), *(failure(kind=kind) for kind in (ErrorKind.TIMEOUT,))])
def test_trouble_is_no_measure_of_answer_times(answer: PauseFacts) -> None:
    times = after_times(0.2, 0.3)
    assert times.after(answer._replace(started_at=END - 60)) is times


def test_the_lag_of_the_crawler_makes_no_site_slower() -> None:
    times = after_times(*[0.2] * 50)
    for _ in range(20):
        times = times.after(page(4.0)._replace(lag_s=3.8))
    assert times.slowdown == 1


@pytest.mark.parametrize(
    ("took_s", "crawl_delay_s", "pause_s", "code"),
    [
        (0.3, None, 6.0, WaitCode.SLOWER),
        (1.0, None, 15.0, WaitCode.SLOWER),
        (3.0, None, 30.0, WaitCode.SLOWER),
        (0.3, 5.0, 15.0, WaitCode.SLOWER),
        (0.3, 20.0, 30.0, WaitCode.SLOWER),
        (0.3, 60.0, 60.0, WaitCode.CRAWL_DELAY),
    ],
)
def test_pauses_are_as_many_times_as_long_up_to_the_cap(
    took_s: float, crawl_delay_s: float | None, pause_s: float, code: WaitCode
) -> None:
    asked = constraints(page(took_s), 0.0, crawl_delay_s, DEFAULT, slowdown=3.0)
    longest = max(asked, key=lambda constraint: constraint.pause_s)
    assert (longest.pause_s, longest.code) == (pytest.approx(pause_s), code)
    assert max(each.pause_s for each in constraints(page(took_s), 0.0, crawl_delay_s, DEFAULT)) < pause_s or (
        code is WaitCode.CRAWL_DELAY
    )


def test_a_crawl_delay_just_read_holds_from_that_answer_on() -> None:
    pace = Pace(END + 2, 2.0, 0.0, WaitReason(WaitCode.DELAY))
    assert with_crawl_delay(pace, END, None, DEFAULT) is pace
    assert with_crawl_delay(pace, END, 1.0, DEFAULT) is pace
    assert with_crawl_delay(pace, END, 60.0, DEFAULT) == Pace(END + 60, 60.0, 0.0, WaitReason(WaitCode.CRAWL_DELAY))
    later = Pace(END + 100, 100.0, 100.0, WaitReason(WaitCode.RETRY_AFTER, "503"))
    assert with_crawl_delay(later, END, 60.0, DEFAULT) is later


def test_a_crash_counts_as_the_end_of_a_request() -> None:
    assert after_crash(Pace(END - 50, 1.0), DEFAULT, END).next_at == END + 2
    assert after_crash(Pace(END - 50, 1.0), DEFAULT, END).pause_s == 2
    assert after_crash(Pace(END - 50, 60.0), DEFAULT, END).next_at == END + 60
    waiting = Pace(END + 3600, 60.0, 0.0, WaitReason(WaitCode.RETRY_AFTER, "503"))
    assert after_crash(waiting, DEFAULT, END) is waiting


@pytest.mark.parametrize(
    ("site", "by", "group"),
    [
        ("http://www.a.co.uk:8080", GroupBy.HOST, "www.a.co.uk"),
        ("https://www.a.co.uk", GroupBy.HOST, "www.a.co.uk"),
        ("http://www.a.co.uk", GroupBy.DOMAIN, "a.co.uk"),
        ("http://[::1]:80", GroupBy.HOST, "::1"),
        ("http://127.0.0.1", GroupBy.DOMAIN, "127.0.0.1"),
    ],
)
def test_groups(site: str, by: GroupBy, group: str) -> None:
    assert group_name(site, by) == group


AHEAD_S = 400 * 86400.0


@pytest.mark.parametrize("code", list(WaitCode))
def test_a_time_set_by_a_clock_that_was_ahead_is_set_right(code: WaitCode) -> None:
    stored = Pace(END + AHEAD_S + 7.5, 7.5, 0.0, WaitReason(code))
    assert within_reason(stored, END) == replace(stored, next_at=END + 7.5), "the whole pause"
    assert within_reason(stored, END + AHEAD_S) is stored


@pytest.mark.parametrize("code", [WaitCode.CRAWL_DELAY, WaitCode.RETRY_AFTER, WaitCode.BACKOFF])
@pytest.mark.parametrize("pause_s", [1.0, 3600.0, 2 * AHEAD_S])
def test_a_pause_that_was_asked_for_is_never_set_right_to_less(code: WaitCode, pause_s: float) -> None:
    asked = Pace(END + pause_s, pause_s, 0.0, WaitReason(code))
    assert within_reason(asked, END) is asked
    assert within_reason(asked, END + pause_s / 2) is asked
    for behind_s in (1.0, 61.0, AHEAD_S):  # this clock is behind the one that set the pause
        assert within_reason(asked, END - behind_s).next_at >= END - behind_s + pause_s


@pytest.mark.parametrize("code", [WaitCode.HOURS, WaitCode.ADDRESS, WaitCode.DOMAIN])
def test_a_wait_of_the_crawlers_own_may_last_longer_than_the_pause(code: WaitCode) -> None:
    held = Pace(END + 86_000, 2.0, 0.0, WaitReason(code))
    assert within_reason(held, END) is held


def test_a_pace_after_an_answer_is_within_reason() -> None:
    for answer in (page(1.0), failure(503, retry_after="1000000000")):
        pace = after_answer(Pace(), answer, 1e8, DEFAULT)
        assert within_reason(pace, answer.finished_at) is pace
    assert within_reason(after_crash(Pace(), DEFAULT, END), END).next_at == END + DEFAULT.delay_s
