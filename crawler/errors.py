"""Every error that the crawler raises on purpose, in one tree.

Each carries one sentence that says what is wrong and what to do; the command line prints
exactly that sentence and ends with ``exit_code``. Anything else that escapes is a bug (:func:`fault`).
What *sites* do wrong is never an exception: it is data (:class:`crawler.model.Failed`).
"""

import os

from crawler.terminal_text import shown


class CrawlerError(Exception):
    """Base of all errors meant for the user. ``str(error)`` is the sentence to print."""

    exit_code = 1


class UsageError(CrawlerError):
    """A wrong option, seed or combination of them."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file that cannot be used; lists every wrong key at once."""


class SeedError(UsageError):
    """Seeds that cannot be used; lists every bad line with its number."""


class StoreError(CrawlerError):
    """The store failed: full disk, damaged file, lost database. What was committed is kept."""

    exit_code = 4


class ConnectionLost(StoreError):
    """The connection to the database broke, or none can be had for the time being."""


class StatementError(StoreError):
    """The database does not understand what it was asked."""


class LeaseLost(StoreError):
    """This worker's lease ran out and its sites passed to others; what it had not committed is still queued.

    ``committed``: the turn by which this came out was, and only the answer to it was lost.
    """

    def __init__(self, message: str, *, committed: bool = False) -> None:
        super().__init__(message)
        self.committed = committed


class NoStore(UsageError):
    """No store has been made yet where one is named."""


class StoreInUse(UsageError):
    """Another process is crawling into this store."""


class StoreVersionError(UsageError):
    """The store was written by another version of the crawler, with another schema."""


class Fault(Exception):
    """A bug of ours in another place, as :func:`fault` told it there."""


def fault(error: Exception) -> str:
    """A bug of ours on one line: what it is, and the innermost place in this package that it came from."""
    if isinstance(error, Fault):
        return str(error)
    from traceback import extract_tb

    home = os.path.dirname(__file__)
    places = [place for place in extract_tb(error.__traceback__) if place.filename.startswith(home)]
    where = f" ({os.path.relpath(places[-1].filename, home)}, line {places[-1].lineno})" if places else ""
    return f"{type(error).__name__}: {shown(' '.join(str(error).split()))}{where}"
