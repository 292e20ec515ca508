"""The command line. A command reads its options, calls one function, prints the result and sets the exit code."""

from crawler.cli.shared import main

__all__ = ["main"]
