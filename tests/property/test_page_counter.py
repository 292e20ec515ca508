"""Under --max-pages several workers never have more pages together than the limit allows, and they reach the limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawler.engine.page_counter import PageCounter
from crawler.store.rows import PageGrant, PageRequest

COMMIT = ("begin", "land", "hear")
TAKE, FAIL = ("take",) * 8, ("fail",) * 8
EVENTS = (("take",), TAKE, ("bring",), FAIL, ("cancel",), ("begin",), ("land",), ("hear",), COMMIT, ("kill",))


@dataclass(slots=True)
class Worker:
    """A worker with its tasks: some wait for a page, some request one, some pages are brought, some being committed."""

    pages: PageCounter
    tasks: list[asyncio.Task[bool]] = field(default_factory=list)
    requested: int = 0
    brought: int = 0
    sent: tuple[PageRequest, int] | None = None  # a commit that has not landed
    landed: tuple[PageGrant, int] | None = None  # a commit whose answer is on the way

    async def look(self) -> None:
        """Count the tasks that got a page."""
        for _ in range(3):
            await asyncio.sleep(0)
        self.requested += sum(task.done() and not task.cancelled() and task.result() for task in self.tasks)
        self.tasks = [task for task in self.tasks if not task.done()]


class Crawl:
    """Workers and the counter of the store."""

    def __init__(self, limit: int, workers: int) -> None:
        self.limit, self.taken = limit, 0
        self.workers = [Worker(PageCounter(limit)) for _ in range(workers)]
        self.reserved = [0] * workers

    async def step(self, event: str, number: int) -> None:
        worker = self.workers[number]
        match event:
            case "take":
                worker.tasks.append(asyncio.create_task(worker.pages.acquire()))
            case "bring" if worker.requested:
                worker.requested, worker.brought = worker.requested - 1, worker.brought + 1
            case "fail" if worker.requested:
                worker.requested -= 1
                worker.pages.release()
            case "cancel" if worker.tasks:
                worker.tasks[0].cancel()
            case "begin" if worker.sent is None and worker.landed is None:
                request = worker.pages.request(worker.brought)
                assert request is not None
                worker.sent, worker.brought = (request, worker.brought), 0
            case "land" if worker.sent is not None:
                self._land(number, *worker.sent)
            case "hear" if worker.landed is not None:
                worker.pages.learn(worker.landed[1], worker.landed[0])
                worker.landed = None
            case "kill":
                for task in worker.tasks:
                    task.cancel()
                self.workers[number], self.reserved[number] = Worker(PageCounter(self.limit)), 0
        await self.workers[number].look()
        assert self.taken + sum(w.requested + w.brought + (w.sent or (None, 0))[1] for w in self.workers) <= self.limit

    def _land(self, number: int, request: PageRequest, pages: int) -> None:
        """As :meth:`crawler.store.sql.commit.Committer.commit` does it."""
        self.taken += pages
        left, others = self.limit - self.taken, sum(self.reserved) - self.reserved[number]
        worker = self.workers[number]
        has_groups = bool(worker.tasks or worker.requested)
        granted = request.granted(left, others, len(self.workers), has_groups=has_groups)
        self.reserved[number] = granted
        worker.sent, worker.landed = None, (PageGrant(granted, left), pages)


@settings(deadline=None, max_examples=100)
@example(6, 2, [((*TAKE, *COMMIT, *FAIL, "begin", "land"), 0), ((*TAKE, *COMMIT), 1), (TAKE, 0)])
@given(
    limit=st.integers(1, 12),
    workers=st.integers(1, 3),
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 2)), max_size=60),
)
def test_a_limit_on_pages_is_kept_at_every_moment_and_reached_in_the_end(
    limit: int, workers: int, events: list[tuple[tuple[str, ...], int]]
) -> None:
    async def main() -> None:
        crawl = Crawl(limit, workers)
        for steps, number in events:
            for event in steps:
                await crawl.step(event, number % workers)
        turns = iter(range(30 * limit))
        while crawl.taken < limit:  # one worker requests pages; the others give theirs up
            number = next(turns) % workers
            for event in ("take", "bring", *COMMIT) if number == 0 else ("fail", *COMMIT):
                await crawl.step(event, number)
        for number, worker in enumerate(crawl.workers):
            for event in COMMIT:
                await crawl.step(event, number)
            assert worker.pages.is_reached
            assert worker.tasks == [], "no task waits for a page that cannot come"

    asyncio.run(main())
