"""The commands. Each is thin: it reads options, calls one thing, prints, and picks the exit code."""

from crawler.cli.shared import main

__all__ = ["main"]
