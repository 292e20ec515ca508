"""The driver: it goes from round to round, and can be killed at any time. Another one goes on where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from crawler.cli.progress import Say
from crawler.clock import Clock, brief_time
from crawler.dataset.records import BucketState, Dataset, Manifest, Plan, begins_at
from crawler.engine.alarm import Alarm
from crawler.engine.tasks import background_task, required_task
from crawler.engine.termination import at_their_limit
from crawler.errors import StoreError
from crawler.formatting import duration, many
from crawler.model import State
from crawler.reasons import EndCode, RunEnd
from crawler.rounds.plan import MOST_IN_VAIN, commit, make_plan, states, usual_pause_s
from crawler.rounds.runners import Runner

_LOOK_EVERY_S = 0.5
_SHOW_EVERY_S = 5.0
_LONG_WAIT_S = 10.0


class Driver:
    """Runs the rounds of a dataset until nothing is left, a limit is reached or :meth:`stop` is called.

    Invariants:

    1. A round is committed when nobody can claim a task of it any more, and each claimed task is done, or the round is
       quiet: its requests have ended, and the usual pause after them is over. It waits longer for tasks that have said
       that they only write their results.
    2. The next round begins after that, and one usual pause later.
    """

    def __init__(
        self,
        dataset: Dataset,
        runner: Runner,
        clock: Clock,
        tell: Callable[[str], None],
        show: Say | None = None,
        *,
        before_round: Callable[[], object] = lambda: None,
    ) -> None:
        """``tell`` gets lines about rounds; ``show``, if somebody watches, the progress of a round.

        ``before_round`` is called in a thread before a round is planned: it sets the clock right.
        """
        self._dataset = dataset
        self._runner = runner
        self._clock = clock
        self._tell = tell
        self._show = show
        self._before_round = before_round
        self._stopped = asyncio.Event()
        self._end = RunEnd(EndCode.STOPPED)
        self.manifests: list[Manifest] = []

    def stop(self, end: RunEnd) -> None:
        """End after the tasks that run, which are told to end."""
        if not self._stopped.is_set():
            self._tell(f"{end.detail}: the tasks end, and write their results; a second signal does not wait for them")
        self._end = end
        self._stopped.set()
        self._runner.stop()

    def end_grace(self) -> None:
        """Tell the tasks to give up their requests in flight."""
        self._runner.stop()

    async def run(self) -> RunEnd:
        """Go on with the crawl; returns why it ended. Raises :class:`crawler.errors.CrawlerError`."""
        began = self._clock.now()
        self.manifests = await asyncio.to_thread(self._dataset.manifests)
        while not self._stopped.is_set():
            plan = await asyncio.to_thread(self._dataset.plan, len(self.manifests) + 1)
            if plan is None:
                last = self.manifests[-1] if self.manifests else None
                buckets = states(self._dataset, last)
                if (at := begins_at(buckets)) is None:
                    return self._nothing_left(buckets)
                if (limit := self._limit_reached(began)) is not None:
                    return limit
                if last is not None:
                    at = max(at, last.ended_at + usual_pause_s(self._dataset.settings))
                if not await self._wait_until(at):
                    break
                await asyncio.to_thread(self._before_round)
                plan = await asyncio.to_thread(make_plan, self._dataset, self.manifests, self._clock.now())
            async with background_task(self._show_progress(plan)):
                if not await self._work(plan):
                    break
            self.manifests.append(
                await asyncio.to_thread(commit, self._dataset, plan, self.manifests, self._clock.now())
            )
            self._tell(_about(self.manifests[-1]))
            self._require_results()
        return self._end

    def _nothing_left(self, buckets: Mapping[int, BucketState]) -> RunEnd:
        settings = self._dataset.settings
        queued = sum(state.states.get(State.QUEUED, 0) for state in buckets.values())
        return at_their_limit(settings.limits, settings.politeness, queued) if queued else RunEnd(EndCode.DONE)

    def _require_results(self) -> None:
        """Raise :class:`StoreError` if no task had a result in the last rounds."""
        last = self.manifests[-MOST_IN_VAIN:]
        if len(last) == MOST_IN_VAIN and not any(manifest.parts for manifest in last):
            raise StoreError(
                f"in {MOST_IN_VAIN} rounds in a row, no task came to its end: see the messages above; the same command "
                "continues the crawl"
            )

    async def _show_progress(self, plan: Plan) -> None:
        """Show how far a round is, if somebody watches."""
        while self._show is not None:
            requests, done = await asyncio.to_thread(self._dataset.progress, plan.round)
            left = duration(max(0.0, plan.deadline - self._clock.now()))
            buckets = f"{done:,} of {many(len(plan.tasks), 'bucket')} done"
            self._show(f"round {plan.round}: {many(requests, 'request')}, {buckets}, {left} left at most")
            await self._clock.sleep(_SHOW_EVERY_S)

    def _limit_reached(self, began: float) -> RunEnd | None:
        """The limit at which no further round begins, if one is reached."""
        limits = self._dataset.settings.limits
        pages = sum(rows["pages"] for manifest in self.manifests for rows in manifest.parts.values())
        if limits.max_pages is not None and pages >= limits.max_pages:
            return RunEnd(EndCode.MAX_PAGES, str(pages))
        if limits.max_time_s is not None and self._clock.now() - began >= limits.max_time_s:
            return RunEnd(EndCode.MAX_TIME)
        return None

    async def _wait_until(self, at: float) -> bool:
        """Wait until a time; returns whether no stop came before it."""
        if at - (now := self._clock.now()) > _LONG_WAIT_S:
            self._tell(f"nothing can be asked before {brief_time(at, now)}: then the next round begins")
        while (now := self._clock.now()) < at and not self._stopped.is_set():
            await self._clock.sleep(min(_LOOK_EVERY_S, at - now))
        return not self._stopped.is_set()

    async def _work(self, plan: Plan) -> bool:
        """Wait until the round may be committed. Returns false if a stop was requested while tasks were unfinished."""
        alarm, is_closed = Alarm(), False
        async with required_task(self._run_tasks(plan, alarm)):
            while not is_closed or await asyncio.to_thread(self._dataset.unfinished, plan.round) != set():
                now = self._clock.now()
                if now >= plan.quiet_at and not await asyncio.to_thread(self._dataset.are_writing, plan.round, now):
                    break
                if is_closed and self._stopped.is_set():
                    return False
                is_closed = await alarm.wait(_LOOK_EVERY_S) or is_closed
        await asyncio.to_thread(self._dataset.close, plan)
        return True

    async def _run_tasks(self, plan: Plan, alarm: Alarm) -> None:
        """Run tasks until no process of the runner is left, close the round, and ring."""
        if (now := self._clock.now()) < plan.deadline:
            until = brief_time(plan.deadline, now)
            self._tell(f"round {plan.round} begins: {many(len(plan.tasks), 'bucket')}, until {until} at most")
            await self._runner.run(self._dataset, plan)
        await asyncio.to_thread(self._dataset.close, plan)
        alarm.ring()


def _about(manifest: Manifest) -> str:
    """One line about a round."""
    rows = manifest.parts.values()
    requests, pages = (sum(row[table] for row in rows) for table in ("requests", "pages"))
    requests += sum(manifest.lost.values())
    offers = sum(row["outgoing"] for row in rows)
    lost_text = f", {many(len(manifest.lost), 'lost task')}" if manifest.lost else ""
    took = duration(manifest.ended_at - manifest.begun_at)
    return (
        f"round {manifest.round}: {many(len(manifest.parts), 'bucket')} in {took}, {many(requests, 'request')}, "
        f"{many(pages, 'page')}, {many(offers, 'offer')} to other buckets{lost_text}"
    )
