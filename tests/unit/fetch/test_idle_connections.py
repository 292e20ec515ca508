"""Idle connections: kept for the pause of their group, within bounds, on virtual time."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from crawler.fetch.connection import Connection
from crawler.fetch.idle_connections import LATE_S, UNKNOWN_S, IdleConnections
from tests.virtual_time import VirtualClock, run_virtual


def connection(group: str = "a.test", keep_alive_s: float | None = None) -> Mock:
    made = Mock(spec=Connection, group=group, keep_alive_s=keep_alive_s, tls=None)
    made.is_connected.return_value = True
    return made


@pytest.mark.parametrize("pause_s", [0.5, 2.0, 9.0, 60.0])
def test_a_connection_is_kept_for_the_pause_of_its_group_and_a_little_longer(pause_s: float) -> None:
    async def main(clock: VirtualClock) -> None:
        idle, one = IdleConnections(clock.loop), connection()
        idle.add("a.test:80", one)
        idle.expect("a.test", pause_s)
        await clock.sleep(pause_s + LATE_S - 0.1)
        assert idle.take("a.test", "a.test:80") is one
        idle.add("a.test:80", one)
        idle.expect("a.test", pause_s)
        await clock.sleep(pause_s + LATE_S + 1.1)
        assert idle.take("a.test", "a.test:80") is None
        one.close.assert_called_once()
        assert idle.count == 0

    run_virtual(main)


def test_a_connection_without_a_known_pause_is_kept_briefly() -> None:
    async def main(clock: VirtualClock) -> None:
        idle, one = IdleConnections(clock.loop), connection()
        idle.add("a.test:80", one)
        await clock.sleep(UNKNOWN_S + 1.1)
        one.close.assert_called_once()

    run_virtual(main)


@pytest.mark.parametrize(("server_s", "kept"), [(None, True), (60.0, True), (6.1, True), (5.0, False), (0.0, False)])
def test_a_connection_that_the_server_closes_before_the_next_request_is_closed_at_once(
    server_s: float | None, kept: bool
) -> None:
    async def main(clock: VirtualClock) -> None:
        idle, one = IdleConnections(clock.loop), connection(keep_alive_s=server_s)
        idle.add("a.test:80", one)
        idle.expect("a.test", 5.0)
        assert idle.count == kept
        assert one.close.called is not kept

    run_virtual(main)


def test_a_group_that_is_given_back_keeps_no_connection() -> None:
    async def main(clock: VirtualClock) -> None:
        idle = IdleConnections(clock.loop)
        sites = {key: connection(group) for key, group in (("x.a:80", "a"), ("y.a:80", "a"), ("b:80", "b"))}
        for key, one in sites.items():
            idle.add(key, one)
        idle.close("a")
        assert [one.close.called for one in sites.values()] == [True, True, False]
        assert idle.count == 1

    run_virtual(main)


def test_beyond_the_bound_the_least_useful_connections_are_closed_first() -> None:
    async def main(clock: VirtualClock) -> None:
        idle, made = IdleConnections(clock.loop, 20), []
        for number in range(21):
            made.append(connection(f"{number}.test"))
            idle.add(number, made[-1])
            idle.expect(f"{number}.test", 30.0 - number)  # the first of them would be kept for the longest time
        assert idle.count <= 20
        closed = [one.abort.called for one in made]
        assert closed == sorted(closed, reverse=True), "those with the longest pauses"
        assert not closed[-1]

    run_virtual(main)


def test_connections_that_servers_have_closed_are_forgotten() -> None:
    async def main(clock: VirtualClock) -> None:
        idle, one = IdleConnections(clock.loop), connection()
        idle.add("a.test:80", one)
        idle.expect("a.test", 100.0)
        one.is_connected.return_value = False
        await clock.sleep(1.1)
        assert idle.count == 0

    run_virtual(main)


def test_no_connection_is_kept_after_two_losses_in_a_row() -> None:
    async def main(clock: VirtualClock) -> None:
        idle, key = IdleConnections(clock.loop), "a.test:80"
        kept = []
        for lost in (True, False, True, True, True):
            idle.note_use(key, is_lost=lost)
            idle.add(key, one := connection())
            kept.append(idle.take("a.test", key) is one)
            assert one.close.called is not kept[-1]
        assert kept == [True, True, True, False, False]
        idle.add("b.test:80", one := connection())
        assert idle.take("a.test", "b.test:80") is one

    run_virtual(main)
