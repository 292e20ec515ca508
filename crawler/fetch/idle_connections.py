"""The idle connections of a client: each is kept for as long as the next request to its group is likely to come.

The gate knows the pause of a politeness group, so it says after each answer when the next request may be sent
(:meth:`IdleConnections.expect`), and which groups are given back (:meth:`IdleConnections.close`). Reasons and figures:
``docs/decisions/0042-keep-connections-for-the-pause.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from heapq import nlargest

from crawler.fetch.connection import Connection

#: A connection is kept for this many seconds after the time from which its group may be asked: for the wait for a slot,
#: and for the claim of the next URLs of the group.
LATE_S = 5.0
#: Seconds for which a connection is kept until :meth:`IdleConnections.expect` has been called for its group.
UNKNOWN_S = 4.0
#: A server that names the time after which it closes an idle connection (``Keep-Alive: timeout=5``) gets no request
#: within this many seconds before: the request and the close would meet on the way.
MARGIN_S = 1.0
#: The most idle connections. With TLS, each takes some 65 kB of memory.
MOST_IDLE = 1000
#: After this many requests in a row were lost on idle connections to an origin, no connection to it is kept.
MOST_LOST = 2
_KEYS_KEPT = 10_000
_LOOK_EVERY_S = 1.0
_CLOSED_AT_ONCE = 8  # of the least useful connections, if there are too many


class IdleConnections:
    """Connections without a request, by politeness group. The ``key`` of one has its host and port, TLS and proxy.

    There are at most ``most`` of them. If one more comes, those that would be kept for the longest time are closed:
    they are the least useful, since each holds a file for the longest time for one request.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int = MOST_IDLE) -> None:
        self._loop = loop
        self._most = most
        self._by_group: dict[str, list[Connection]] = {}
        self.count = 0  # connections
        self._lost: dict[Hashable, int] = {}  # by key, requests in a row
        self._timer: asyncio.TimerHandle | None = None

    def add(self, key: Hashable, connection: Connection) -> None:
        """Keep a connection whose request is over; close it if requests on kept connections to its origin are lost."""
        if self._lost and self._lost.get(key, 0) >= MOST_LOST:
            connection.end_tls(resumable=True)
            connection.close()
            return
        connection.key, connection.idle_since = key, self._loop.time()
        connection.idle_until = connection.idle_since + UNKNOWN_S
        self._by_group.setdefault(connection.group, []).append(connection)
        self.count += 1
        if self.count > self._most:
            self.close_least_useful()
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_EVERY_S, self._close_outdated)

    def take(self, group: str, key: Hashable) -> Connection | None:
        """A connection of ``key`` for a request of ``group``, the one that was used last; ``None`` if there is none."""
        for idle in reversed(self._by_group.get(group, ())):
            if idle.key == key:
                self._remove(idle)
                return idle
        return None

    def note_use(self, key: Hashable, *, is_lost: bool) -> None:
        """A request was sent on an idle connection of ``key``. ``is_lost``: the server was closing that connection."""
        lost = self._lost.pop(key, 0) if self._lost else 0
        if is_lost:
            self._lost[key] = lost + 1
            if len(self._lost) > _KEYS_KEPT:
                del self._lost[next(iter(self._lost))]

    def expect(self, group: str, wait_s: float) -> None:
        """The next request to ``group`` may be sent in ``wait_s`` seconds: keep its connections until a little later.

        A connection that the server will have closed by then is closed at once.
        """
        now = self._loop.time()
        for idle in tuple(self._by_group.get(group, ())):
            server_s = idle.keep_alive_s
            if server_s is not None and idle.idle_since + server_s - MARGIN_S < now + wait_s:
                self._close(idle)
            else:
                idle.idle_until = now + wait_s + LATE_S

    def close(self, group: str) -> None:
        """Close the connections of ``group``: this process sends it no request for now."""
        for idle in tuple(self._by_group.get(group, ())):
            self._close(idle)

    def close_least_useful(self) -> None:
        """Close some connections at once, so that others can be made."""
        for idle in nlargest(_CLOSED_AT_ONCE, self._all(), key=lambda one: one.idle_until):
            self._remove(idle)
            idle.end_tls(resumable=True)
            idle.abort()

    def clear(self) -> list[Connection]:
        """Hand over all connections, to be closed."""
        left = list(self._all())
        self._by_group.clear()
        self.count = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return left

    def _all(self) -> Iterable[Connection]:
        return (idle for some in self._by_group.values() for idle in some)

    def _close_outdated(self) -> None:
        """Close the connections whose time is over, and forget those that their servers have closed."""
        now = self._loop.time()
        for idle in tuple(self._all()):
            if idle.idle_until <= now or not idle.is_connected():
                self._close(idle, resumable=False)  # nothing came, so nothing more is likely to come
        self._timer = self._loop.call_later(_LOOK_EVERY_S, self._close_outdated) if self._by_group else None

    def _close(self, idle: Connection, *, resumable: bool = True) -> None:
        self._remove(idle)
        idle.end_tls(resumable=resumable)
        idle.close()

    def _remove(self, idle: Connection) -> None:
        others = self._by_group[idle.group]
        others.remove(idle)
        if not others:
            del self._by_group[idle.group]
        self.count -= 1
