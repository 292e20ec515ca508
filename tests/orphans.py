"""For processes that tests start without ``tests/command.py``: none of them outlives its test process."""

from __future__ import annotations

import ctypes
import shutil
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)

#: In front of a command: the system kills it when the process that started it ends, however that ends.
BOUND = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


def end_with_parent() -> None:
    """Do the same to this process, if the system can. Linux only."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
