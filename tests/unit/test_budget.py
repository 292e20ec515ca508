"""The pages that --max-pages leaves, handed around."""

from __future__ import annotations

import asyncio

from crawler.loops.budget import Budget


async def test_what_brought_no_page_goes_to_who_waited_longest_and_the_last_page_ends_all_waits() -> None:
    budget, order = Budget(1), list[str]()

    async def ask(name: str, *, fetched: bool) -> None:
        if await budget.take():
            order.append(name)
            await asyncio.sleep(0)
            budget.give_back(fetched=fetched)
        else:
            order.append(f"{name}: spent")

    async with asyncio.timeout(5):
        await asyncio.gather(ask("a", fetched=False), ask("b", fetched=True), ask("c", fetched=True))
    assert order == ["a", "b", "c: spent"]
    assert budget.is_spent


async def test_a_cancelled_wait_hands_its_turn_on() -> None:
    budget = Budget(1)
    assert await budget.take()
    first, second = asyncio.create_task(budget.take()), asyncio.create_task(budget.take())
    await asyncio.sleep(0)
    budget.give_back(fetched=False)
    first.cancel()
    async with asyncio.timeout(5):
        assert await second
    assert not budget.is_free


async def test_without_a_limit_nobody_waits() -> None:
    budget = Budget(float("inf"))
    assert [await budget.take() for _ in range(100)] == [True] * 100
    budget.give_back(fetched=True)
    assert budget.is_free
    assert not budget.is_spent
