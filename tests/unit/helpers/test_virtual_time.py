"""Virtual time passes at once, in order, repeatably, and never while a thread works."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from pathlib import Path

import aiosqlite
import pytest

from tests import virtual_time
from tests.virtual_time import EPOCH_S, Stalled, VirtualClock, run_virtual


def test_an_hour_takes_no_time() -> None:
    async def main(clock: VirtualClock) -> float:
        await clock.sleep(3600)
        return clock.now()

    assert run_virtual(main) == EPOCH_S + 3600


def test_timers_go_off_in_their_order_and_at_their_time() -> None:
    async def main(clock: VirtualClock) -> list[float]:
        seen: list[float] = []

        async def wake(after_s: float) -> None:
            await clock.sleep(after_s)
            seen.append(clock.now() - EPOCH_S)

        await asyncio.gather(*(wake(after_s) for after_s in (7, 0.5, 86400, 7, 1)))
        return seen

    assert run_virtual(main) == [0.5, 1, 7, 7, 86400]


def test_a_timeout_is_virtual_too() -> None:
    async def main(clock: VirtualClock) -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await clock.sleep(60)
        return clock.now() - EPOCH_S

    assert run_virtual(main) == 30


def test_the_clock_moves_however_late_it_is() -> None:
    async def main(clock: VirtualClock) -> float:
        await clock.sleep(1e9)
        for _ in range(10):
            await clock.sleep(1e-7)
        return clock.now() - EPOCH_S

    assert run_virtual(main) == pytest.approx(1e9)


def test_the_clock_stands_still_while_a_thread_works() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        events: list[str] = []

        async def work() -> None:
            await asyncio.to_thread(time.sleep, 0.05)
            events.append(f"worked until {clock.now() - EPOCH_S:g}")

        async def tick() -> None:
            await clock.sleep(10)
            events.append("tick")

        await asyncio.gather(tick(), work())
        return events

    assert run_virtual(main) == ["worked until 0", "tick"]


def test_the_clock_stands_still_while_it_is_held() -> None:
    async def main(clock: VirtualClock) -> float:
        timer, done = asyncio.create_task(clock.sleep(5)), asyncio.Event()
        thread = threading.Timer(0.05, lambda: clock.loop.call_soon_threadsafe(done.set))
        thread.start()
        with clock.loop.hold():
            await done.wait()
            await asyncio.to_thread(time.sleep, 0.01)
            at = clock.now() - EPOCH_S
        thread.join()
        await timer
        return at

    assert run_virtual(main) == 0


def test_the_clock_stands_still_for_the_whole_life_of_a_database(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> float:
        ticking = asyncio.create_task(_tick_forever(clock))
        async with aiosqlite.connect(tmp_path / "a.db") as db:
            await db.create_function("pause", 0, lambda: time.sleep(0.02))
            await db.execute("CREATE TABLE t (x)")
            await db.executemany("INSERT INTO t VALUES (?)", [(x,) for x in range(100)])
            await db.execute_fetchall("SELECT pause()")
            await db.commit()
        ticking.cancel()
        return clock.now() - EPOCH_S

    assert run_virtual(main) == 0


async def _tick_forever(clock: VirtualClock) -> None:
    while True:
        await clock.sleep(1)


def _busy_run(folder: Path) -> list[str]:
    """Several tasks on two databases; how long each statement really takes is chance."""
    chance = random.Random()

    async def main(clock: VirtualClock) -> list[str]:
        events: list[str] = []

        async def work(name: str, db: aiosqlite.Connection, every_s: float) -> None:
            for n in range(8):
                await clock.sleep(every_s)
                await db.execute_fetchall("SELECT pause()")
                events.append(f"{name}{n} at {clock.now() - EPOCH_S:g}")
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                events.append(f"{name}{n} again")

        async with aiosqlite.connect(folder / "a.db") as a, aiosqlite.connect(folder / "b.db") as b:
            for db in (a, b):
                await db.create_function("pause", 0, lambda: time.sleep(chance.random() / 500))
            jobs = [("p", a, 1), ("q", a, 0.5), ("r", b, 1), ("s", b, 0)]
            await asyncio.gather(*(work(name, db, every_s) for name, db, every_s in jobs))
        return events

    return run_virtual(main)


def test_a_run_with_two_databases_repeats_exactly(tmp_path: Path) -> None:
    runs = [_busy_run(tmp_path) for _ in range(8)]
    assert all(run == runs[0] for run in runs)
    assert len(runs[0]) == 64


def test_a_cancelled_call_gives_the_clock_free(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> float:
        async with aiosqlite.connect(tmp_path / "a.db") as db:
            await db.create_function("pause", 0, lambda: time.sleep(0.02))
            call = asyncio.create_task(db.execute_fetchall("SELECT pause()"))
            await asyncio.sleep(0)
            call.cancel()
            await clock.sleep(3)
            assert call.cancelled()
            await db.execute_fetchall("SELECT pause()")
        return clock.now() - EPOCH_S

    assert run_virtual(main) == 3


def test_an_error_in_the_database_is_raised_in_its_caller(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with aiosqlite.connect(tmp_path / "a.db") as db:
            await db.execute("SELECT * FROM absent")

    with pytest.raises(aiosqlite.OperationalError, match="no such table"):
        run_virtual(main)


def test_waiting_for_an_impossible_event_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep(5)
        await asyncio.Event().wait()

    monkeypatch.setattr(virtual_time, "_GRACE_S", 0.02)
    with pytest.raises(Stalled):
        run_virtual(main)
