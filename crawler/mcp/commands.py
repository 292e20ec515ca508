"""The command ``crawler mcp``."""

from __future__ import annotations

import signal

from crawler.cli.shared import cli, db_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.settings.stores import existing_store


@cli.command("mcp")
@db_option
def mcp_command(db: str) -> None:
    """Serve the store to a program with a language model, by the Model Context Protocol over standard input and output.

    The program starts this command itself. Its tools search, why, status, robots_check and page only read.
    """
    from crawler.mcp.server import server_of
    from crawler.mcp.tools import Tools
    from crawler.texts.reader import TextReader

    async def run() -> None:
        async with existing_store(store_at(db)) as store, TextReader() as texts:
            await server_of(Tools(store, db, SystemClock(), texts)).run_stdio_async()

    # A thread waits for a line of standard input, and Python would wait for it. Nothing is lost if a signal ends both.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    run_async(run())
