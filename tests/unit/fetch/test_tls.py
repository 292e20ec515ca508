"""The memory of TLS connections."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from crawler.fetch.tls import BUFFER_BYTES, Tls


class Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc; ``hblks`` is the number of blocks that are mapped by themselves."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks")),
        ("", ctypes.c_size_t * 6),
    ]


def mapped(buffers: int) -> int:
    """How many of the next ``buffers`` are mapped by themselves, in a process that speaks TLS."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype, libc.malloc.restype, libc.free.argtypes = Mallinfo2, ctypes.c_void_p, [ctypes.c_void_p]
    Tls().context("a.test")
    libc.free(libc.malloc(buffers * BUFFER_BYTES))  # from then on, glibc would take smaller blocks from the heap
    before = libc.mallinfo2().hblks
    for _ in range(buffers):
        libc.malloc(BUFFER_BYTES)
    return int(libc.mallinfo2().hblks) - before


@pytest.mark.skipif(sys.platform != "linux", reason="the buffers are mapped on Linux only")
def test_the_buffers_of_connections_do_not_lie_on_the_heap() -> None:
    """In a process of its own: a heap with large gaps would take some."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("glibc 2.33 or later is needed to see it")
    code = "from tests.unit.fetch.test_tls import mapped; print(mapped(64))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(done.stdout) >= 48
