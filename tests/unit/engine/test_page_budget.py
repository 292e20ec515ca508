"""The budget of pages that --max-pages leaves."""

from __future__ import annotations

import asyncio

from crawler.clock import SystemClock
from crawler.engine.claim_capacity import ClaimCapacity
from crawler.engine.page_budget import Budget, budget_for
from crawler.store.rows import PageGrant


async def test_an_unused_page_goes_to_the_longest_waiting_task_and_the_last_page_ends_all_waits() -> None:
    budget, order = Budget(1), list[str]()

    async def ask(name: str, *, fetched: bool) -> None:
        if await budget.take():
            order.append(name)
            await asyncio.sleep(0)
            budget.give_back(fetched=fetched)
        else:
            order.append(f"{name}: spent")

    async with asyncio.timeout(300):
        await asyncio.gather(ask("a", fetched=False), ask("b", fetched=True), ask("c", fetched=True))
    assert order == ["a", "b", "c: spent"]
    assert budget.is_spent


async def test_a_cancelled_wait_passes_its_page_on() -> None:
    budget = Budget(1)
    assert await budget.take()
    first, second = asyncio.create_task(budget.take()), asyncio.create_task(budget.take())
    await asyncio.sleep(0)
    budget.give_back(fetched=False)
    first.cancel()
    async with asyncio.timeout(300):
        assert await second
    assert not budget.is_free


async def test_without_a_limit_no_task_waits() -> None:
    budget = Budget(float("inf"))
    assert [await budget.take() for _ in range(100)] == [True] * 100
    budget.give_back(fetched=True)
    assert budget.is_free
    assert not budget.is_spent


async def test_a_worker_keeps_pages_for_its_groups_up_to_its_share() -> None:
    budget = budget_for(100, 2.0, is_shared=True)
    assert not budget.is_free
    assert budget.ends_work(), "there is no page for any group"
    budget.settle(0, PageGrant(10, 25, none_left=False, reached=False))
    assert await budget.take()
    assert (budget.keep(3), budget.under_way) == (3, 1), "one for each group, which is asked every two seconds"
    budget.settle(0, PageGrant(4, 2, none_left=False, reached=False))
    assert budget.keep(3) == 1, "the share of a worker is two, one of which is under way"
    budget.give_back(fetched=True)
    assert budget.keep(0) == 0
    assert (budget.under_way, budget.is_free) == (1, False), "what has come is not committed yet"
    budget.settle(1, PageGrant(0, 1, none_left=True, reached=False))
    assert (budget.under_way, budget.waits_for_others, budget.is_spent) == (0, True, False)
    assert not await budget.take()
    budget.settle(0, PageGrant(0, 0, none_left=True, reached=True))
    assert (budget.waits_for_others, budget.is_spent) == (False, True)


def test_a_process_with_more_groups_than_its_share_exceeds_it() -> None:
    capacity = ClaimCapacity(SystemClock())
    capacity.note_held(1000)
    assert not capacity.exceeds_share, "no other process takes part"
    capacity.learn_share(2)
    for held, exceeds in ((2, False), (3, True)):
        capacity.note_held(held)
        assert capacity.exceeds_share == exceeds


def test_groups_are_claimed_for_the_pages_wanted_and_a_few_more() -> None:
    assert Budget().more_groups(2000) == 2000
    budget = budget_for(100, 2.0, is_shared=True)
    assert budget.more_groups(2000) == 110, "what others take is not known yet"
    budget.settle(0, PageGrant(10, 25, none_left=False, reached=False))
    for _ in range(5):
        budget.enter_group(for_pages=True)
    budget.enter_group(for_pages=False)
    assert (budget.more_groups(2000), budget.more_groups(7)) == (30, 7)
    for _ in range(45):
        budget.enter_group(for_pages=True)
    assert budget.more_groups(2000) == 0
    budget.restrict_to_revisits()
    assert budget.more_groups(2000) == 2000
