"""Shortages of the machine: of space, and of files or memory that other programs may give back."""

from __future__ import annotations

import errno
import os

#: The errors of a disk, or of a quota, that has no space left.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
#: The errors of a system that has no file or no memory for any program.
SYSTEM_IS_FULL = frozenset({errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_NO_FILE = frozenset({errno.EMFILE, errno.ENFILE})


def refused_file() -> OSError | None:
    """The error with which the system refuses this process a further file; ``None`` if it permits one."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error if error.errno in _NO_FILE else None
    return None
