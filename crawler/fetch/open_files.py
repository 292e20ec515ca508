"""How many files this process may open: each connection is one."""

from __future__ import annotations

import os
from typing import NamedTuple

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

#: The limit is not raised beyond this number: some systems grant a thousand million files, and some programs and
#: libraries go through all numbers up to the limit.
MOST_FILES = 65_536
#: Left for the store, parsers, logs, archives and look-ups of names.
_RESERVED = 96
_OPEN_BY_GUESS = 32  # if the system does not say it


class Share(NamedTuple):
    """How many connections may have a request, and how many may be idle."""

    requests: int
    idle: int


def raise_limit() -> None:
    """Permit as many open files as the system grants, up to :data:`MOST_FILES`."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return  # macOS names a hard limit that it does not grant


def available() -> int:
    """How many further files this process may open, without those that are reserved for other uses than connections."""
    if resource is None:
        return MOST_FILES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_FILES
    try:
        opened = len(os.listdir("/dev/fd"))
    except OSError:
        opened = _OPEN_BY_GUESS
    return max(0, soft - opened - _RESERVED)


def share(free: int, concurrency: int, most_idle: int) -> Share:
    """Share ``free`` files among connections. A request may open two: it tries two addresses at the same time."""
    requests = max(1, min(concurrency, free // 2))
    return Share(requests, max(0, min(most_idle, free - 2 * requests)))
