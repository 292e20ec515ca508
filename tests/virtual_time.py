"""Virtual time: an event loop whose clock jumps to the next timer when nothing is ready.

An hour of ``Retry-After`` takes microseconds, and a run repeats exactly. Threads do not know virtual time. The clock
therefore stops while a thread works for the loop: the loop recognises ``run_in_executor``, and ``hold()`` covers other
threads. Connections of aiosqlite have no threads here: each call is executed at once, as if by a thread that takes no
time. The loop takes the results of threads and of databases only when nothing else is ready, one at a time and in the
order of the calls, so their real speed cannot change the order of events. The loop supports no sockets: an answer in
flight would not stop the clock.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import Any, TypeVar, TypeVarTuple, cast
from unittest import mock

import aiosqlite.core

from crawler.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH_S = 1_800_000_000.0
"""When virtual time begins, in seconds since the epoch."""

#: By how much asyncio lets timers go off early.
_RESOLUTION_S = time.get_clock_info("monotonic").resolution
#: Real seconds after which a thread that holds the clock is given up: long enough for a busy machine.
_PATIENCE_S = 300.0
#: Real seconds to wait for something that nobody announced, before the loop counts as stalled.
_GRACE_S = 30.0


class Stalled(RuntimeError):
    """Nothing is ready, no timer runs and no thread works, so the awaited event cannot happen."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop. ``time()`` begins at 0 and moves only when nothing is ready."""

    def __init__(self) -> None:
        self._now = 0.0
        self._holds = 0
        self._calls: dict[asyncio.Future[Any], None] = {}  # of threads and databases, in the order of the calls
        self._results: dict[asyncio.Future[Any], Callable[[], object]] = {}  # of calls in _calls
        self._others: deque[Callable[[], object]] = deque()  # from threads too, but of no recorded call
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now

    def hold_until(self, future: asyncio.Future[Any]) -> None:
        """Keep the clock until ``future``, which a thread will set, is done."""
        self._calls[future] = None
        future.add_done_callback(self._release)

    def answer(self, future: asyncio.Future[Any], give: Callable[[], object]) -> None:
        """Call ``give``, which sets ``future``, when the results of all earlier calls have been taken."""
        self.hold_until(future)
        self._results[future] = give

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the clock inside the block."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        # The time of _arrive depends on real time. It has no visible effect until nothing else is ready.
        return super().call_soon_threadsafe(self._arrive, callback, args, context)

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future = cast("asyncio.Future[T]", super().run_in_executor(executor, func, *args))
        self.hold_until(future)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        with self.hold():
            await super().shutdown_default_executor()

    def _arrive(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None) -> None:
        def hand_over() -> None:
            self.call_soon(callback, *args, context=context)

        if args and isinstance(args[0], asyncio.Future) and args[0] in self._calls:
            self._results[args[0]] = hand_over
        else:
            self._others.append(hand_over)

    def _release(self, future: asyncio.Future[Any]) -> None:
        self._calls.pop(future, None)
        if (late := self._results.pop(future, None)) is not None:
            self._others.append(late)  # the caller was cancelled meanwhile

    def idle(self, timeout_s: float | None) -> float:
        """Called when nothing is ready: hand over one result, or move the clock by ``timeout_s``.

        Returns for how many real seconds to wait for threads: 0 where there is something to do now.
        """
        if self._others:
            self._others.popleft()()
        elif self._calls and self._calls.keys() == self._results.keys():
            self._results.pop(next(iter(self._calls)))()
        elif self._calls or self._holds:
            return _PATIENCE_S
        elif timeout_s is None:
            return _GRACE_S
        else:
            self._now += timeout_s
            if self._now + _RESOLUTION_S == self._now:  # after months: asyncio wants to be past the time of a timer
                self._now = math.nextafter(self._now, math.inf)
        return 0.0


class _Selector(selectors.DefaultSelector):
    """Calls the loop in place of sleeping."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Threads add what they hand over to what is ready, so only a wait for them needs the system: a call of it for
        # each step of the loop was a twentieth of the time of a simulation.
        if timeout is not None and timeout <= 0:
            return []
        wait_s = self._loop.idle(timeout)
        if not wait_s:
            return []
        events = super().select(wait_s)
        if not events:
            raise Stalled(f"nothing happened for {wait_s:g} s of real time, and nothing is due")
        return events


class VirtualClock(Clock):
    """The crawler's clock on a :class:`VirtualLoop`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop

    def now(self) -> float:
        return EPOCH_S + self.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _CallsAtOnce:
    """In place of the queue of an aiosqlite connection, from which its thread would take the calls."""

    def put_nowait(self, call: tuple[asyncio.Future[Any] | None, Callable[[], Any]]) -> None:
        """Execute a call. Its result arrives when nothing else is ready."""
        future, function = call
        if future is None:  # outside a loop, to close a connection that nobody closed
            function()
            return
        try:
            give = partial(aiosqlite.core.set_result, future, function())
        except Exception as error:
            give = partial(aiosqlite.core.set_exception, future, error)
        loop = future.get_loop()
        assert isinstance(loop, VirtualLoop)
        loop.answer(future, give)


class _NoThread:
    """In place of the thread of an aiosqlite connection."""

    def __init__(self, **_: object) -> None:
        pass

    def start(self) -> None:
        """No-op: the queue executes the calls."""


def run_virtual(main: Callable[[VirtualClock], Awaitable[T]]) -> T:
    """Run ``main(clock)`` to its end in virtual time. Raises :class:`Stalled` if it cannot end."""

    async def run() -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return await main(VirtualClock(loop))

    without_threads = mock.patch.multiple(aiosqlite.core, SimpleQueue=_CallsAtOnce, Thread=_NoThread)
    with without_threads, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())
