"""Patterns of robots for paths, matched by RE2 in time linear in the path. Needs the extra ``updates``.

A pattern matches anywhere in a path; ``^`` and ``$`` anchor it. A pattern that begins with ``http`` is matched against
the URL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import re2

#: The largest compiled pattern, in instructions of RE2: ``a{1000}`` has 1,000.
MAX_PROGRAM = 2000

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, _OPTIONS)


def wrong_with(pattern: str) -> str | None:
    """The mistake in a pattern, in the words of RE2; ``None`` if it is valid."""
    try:
        program = _compiled(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown"
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    except UnicodeError:
        return "not Unicode"
    return "too large" if program.programsize > MAX_PROGRAM else None


def wanted(exclude: Sequence[str], include_only: Sequence[str], site: str) -> Callable[[str], bool]:
    """A test whether a robot with these patterns, one list of which is empty, wants reports of a path at ``site``."""

    def any_of(patterns: Sequence[str], path: str) -> bool:
        return any(
            _compiled(pattern).search(site + path if pattern.removeprefix("^").startswith("http") else path)
            for pattern in patterns
        )

    if include_only:
        return lambda path: any_of(include_only, path)
    return lambda path: not any_of(exclude, path)
