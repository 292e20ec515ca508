"""Tasks that run while a context is entered."""

import asyncio

import pytest

from crawler.engine.tasks import background_task, required_task


async def test_a_background_task_runs_inside_the_context_and_is_awaited_on_exit() -> None:
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


async def test_a_failure_is_reported_at_once() -> None:
    told = asyncio.Queue[BaseException]()
    error = ValueError()

    async def work() -> None:
        raise error

    async with background_task(work(), told.put_nowait):
        assert await told.get() is error


async def test_the_context_of_a_required_task_is_cancelled_when_the_task_fails() -> None:
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


async def test_a_cancelled_context_stays_cancelled() -> None:
    async def user() -> None:
        async with required_task(asyncio.sleep(60)):
            await asyncio.Event().wait()

    task = asyncio.create_task(user())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
