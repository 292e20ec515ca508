"""For any pages, sites and clocks, the time of the next visit keeps its bounds, and no budget is overdrawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawler.frontier.hints import Hint, HintKind, usable
from crawler.frontier.revisit import Choice, RevisitSettings, allowance, expected, learn, next_visit, pay

SECONDS = st.floats(0, 1e10)
VISITS = st.lists(st.tuples(SECONDS, st.booleans(), st.none() | st.floats(-1e10, 1e10)), max_size=40)
NOW = 1_800_000_000.0


@given(
    VISITS, st.floats(1, 1e9), st.floats(1, 1e8), st.floats(1, 1e9), st.none() | st.floats(0, 1e10), st.integers(0, 99)
)
def test_the_next_visit_is_within_bounds(
    visits: list[tuple[float, bool, float | None]],
    first_s: float,
    least_s: float,
    most_s: float,
    fresh_s: float | None,
    failures: int,
) -> None:
    habits = expected(first_s)
    for interval_s, changed, unchanged_s in visits:
        habits = learn(habits, interval_s, changed=changed, unchanged_s=unchanged_s)
        assert 0 <= habits.changes <= 10 + 1e-9
        assert 0 < habits.watched_s <= first_s + 10.1 * 1e10
    settings = RevisitSettings(True, first_s, least_s, most_s)
    comes = next_visit(habits, NOW, settings, fresh_s=fresh_s, failures=failures)
    assert NOW + least_s <= comes.due_at <= NOW + max(least_s, most_s)
    assert comes.not_before <= comes.due_at
    assert 0 <= habits.chance(1e6) <= 1


@given(st.integers(1, 1000), st.lists(st.tuples(st.floats(0, 2e5), st.integers(0, 2000)), max_size=30))
def test_no_day_sees_more_than_twice_its_budget_and_no_longer_time_more_than_its_share(
    per_day: int, runs: list[tuple[float, int]]
) -> None:
    now, paid, spent = NOW, 0.0, 0
    for wait_s, wanted in runs:
        now += wait_s
        visits = min(wanted, allowance(paid, per_day, now))
        paid = pay(paid, visits, per_day, now)
        spent += visits
    assert spent <= per_day * (1 + (now - NOW) / 86_400.0) + 1


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), max_size=60),
    st.none() | st.integers(0, 20),
    st.none() | st.integers(0, 5),
)
def test_a_choice_is_of_the_likeliest(rows: list[tuple[int, float]], in_all: int | None, of_site: int | None) -> None:
    choice = Choice(in_all, lambda site: of_site)
    for number, (site, chance) in enumerate(rows):
        choice.offer(site, number, chance)
    by_chance = sorted(range(len(rows)), key=lambda number: (-rows[number][1], number))
    expected = list[int]()
    for number in by_chance:
        of_this = sum(rows[other][0] == rows[number][0] for other in expected)
        if (of_site is None or of_this < of_site) and (in_all is None or len(expected) < in_all):
            expected.append(number)
    assert sorted(choice.chosen()) == sorted(expected)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-1e12, 1e12)), max_size=20))
def test_of_hints_the_latest_counts_and_none_from_the_future(said: list[tuple[str, float]]) -> None:
    hints = [Hint(f"http://{name}.test/", HintKind.CHANGED, at, "x") for name, at in said]
    kept = {hint.url: hint.at for hint in usable(hints, NOW)}
    for url, at in kept.items():
        said_at = [hint.at for hint in hints if hint.url == url and hint.at <= NOW + 86_400]
        assert at == min(NOW, max(at if at % 86_400 else at + 86_400 for at in said_at)), (
            "a bare day counts until its end"
        )
    assert set(kept) == {hint.url for hint in hints if hint.at <= NOW + 86_400}
