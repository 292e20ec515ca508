"""A fault that lets all pages wait to be read, in the process of a crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from crawler.engine.parser_pool import ParserPool
from tests import kill


def crawl(fault: Callable[[], None], arguments: list[str], said: Path) -> None:
    """Run ``crawler`` in this process with a fault. Its output goes to a file."""
    fault()
    kill.crawl(arguments, said)


def never_reads() -> None:
    """Let pages wait to be read for ever."""

    async def waiting(self: ParserPool, *document: Any, **options: Any) -> Any:
        await asyncio.Event().wait()

    mock.patch.object(ParserPool, "read", waiting).start()
