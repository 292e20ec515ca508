"""SIGINT and SIGTERM during a command that crawls."""

from __future__ import annotations

import asyncio
import signal
from typing import Protocol

from crawler.reasons import EndCode, RunEnd
from crawler.store.protocols import Reconnecting


class Stoppable(Protocol):
    """A crawl that can be stopped."""

    def stop(self, why: RunEnd) -> None: ...


class Signals:
    """Handles SIGINT and SIGTERM.

    A signal stops the crawl in order; before the crawl has begun, it cancels the command. To stop in order, the crawl
    needs the store. If the store does not answer, a second signal ends the command at once. ``code`` is the
    end of a run that a signal stops.
    """

    def __init__(self, code: EndCode = EndCode.SIGNAL) -> None:
        self.came: str | None = None
        self._code = code
        self._crawl: Stoppable | None = None
        self._store: Reconnecting | None = None
        self._command = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._come, number.name)

    def stop_from_now_on(self, crawl: Stoppable, store: Reconnecting | None = None) -> None:
        self._crawl, self._store = crawl, store

    def stop(self, why: RunEnd) -> None:
        """Stop the crawl, or cancel the command if there is no crawl yet."""
        if self._crawl is not None:
            self._crawl.stop(why)
        elif self._command is not None:
            self._command.cancel()
            self._command = None  # cancel once: the clean-up must not be cancelled

    def _come(self, name: str) -> None:
        if self.came and self._store is not None and self._store.away_s is not None:
            self._store.give_up()
        self.came = self.came or name
        self.stop(RunEnd(self._code, self.came))
