"""A task that goes on while something else is done."""

import asyncio

import pytest

from crawler.engine.tasks import background_task, required_task


async def test_it_goes_on_while_inside_and_is_over_behind() -> None:
    said, begun = list[object](), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # its end takes a while, and is waited for
            said.append("over")

    async with background_task(work(), said.append):
        await begun.wait()
        assert not said
    assert said == ["over"], "its end was no failure"


async def test_a_failure_is_told_at_once() -> None:
    told = asyncio.Queue[BaseException]()
    error = ValueError()

    async def work() -> None:
        raise error

    async with background_task(work(), told.put_nowait):
        assert await told.get() is error


async def test_who_needs_what_fails_is_cut_off() -> None:
    inside = asyncio.Event()

    async def work() -> None:
        await inside.wait()
        raise ValueError("the lease is lost")

    async def user() -> None:
        async with required_task(work()):
            inside.set()
            await asyncio.Event().wait()

    with pytest.raises(ValueError, match="the lease is lost"):
        await user()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_cancelled_one_stays_cancelled() -> None:
    async def user() -> None:
        async with required_task(asyncio.sleep(60)):
            await asyncio.Event().wait()

    task = asyncio.create_task(user())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
