"""The frame of a command that serves pages: its address, and the wait until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import click

from crawler.cli.console import console
from crawler.cli.shared import run_async
from crawler.errors import UsageError
from crawler.store.location import shown

Command = TypeVar("Command", bound=Callable[..., object])


def listen_option(default: str) -> Callable[[Command], Command]:
    """The option ``--listen`` of a command that serves pages."""
    about = "The address to listen on; port 0 is any free port."
    return click.option("--listen", default=default, show_default=True, metavar="HOST:PORT", help=about)


def serve(
    listen: str,
    serving: Callable[[str, int], AbstractAsyncContextManager[int]],
    db: str,
    ends: str,
    *,
    query: str = "",
) -> None:
    """Serve what ``serving`` serves at a host and a port, until SIGINT or SIGTERM; ``serving`` yields the port.

    Prints the address, with ``query`` behind it, and what ``ends`` says. Raises :class:`UsageError` if ``listen`` is no
    address, or one that is in use.
    """
    host, port = host_and_port("--listen", listen)

    async def run() -> None:
        over = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
        async with serving(host, port) as taken:
            console.print(f"{shown(db)}: http://{_browsable(host)}:{taken}/{query}", soft_wrap=True)
            console.print(f"Ctrl-C ends {ends}", style="dim")
            await over.wait()

    run_async(run())


def host_and_port(option: str, text: str) -> tuple[str, int]:
    """The host and the port in ``HOST:PORT``, the value of an option. An IPv6 address stands in brackets.

    Raises :class:`UsageError` for any other text.
    """
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and int(port) <= 65535
    if not colon or not bare or (":" in bare) is (bare == host) or not is_port:
        raise UsageError(f"{option} {text[:200]}: write HOST:PORT, like 127.0.0.1:8787 or [::1]:8787")
    return bare, int(port)


def _browsable(host: str) -> str:
    """``host`` as it is written in an address that a browser can open."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
