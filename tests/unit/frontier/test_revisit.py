"""When to come again: the estimate, the bounds, the budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.frontier.revisit import (
    DAY_S,
    DUE_CHANCE,
    TEMPO,
    Choice,
    Habits,
    RevisitSettings,
    allowance,
    expected,
    hint_trust,
    learn,
    next_visit,
    pay,
)

HOUR_S = 3_600.0
SETTINGS = RevisitSettings(True, first_s=7 * DAY_S, min_interval_s=HOUR_S, max_interval_s=60 * DAY_S)


def due_in_s(habits: Habits, **more: float) -> float:
    return next_visit(habits, 1000.0, SETTINGS, **more).due_at - 1000.0  # type: ignore[arg-type]


@pytest.mark.parametrize(("state", "days"), [(None, 7), ("DYNAMIC", 1), ("STATIC", 28)])
def test_a_page_of_which_nothing_is_known_is_due_after_first_in_the_tempo_that_it_names(
    state: str | None, days: float
) -> None:
    assert due_in_s(expected(SETTINGS.first_s * TEMPO[state])) == pytest.approx(days * DAY_S)


def test_it_is_due_when_the_chance_of_a_change_is_a_third() -> None:
    habits = Habits(3.0, 10 * DAY_S)
    assert habits.chance(habits.due_s()) == pytest.approx(DUE_CHANCE)
    assert habits.chance(0.0) == 0.0


def test_changes_that_are_dated_are_estimated_exactly() -> None:
    """At visits that are a day apart, the last change is four hours old: X / T is one in four hours."""
    habits = expected(7 * DAY_S)
    for _ in range(90):
        habits = learn(habits, DAY_S, changed=True, unchanged_s=4 * HOUR_S)
    assert habits.changes / habits.watched_s == pytest.approx(1 / (4 * HOUR_S), rel=0.01)
    assert habits.rate_per_s == pytest.approx(1 / (4 * HOUR_S), rel=0.06)


def test_changes_without_a_date_count_from_half_way() -> None:
    none, half_way = Habits(0.0, 0.0), Habits(1.0, 5 * HOUR_S)
    assert learn(none, 10 * HOUR_S, changed=True) == half_way
    assert learn(none, 10 * HOUR_S, changed=True, unchanged_s=3.0) == half_way, "made for the answer"
    assert learn(none, 10 * HOUR_S, changed=True, unchanged_s=20 * HOUR_S) == half_way, "not so old"
    assert learn(none, 10 * HOUR_S, changed=False) == Habits(0.0, 10 * HOUR_S)


def test_habits_that_change_are_learnt_anew() -> None:
    habits = expected(7 * DAY_S)
    for _ in range(30):
        habits = learn(habits, due_in_s(habits), changed=False)
    assert due_in_s(habits) == SETTINGS.max_interval_s
    for _ in range(60):
        habits = learn(habits, due_in_s(habits), changed=True)
    assert due_in_s(habits) < 6 * HOUR_S


def test_the_bounds_and_what_the_answer_promised() -> None:
    busy, still, usual = Habits(50.0, HOUR_S), Habits(0.0, 4000 * DAY_S), expected(7 * DAY_S)
    assert due_in_s(busy) == HOUR_S
    assert due_in_s(still) == 60 * DAY_S
    assert due_in_s(busy, fresh_s=5 * HOUR_S) == 5 * HOUR_S
    assert due_in_s(busy, fresh_s=9999 * DAY_S) == 60 * DAY_S
    assert due_in_s(usual, fresh_s=HOUR_S) == pytest.approx(7 * DAY_S)
    assert [due_in_s(usual, failures=n) / DAY_S for n in (1, 2, 9)] == pytest.approx([14, 28, 60])
    assert next_visit(busy, 0.0, replace(SETTINGS, max_interval_s=1.0)).due_at == HOUR_S, "the least wins"


def test_a_days_budget_is_regained_evenly() -> None:
    assert allowance(0.0, 24, 50 * DAY_S) == 24
    paid = pay(0.0, 24, 24, 50 * DAY_S)
    assert [allowance(paid, 24, 50 * DAY_S + hours * HOUR_S) for hours in (0, 0.9, 1, 5, 24, 90)] == [
        0,
        0,
        1,
        5,
        24,
        24,
    ]


def test_another_budget_takes_over_the_part_of_the_day_that_is_spent() -> None:
    paid = pay(0.0, 12, 24, 50 * DAY_S)
    assert allowance(paid, 1000, 50 * DAY_S) == 500


def test_the_likeliest_are_chosen_within_both_budgets() -> None:
    choice = Choice(3, lambda site: 2 if site == 1 else None)
    for site, number, chance in [(1, 10, 0.9), (1, 11, 0.8), (1, 12, 0.7), (2, 20, 0.5), (2, 21, 0.6), (2, 22, 0.1)]:
        choice.offer(site, number, chance)
    assert sorted(choice.chosen()) == [10, 11, 21]


def test_without_a_budget_all_are_chosen() -> None:
    choice = Choice(None, lambda site: None)
    for number in range(10):
        choice.offer(number % 3, number, 0.1)
    assert sorted(choice.chosen()) == list(range(10))


def test_hints_lose_their_word_where_they_are_mostly_wrong() -> None:
    assert hint_trust(0, 0) > DUE_CHANCE
    assert hint_trust(10, 0) < DUE_CHANCE < hint_trust(10, 5)
