"""Patterns of strangers over paths, on an engine whose time is linear in the path: RE2. Needs the extra ``updates``.

A pattern matches where it is found anywhere in the path, as regular expressions are searched for; ``^`` and ``$`` tie
it down. One that begins with ``http`` is compared with the whole URL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import re2

#: What one pattern may compile to, in RE2's instructions: ``a{1000}`` is 1,000 of them.
MAX_PROGRAM = 2000

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, _OPTIONS)


def wrong_with(pattern: str) -> str | None:
    """What is wrong with a pattern, in RE2's words, or ``None``."""
    try:
        program = _compiled(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown"
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    except UnicodeError:
        return "not Unicode"
    return "too large" if program.programsize > MAX_PROGRAM else None


def wanted(exclude: Sequence[str], include_only: Sequence[str], site: str) -> Callable[[str], bool]:
    """Whether a robot with these patterns, of which one list is empty, wants to hear of a path at ``site``."""

    def any_of(patterns: Sequence[str], path: str) -> bool:
        return any(
            _compiled(pattern).search(site + path if pattern.removeprefix("^").startswith("http") else path)
            for pattern in patterns
        )

    if include_only:
        return lambda path: any_of(include_only, path)
    return lambda path: not any_of(exclude, path)
