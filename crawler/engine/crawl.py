"""One run of a crawl over a store: what its caller may do with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from crawler.engine.assembly import Engine
from crawler.engine.disk_reserve import DiskWatch
from crawler.engine.loop import CrawlLoop
from crawler.engine.loop_lag import loop_lag_measured
from crawler.engine.operator import OperatorListener
from crawler.engine.progress import Progress
from crawler.errors import UsageError
from crawler.frontier.politeness import Pace
from crawler.reasons import ReasonCode, RunEnd


class Crawl:
    """One run of a crawl. It runs once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = CrawlLoop(engine)
        self._disk_watch = DiskWatch(
            engine.reserve, engine.clock, engine.gate, engine.progress, engine.shutdown.request
        )
        self._operator = OperatorListener(
            store=engine.store,
            clock=engine.clock,
            gate=engine.gate,
            scope=engine.scope,
            policy=engine.policy,
            outbox=engine.outbox,
            shutdown=engine.shutdown,
            progress=engine.progress,
            sample=engine.sample,
        )
        engine.store.wait_for_room(engine.waits_for_room)

    @property
    def progress(self) -> Progress:
        """The progress of the run so far."""
        return self._engine.progress

    @property
    def stopped(self) -> bool:
        """Whether the run was told to end, and did not come to its end by itself."""
        return self._engine.shutdown.requested

    def slowest(self) -> tuple[str, Pace] | None:
        """The group with the latest next request among those worked on."""
        return self._engine.bench.slowest()

    async def run(self) -> RunEnd:
        """Crawl until nothing is left, a limit is reached or a stop is requested; return why it ended.

        Raises :class:`crawler.errors.StoreError` if the store fails. What was committed is kept, also on cancellation.
        """
        async with self._disk_watch.watching(self._engine.shutdown.fail):
            return await self._loop.run()

    def measuring_lag(self) -> AbstractAsyncContextManager[None]:
        """A context in which the lag of the event loop is measured, and taken out of the times of answers."""
        return loop_lag_measured(self._engine.side.lag, self._engine.progress)

    def obeying_operator(self) -> AbstractAsyncContextManager[None]:
        """A context in which the operator's orders are carried out.

        Orders that no crawl has carried out come first, so entering the context may take long.
        """
        return self._operator.listening()

    def stop(self, end: RunEnd) -> None:
        """End soon: send nothing new, and give requests in flight six seconds. Only the first call counts."""
        self._engine.shutdown.request(end)

    def end_grace(self) -> None:
        """Give requests in flight no more time after :meth:`stop`. Their URLs stay queued."""
        self._engine.shutdown.end_grace()

    async def add(self, urls: Sequence[str]) -> None:
        """Queue canonical URLs as seeds of the crawl, before it ends.

        Raises :class:`crawler.errors.UsageError` if one is out of scope; then none is queued.
        """
        refused = [(url, self._engine.scope.refusal(url, 0, is_seed=True)) for url in urls]
        for url, refusal in refused:
            if refusal is not None and refusal.code is not ReasonCode.BLOCKED:
                raise UsageError(f"{url} is out of scope: {refusal.sentence}; name it as a seed of a new run")
        await self._engine.store.add_seeds(refused)
        self._engine.alarm.ring()

    async def flush(self) -> None:
        """Wait until every decision so far is committed. The run must be under way."""
        await self._engine.outbox.flush()
