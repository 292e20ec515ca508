"""The memory of a process that the heartbeat tells."""

from __future__ import annotations

import sys

import pytest

from crawler.engine.operator import memory_bytes


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell")
def test_memory_that_is_used_counts() -> None:
    before = memory_bytes()
    block = bytearray(b"x") * (64 << 20)
    after = memory_bytes()
    assert before is not None
    assert after is not None
    assert after - before > len(block) // 2
