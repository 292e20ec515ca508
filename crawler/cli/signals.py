"""What Ctrl-C and its like do to a command that crawls."""

from __future__ import annotations

import asyncio
import signal
from typing import Protocol

from crawler.reasons import EndCode, RunEnd
from crawler.store.coordination import Awaited


class Stoppable(Protocol):
    """A crawl that can be told to end."""

    def stop(self, why: RunEnd) -> None: ...


class Signals:
    """SIGINT and SIGTERM end the crawl in order, and the command at once where none has begun yet. In order takes the
    store: while that does not answer, a second signal is the end."""

    def __init__(self) -> None:
        self.came: str | None = None
        self._crawl: Stoppable | None = None
        self._store: Awaited | None = None
        self._command = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._come, number.name)

    def stop_from_now_on(self, crawl: Stoppable, store: Awaited | None = None) -> None:
        self._crawl, self._store = crawl, store

    def stop(self, why: RunEnd) -> None:
        """What a signal does, for whatever else ends the command."""
        if self._crawl is not None:
            self._crawl.stop(why)
        elif self._command is not None:
            self._command.cancel()
            self._command = None  # once: what it does to end in order is not to be cut short

    def _come(self, name: str) -> None:
        if self.came and self._store is not None and self._store.away_s is not None:
            self._store.give_up()
        self.came = self.came or name
        self.stop(RunEnd(EndCode.SIGNAL, self.came))
