"""One test for many cases: it goes through all of them and lists those that fail."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def require_none(failures: Iterable[object]) -> None:
    """Fail with a line for each of ``failures``. pytest shortens the difference between two lists."""
    lines = [str(failure) for failure in failures]
    if lines:
        pytest.fail("\n".join([f"{len(lines)} fail:", *lines]), pytrace=False)
