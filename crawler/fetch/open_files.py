"""How many files this process may open: each connection is one."""

from __future__ import annotations

import os
from typing import NamedTuple

from crawler.errors import Setting, UsageError
from crawler.formatting import size

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

#: The limit is not raised beyond this number: some systems grant a thousand million files, and some programs and
#: libraries go through all numbers up to the limit.
MOST_FILES = 65_536
#: Left for the store, parsers, logs, archives and look-ups of names.
_RESERVED = 96
#: Seconds until a connection or a look-up that the system had no file for is tried again.
LOOK_AGAIN_S = 0.1
_OPEN_BY_GUESS = 32  # if the system does not say it


#: With fewer files or less memory, a crawl cannot begin: the store, the event loop and a parser process need them.
_LEAST_FILES = 48
_LEAST_MEMORY_BYTES = 450_000_000


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


def require_room() -> None:
    """Raise :class:`UsageError` if the limits of this process are too low for a crawl. To be called after raising."""
    if resource is None:
        return
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < _LEAST_FILES:
        raise UsageError(f"this process may open {files} files, and a crawl needs {_LEAST_FILES}: raise `ulimit -n`")
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    if memory != resource.RLIM_INFINITY and memory < _LEAST_MEMORY_BYTES:
        raise UsageError(
            f"this process may use {size(memory)} of memory, and a crawl needs {size(_LEAST_MEMORY_BYTES)}: raise "
            "`ulimit -v`"
        )


def no_connections(refused: OSError) -> UsageError:
    """The error of a process that has no file, or no memory, for a single connection."""
    return UsageError(
        f"the system permits no further connection ({os.strerror(refused.errno or 0).lower()}): raise `ulimit -n`, or "
        "lower ",
        Setting("limits.concurrency"),
        "; everything committed is kept",
    )


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
