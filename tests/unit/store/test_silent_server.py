"""A PostgreSQL server that is gone without a word."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import pytest

from crawler.store.postgres.connection import Postgres, _notice_silence
from tests.virtual_time import VirtualClock, run_virtual


def connection(opened: socket.socket | None) -> SimpleNamespace:
    """A connection of asyncpg over this socket."""
    return SimpleNamespace(_transport=SimpleNamespace(get_extra_info={"socket": opened}.get))


def test_the_system_closes_a_connection_after_15_seconds_of_silence() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as opened:
        _notice_silence(connection(opened))
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if not hasattr(socket, "TCP_USER_TIMEOUT"):
            pytest.skip("this system has other limits")
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        idle_s, every_s, probes, timeout_ms = (opened.getsockopt(socket.IPPROTO_TCP, name) for name in names)
    assert 10 <= idle_s + every_s * probes <= 15
    assert timeout_ms == 15_000


def test_other_connections_are_left_as_they_are() -> None:
    _notice_silence(connection(None))
    one, other = socket.socketpair()  # of the family of a server on the same machine, which has no such options
    with one, other:
        _notice_silence(connection(one))


def test_closing_a_connection_does_not_wait_for_a_server_that_never_answers() -> None:
    class Silent:
        """A connection of asyncpg."""

        def is_closed(self) -> bool:
            return False

        async def close(self, *, timeout: float | None = None) -> None:
            async with asyncio.timeout(timeout):
                await asyncio.get_running_loop().create_future()

    async def main(clock: VirtualClock) -> None:
        database = Postgres("postgresql:///crawl")
        database._connection = Silent()
        began_at = clock.now()
        await database.close()
        assert clock.now() - began_at == pytest.approx(2)

    run_virtual(main)
