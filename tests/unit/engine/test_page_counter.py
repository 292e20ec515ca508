"""The pages that a worker may request under --max-pages."""

from __future__ import annotations

import asyncio

from crawler.engine.page_counter import PageCounter
from crawler.store.rows import PageGrant, PageRequest


def counter(reserved: int, left: int, limit: int = 100) -> PageCounter:
    pages = PageCounter(limit)
    pages.learn(0, PageGrant(reserved, left))
    return pages


async def test_a_task_that_waits_wakes_the_loop_once_it_is_counted() -> None:
    """Else the loop sleeps on after a commit that brought no page, and so does the task."""
    seen: list[bool] = []
    pages = PageCounter(100, lambda: seen.append(pages.needs_commit))
    waiting = asyncio.create_task(pages.acquire())
    await asyncio.sleep(0)
    assert seen == [True]
    waiting.cancel()


async def test_an_unused_page_goes_to_the_longest_waiting_task_and_the_limit_ends_all_waits() -> None:
    pages, order = counter(1, 1), list[str]()

    async def ask(name: str, *, fetched: bool) -> None:
        if not await pages.acquire():
            order.append(f"{name}: reached")
            return
        order.append(name)
        await asyncio.sleep(0)
        if fetched:
            pages.learn(1, PageGrant(0, 0))
        else:
            pages.release()

    async with asyncio.timeout(300):
        await asyncio.gather(ask("a", fetched=False), ask("b", fetched=True), ask("c", fetched=True))
    assert order == ["a", "b", "c: reached"]
    assert pages.is_reached


async def test_a_cancelled_wait_passes_its_page_on() -> None:
    pages = counter(1, 1)
    assert await pages.acquire()
    first, second, third = (asyncio.create_task(pages.acquire()) for _ in range(3))
    await asyncio.sleep(0)
    second.cancel()
    pages.release()
    first.cancel()
    async with asyncio.timeout(300):
        assert await third
        await asyncio.gather(first, second, return_exceptions=True)
    assert pages.request(0) == PageRequest(100, 1, 1), "no task waits, and one page is in use"


async def test_without_a_limit_no_task_waits() -> None:
    pages = PageCounter(None)
    assert [await pages.acquire() for _ in range(100)] == [True] * 100
    pages.release()
    assert (pages.request(3), pages.needs_commit, pages.is_reached) == (None, False, False)


async def test_half_of_the_spare_pages_are_left_to_the_store_while_a_commit_is_under_way() -> None:
    pages = counter(10, 50)
    assert await pages.acquire()
    assert await pages.acquire()
    assert pages.request(1) == PageRequest(100, 5, 1), "one of the two in use is being committed"
    assert [await pages.acquire() for _ in range(4)] == [True] * 4
    waiting = asyncio.create_task(pages.acquire())
    await asyncio.sleep(0)
    assert not waiting.done(), "the store may have given the other half to another worker"
    pages.learn(1, PageGrant(6, 49))
    async with asyncio.timeout(300):
        assert await waiting
    assert not pages.needs_commit


def test_a_lost_lease_takes_the_reserved_pages_along() -> None:
    pages = counter(10, 50)
    assert pages.needs_commit, "others may want for the pages"
    pages.lose()
    assert pages.request(0) == PageRequest(100, 0, 0)


def test_groups_are_claimed_for_the_pages_reserved_and_a_few_more() -> None:
    assert PageCounter(None).more_groups(2000, 5) == 2000
    pages = counter(25, 100)
    assert (pages.more_groups(2000, 5), pages.more_groups(7, 5), pages.more_groups(2000, 50)) == (30, 7, 0)
    pages.learn(0, PageGrant(0, 0))
    assert (pages.more_groups(2000, 0), pages.ends_work) == (0, True)
    pages.only_revisits = True
    assert (pages.more_groups(2000, 20), pages.ends_work, pages.request(0)) == (2000, False, None)
