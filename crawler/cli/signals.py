"""SIGINT and SIGTERM during a command that crawls."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Protocol, Self

from crawler.cli.shared import STOPPED
from crawler.clock import boot_s
from crawler.reasons import EndCode, RunEnd

#: How long a crawl that was told to stop may take to end in order, in seconds.
END_WITHIN_S = 9.0
#: The same for the process above several workers. Each worker keeps its own time, and may only be starting.
TEAM_ENDS_WITHIN_S = 2 * END_WITHIN_S
#: The same after a second signal: a commit, and the summary.
_ENDS_NOW_WITHIN_S = 2.0
#: Programs such as `timeout` and `uv run` send one signal twice. A person is slower.
_SAME_SIGNAL_S = 0.3
_LAST_WORDS_S = 1.0
_LOOK_AGAIN_S = 1.0
_SHOW_CURSOR = b"\x1b[?25h"
_TOO_LATE = (
    b"crawler: the run could not end in order in time and was ended at once; everything committed is kept, and "
    b"the same command continues the crawl\n"
)


class Stoppable(Protocol):
    """A crawl that can be stopped."""

    def stop(self, why: RunEnd) -> None: ...

    def end_grace(self) -> None:
        """Give requests in flight no more time after a stop."""
        ...


class Reconnecting(Protocol):
    """A store, or several workers with one each, whose database may be away."""

    @property
    def away_s(self) -> float | None:
        """For how long the database or the object store has been away, in seconds; ``None`` if both answer."""
        ...

    def give_up(self) -> None:
        """Wait no longer: all calls that wait for the database or the object store fail at once."""
        ...


class ForcedEnd:
    """Ends the process by force at a time, from a thread: the event loop or the store may not answer.

    That has the effect of ``kill -9``: what was committed is kept, and the same command continues the crawl. The exit
    code is :data:`STOPPED`, or the ``code`` of a command that has printed its end. A context manager: on exit, nothing
    ends the process any more.
    """

    def __init__(self) -> None:
        self._timers: list[threading.Timer] = []
        #: The exit code of a command that has printed its end, and has nothing to do but to clean up.
        self.code: int | None = None
        #: Whether a forced end prints nothing.
        self.is_quiet = False
        #: Whether the end is put off, because the crawl waits for its database.
        self.is_postponed: Callable[[], bool] = lambda: False
        #: Prints the summary of a run that is ended by force. It has a second: its store may not answer.
        self.last_words: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.cancel()

    def after(self, seconds: float) -> None:
        """End the process after some time, unless it ends before."""
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def cancel(self) -> None:
        """Let the process take its time."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _end(self) -> None:
        if self.is_postponed():
            self.after(_LOOK_AGAIN_S)
            return
        if self.code is None and not self.is_quiet:
            if os.isatty(1):
                os.write(1, _SHOW_CURSOR)  # the live display hides it
            os.write(2, _TOO_LATE)
            words = threading.Thread(target=self.last_words, daemon=True)
            words.start()
            words.join(_LAST_WORDS_S)
        os._exit(STOPPED if self.code is None else self.code)


class Signals:
    """Handles SIGINT and SIGTERM.

    A signal stops the crawl in order; before the crawl has begun, it cancels the command. A second signal cancels the
    requests in flight: the crawl commits once more and ends. To stop in order, the crawl needs the store. If the store
    does not answer, a second signal ends the wait for it. ``code`` is the end of a run that a signal stops.

    Invariant: a crawl that was told to stop ends within :data:`END_WITHIN_S`, unless it waits for a lost database. If
    it cannot end in order, because the event loop or the store is too slow, ``forced_end`` ends the process. Rounds,
    whose results take their time to write, have that bound only after a second signal.
    """

    def __init__(self, code: EndCode = EndCode.SIGNAL, forced_end: ForcedEnd | None = None) -> None:
        self.came: str | None = None
        self._code = code
        self._crawl: Stoppable | None = None
        self._store: Reconnecting | None = None
        self._gives_up = False
        self._end_within_s: float | None = END_WITHIN_S
        self._forced_end = forced_end or ForcedEnd()
        self._forced_end.is_postponed = self._waits_for_store
        self._is_limited = False
        self._noticed_at: float | None = None
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
        end_within_s: float | None = END_WITHIN_S,
    ) -> None:
        """From now on a signal stops ``crawl``. With ``gives_up`` a second one ends its wait for a lost ``store``.

        With ``end_within_s`` ``None``, a crawl takes its time after the first signal.
        """
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

    def end_grace(self) -> None:
        """Give the requests of a crawl that was told to stop no more time."""
        if self._crawl is not None:
            self._crawl.end_grace()

    def _notice(self, number: int, _: object) -> None:
        """Note a signal at once. A handler of the event loop would run after all data that have arrived are processed.

        The loop may receive from one connection many times before it looks at anything else.
        """
        if self._loop.is_closed():
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            signal.raise_signal(number)
            return
        self._begin_limit()
        now_s = boot_s()
        is_second = self._noticed_at is not None and now_s - self._noticed_at >= _SAME_SIGNAL_S
        self._noticed_at = self._noticed_at or now_s
        if is_second and self._crawl is not None:
            self._forced_end.after(_ENDS_NOW_WITHIN_S)
        self._loop.call_soon_threadsafe(self._come, signal.Signals(number).name, is_second)

    def _begin_limit(self) -> None:
        """From now on the crawl has its time to end."""
        if self._crawl is not None and self._end_within_s is not None and not self._is_limited:
            self._is_limited = True
            self._forced_end.after(self._end_within_s)

    def _come(self, name: str, is_second: bool) -> None:
        if is_second and self._gives_up and self._store is not None and self._store.away_s is not None:
            self._store.give_up()
        self.came = self.came or name
        self.stop(RunEnd(self._code, self.came))
        if is_second:
            self.end_grace()

    def end_after(self, max_time_s: float | None) -> None:
        """The crawl has ``--max-time``, and has as long to end after that time as after a signal."""
        if max_time_s is not None and self._end_within_s is not None:
            self._forced_end.after(max_time_s + self._end_within_s)

    def _waits_for_store(self) -> bool:
        return self._store is not None and self._store.away_s is not None
