"""Faults that end the process of a crawl when it comes to one URL, and one that lets all pages wait."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from crawler.engine import rules_cache
from crawler.engine.answers import Answers
from crawler.engine.parser_pool import ParserPool
from crawler.engine.robots_messages import RobotsQuestion
from crawler.frontier.decide import Queued
from crawler.store.protocols import CommitBatch
from crawler.store.sql.commit import Committer

EXIT_CODE = 9
#: A ``sitecustomize.py`` for the processes of a crawl. Loading the faults takes time, and parser processes need none.
IN_WORKERS = """
import sys
if "crawler.engine.parser_process" not in sys.orig_argv:
    from tests import dying
    dying.{fault}()
"""


def crawl(fault: Callable[[], None], arguments: list[str], said: Path) -> None:
    """Run ``crawler`` in this process with a fault. Its output goes to a file."""
    from tests import kill  # which workers do not load

    fault()
    kill.crawl(arguments, said)


def on_robots() -> None:
    """End the process when it reads the robots.txt of a site named "killer"."""
    read = rules_cache.read_robots

    def faulty(question: RobotsQuestion) -> Any:
        if "killer" in question.site:
            os._exit(EXIT_CODE)
        return read(question)

    mock.patch.object(rules_cache, "read_robots", faulty).start()


def on_page() -> None:
    """End the process when it has read the page /killer."""
    outcome = Answers.outcome

    async def faulty(self: Answers, queued: Queued, *more: Any) -> Any:
        if queued.url.endswith("/killer"):
            os._exit(EXIT_CODE)
        return await outcome(self, queued, *more)

    mock.patch.object(Answers, "outcome", faulty).start()


def never_reads() -> None:
    """Let pages wait to be read for ever."""

    async def waiting(self: ParserPool, *document: Any) -> Any:
        await asyncio.Event().wait()

    mock.patch.object(ParserPool, "read", waiting).start()


def on_commit() -> None:
    """End the process when it commits the page /killer."""
    commit = Committer.commit

    async def faulty(self: Committer, batch: CommitBatch) -> Any:
        if any(outcome.queued.url.endswith("/killer") for outcome in batch.outcomes):
            os._exit(EXIT_CODE)
        return await commit(self, batch)

    mock.patch.object(Committer, "commit", faulty).start()
