"""The command ``crawler dashboard``."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from pathlib import Path

import click

from crawler.cli.console import console
from crawler.cli.shared import browsable, cli, db_option, listen_address, run_async, store_at
from crawler.clock import SystemClock
from crawler.dashboard.server import serving
from crawler.errors import UsageError
from crawler.store.location import shown as shown_db

_TOKEN_VARIABLE = "CRAWLER_DASHBOARD_TOKEN"
_MIN_TOKEN_CHARS = 16  # the token alone protects the controls from the network


@cli.command()
@db_option
@click.option(
    "--listen",
    default="127.0.0.1:8787",
    show_default=True,
    metavar="HOST:PORT",
    help="The address to listen on; port 0 is any free port.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Require this token, or that in ${_TOKEN_VARIABLE}. If none is given, one is made for this run.",
)
def dashboard(db: str, listen: str, token_file: Path | None) -> int:
    """Show a running crawl in a browser, and control it: pause, resume, stop, block a site, search, why.

    It can be started before, during or after the crawl. Prometheus reads /metrics.
    """
    host, port = listen_address(listen)
    if (token := _token(token_file)) is not None:
        return run_async(_serve(db, host, port, token, shown=""))
    token = secrets.token_urlsafe(24)
    return run_async(_serve(db, host, port, token, shown=f"?token={token}"))


async def _serve(db: str, host: str, port: int, token: str, *, shown: str) -> int:
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    async with serving(store_at(db), host, port, token, SystemClock()) as taken:
        console.print(f"{shown_db(db)}: http://{browsable(host)}:{taken}/{shown}", soft_wrap=True)
        console.print("Ctrl-C ends the dashboard; the crawl continues without it", style="dim")
        await over.wait()
    return 0


def _token(file: Path | None) -> str | None:
    """The given token, if any. Raises :class:`UsageError` if it is too short, or cannot be sent in a header."""
    if file is not None:
        source = f"--token-file {file}"
        try:
            token = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{source}: {getattr(error, 'strerror', None) or 'not text in UTF-8'}") from None
    elif (token := os.environ.get(_TOKEN_VARIABLE, "")) != "":
        source = f"${_TOKEN_VARIABLE}"
    else:
        return None
    if len(token) < _MIN_TOKEN_CHARS or not all("!" <= sign <= "~" and sign not in '";,\\' for sign in token):
        raise UsageError(
            f"{source}: a token has {_MIN_TOKEN_CHARS} letters, digits or punctuation marks at least, and no blanks"
        )
    return token
