"""Wait until a transaction waits for another one."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

_PATIENCE_S = 300
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def until_it_waits(task: asyncio.Task[Any], url: str) -> None:
    """Return when a session of this PostgreSQL database, that of ``task``, waits for a lock."""
    connection = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while not await connection.fetchval(_WAITING):
                assert not task.done(), "it waited for no lock"
                await asyncio.sleep(0.01)
    finally:
        await connection.close()
