"""SIGINT and SIGTERM during a command that crawls."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from crawler.cli.shared import STOPPED
from crawler.reasons import EndCode, RunEnd
from crawler.store.protocols import Reconnecting

#: How long a crawl that was told to stop may take to end in order, in seconds.
END_WITHIN_S = 9.0
#: The same for the process above several workers. Each worker keeps its own time, and may only be starting.
TEAM_ENDS_WITHIN_S = 2 * END_WITHIN_S
_LOOK_AGAIN_S = 1.0
_SHOW_CURSOR = b"\x1b[?25h"
_TOO_LATE = (
    b"crawler: the run could not end in order in time and was ended at once; everything committed is kept, and "
    b"the same command continues the crawl\n"
)


class Stoppable(Protocol):
    """A crawl that can be stopped."""

    def stop(self, why: RunEnd) -> None: ...


class Signals:
    """Handles SIGINT and SIGTERM.

    A signal stops the crawl in order; before the crawl has begun, it cancels the command. To stop in order, the crawl
    needs the store. If the store does not answer, a second signal ends the command at once. ``code`` is the
    end of a run that a signal stops.

    Invariant: a crawl that was told to stop ends within :data:`END_WITHIN_S`, unless it waits for a lost database. If
    it cannot end in order, because the event loop or the store is too slow, the process ends at once. That has the
    effect of ``kill -9``: what was committed is kept, and the same command continues the crawl.
    """

    def __init__(self, code: EndCode = EndCode.SIGNAL) -> None:
        self.came: str | None = None
        self._code = code
        self._crawl: Stoppable | None = None
        self._store: Reconnecting | None = None
        self._gives_up = False
        self._end_within_s = END_WITHIN_S
        self._limit: threading.Timer | None = None
        self._command = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._notice)

    def stop_from_now_on(
        self,
        crawl: Stoppable,
        store: Reconnecting | None = None,
        *,
        gives_up: bool = True,
        end_within_s: float = END_WITHIN_S,
    ) -> None:
        """From now on a signal stops ``crawl``. With ``gives_up`` a second one ends its wait for a lost ``store``."""
        self._end_within_s = end_within_s
        self._crawl, self._store, self._gives_up = crawl, store, gives_up

    def stop(self, why: RunEnd) -> None:
        """Stop the crawl, or cancel the command if there is no crawl yet."""
        self._begin_limit()
        if self._crawl is not None:
            self._crawl.stop(why)
        elif self._command is not None:
            self._command.cancel()
            self._command = None  # cancel once: the clean-up must not be cancelled

    def _notice(self, number: int, _: object) -> None:
        """Note a signal at once. A handler of the event loop would run after all data that have arrived are processed.

        The loop may receive from one connection many times before it looks at anything else.
        """
        if self._loop.is_closed():
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            signal.raise_signal(number)
            return
        self._begin_limit()
        self._loop.call_soon_threadsafe(self._come, signal.Signals(number).name)

    def _begin_limit(self) -> None:
        """From now on the crawl has its time to end."""
        if self._crawl is not None and self._limit is None:
            self._limit = self._end_after(self._end_within_s, STOPPED)

    def _come(self, name: str) -> None:
        if self.came and self._gives_up and self._store is not None and self._store.away_s is not None:
            self._store.give_up()
        self.came = self.came or name
        self.stop(RunEnd(self._code, self.came))

    @contextmanager
    def ending_within(self, max_time_s: float | None) -> Iterator[None]:
        """A context for a crawl with ``--max-time``, which has as long to end after that time as after a signal."""
        if max_time_s is None:
            yield
            return
        limit = self._end_after(max_time_s + self._end_within_s, 0)
        try:
            yield
        finally:
            limit.cancel()

    def _end_after(self, seconds: float, code: int) -> threading.Timer:
        """End the process with an exit code after some time. A thread does so, because the event loop may be busy."""
        timer = threading.Timer(seconds, self._end_process, (code,))
        timer.daemon = True
        timer.start()
        return timer

    def _end_process(self, code: int) -> None:
        if self._store is not None and self._store.away_s is not None:
            self._end_after(_LOOK_AGAIN_S, code)  # the crawl waits for its database
            return
        if os.isatty(1):
            os.write(1, _SHOW_CURSOR)  # the live display hides it
        os.write(2, _TOO_LATE)
        os._exit(code)
