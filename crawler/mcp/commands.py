"""The command ``crawler mcp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.cli.on_store import on_store
from crawler.cli.shared import cli, db_option
from crawler.clock import SystemClock

if TYPE_CHECKING:
    from crawler.store.sections import Store


@cli.command("mcp")
@db_option
def mcp_command(db: str) -> None:
    """Serve the store to a program with a language model, by the Model Context Protocol over standard input and output.

    The program starts this command itself. Its tools search, why, status, robots_check and page only read.
    """
    from crawler.mcp.server import server_of
    from crawler.mcp.tools import Tools
    from crawler.texts.reader import TextReader

    async def serve(store: Store) -> None:
        async with TextReader() as texts:
            await server_of(Tools(store, db, SystemClock(), texts)).run_stdio_async()

    on_store(db, serve)
