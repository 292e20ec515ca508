"""The program of :func:`tests.command.call`: it calls the pickled function that its argument has in hexadecimal."""

from __future__ import annotations

import pickle
import sys


def main() -> None:
    """Call the function."""
    pickle.loads(bytes.fromhex(sys.argv[1]))()
