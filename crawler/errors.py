"""The errors that the crawler raises for its users. All of them derive from :class:`CrawlerError`.

The message of an error is one sentence that says what is wrong and what to do. It may refer to a setting
(:class:`Setting`), to an argument of a call (:class:`Argument`) or to a command (:class:`Action`). Each front end
prints its own names for these: ``str(error)`` gives the names of Python and TOML (``limits.max_pages``), and
:meth:`CrawlerError.message` those of another front end (``--max-pages``).

Any other exception is a bug (:func:`fault`). A failure of a *site* is never an exception: it is data
(:class:`crawler.model.Failed`).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

from crawler.terminal_text import shown

_VALUE_CHARS = 100


class Setting(NamedTuple):
    """Refers to a setting by its key in :mod:`crawler.settings.keys`. A ``value`` is shown beside the name."""

    key: str
    value: object = None


class Argument(NamedTuple):
    """Refers to a parameter of the Python API, such as ``base_url``. On the command line it is ``--base-url``."""

    name: str
    value: object = None


class Action(NamedTuple):
    """Names an action of the user: ``command`` in a terminal, ``call`` in Python."""

    command: str
    call: str


Reference = Setting | Argument | Action


def python_name(reference: Reference) -> str:
    """The name of ``reference`` in Python and TOML: ``limits.max_pages = 5``, ``base_url = 'x'``, ``crawl.index()``."""
    match reference:
        case Action(call=call):
            return call
        case Setting(name, value) | Argument(name, value):
            return f"{name} = {f'{value!r}'[:_VALUE_CHARS]}" if has_value(value) else name


def has_value(value: object) -> bool:
    """Whether an error shows ``value`` beside its name. A list is not shown: the sentence names the item."""
    return value is not None and value != "" and not isinstance(value, list | tuple)


class CrawlerError(Exception):
    """The base of all errors for the user. Its parts form one sentence. A command ends with ``exit_code``.

    ``key`` (with ``value``) puts the name of a setting before the sentence.
    """

    exit_code = 1

    def __init__(self, *parts: str | Reference, key: str | None = None, value: object = None) -> None:
        if key is not None:
            parts = (Setting(key, value), ": ", *parts)
        super().__init__(*parts)

    @property
    def key(self) -> str | None:
        """The key of the first setting that the error refers to."""
        return next((part.key for part in self.args if isinstance(part, Setting)), None)

    def message(self, name: Callable[[Reference], str]) -> str:
        """The sentence, in which ``name(reference)`` replaces each reference."""
        return "".join(part if isinstance(part, str) else name(part) for part in self.args)

    def __str__(self) -> str:
        return self.message(python_name)


class UsageError(CrawlerError):
    """An option, a seed or a combination of them is wrong."""

    exit_code = 2


def joined(errors: Sequence[UsageError]) -> UsageError:
    """One error that tells all of ``errors``, a line each."""
    if len(errors) == 1:
        return errors[0]
    parts = (("\n  ", *error.args) for error in errors)
    return UsageError(f"{len(errors)} mistakes:", *chain.from_iterable(parts))


class ConfigError(UsageError):
    """A configuration file is invalid. The sentence lists every wrong key."""


#: The packages of each extra of ``pyproject.toml``, as they are imported.
EXTRAS = {
    "postgres": ("asyncpg",),
    "export": ("jinja2", "pyarrow"),
    "language": ("py3langid",),
    "figure": ("matplotlib", "numpy", "scipy"),
    "rank": ("numpy", "scipy"),
    "sample": ("numpy", "scipy"),
    "report": ("jinja2",),
    "search": ("jinja2",),
    "text": ("html_to_markdown", "resiliparse"),
    "documents": ("pypdfium2",),
    "s3": ("obstore",),
    "rounds": ("duckdb", "obstore", "pyarrow"),
    "spark": ("pyspark",),
    "identity": ("cryptography", "jinja2"),
    "mcp": ("mcp",),
    "updates": ("aioimaplib", "re2"),
}


@contextmanager
def requiring(extra: str, what: str) -> Iterator[None]:
    """Import inside. If a package of ``extra`` is missing, the error says that ``what`` needs it.

    The project is on no package index, so the remedy installs the extra from a clone.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS[extra]:
            raise
        remedy = f"install the extra {extra!r} from the clone: pip install '.[{extra}]'"
        raise UsageError(f"{what} needs {package}; {remedy}") from None


def require(extra: str, what: str, module: str) -> Any:
    """Import ``module``, which a package of ``extra`` is or needs; raises as :func:`requiring` does."""
    with requiring(extra, what):
        return import_module(module)


class SeedError(UsageError):
    """Seeds are invalid. The sentence lists the bad lines with their numbers."""


class HookError(CrawlerError):
    """A function that the caller gave to ``run()`` failed. ``__cause__`` is its exception, if it raised one."""


class StoreError(CrawlerError):
    """The store failed: the disk is full, the file is damaged, or the database is lost. Committed work is kept."""

    exit_code = 4


class StoreFull(StoreError):
    """The disk has no room for what was to be written. A crawl that pauses for the disk tries it again."""


class SystemFull(StoreFull):
    """The system has no file or memory for any program. Others may give some back, so a crawl tries it again."""


class ConnectionLost(StoreError):
    """The connection to the database broke, or the database refuses new ones for now."""


class StatementError(StoreError):
    """The database rejected a statement."""


class QueryInterrupted(StoreError):
    """A query of the crawler took longer than it may."""


class LeaseLost(StoreError):
    """The lease of this worker expired, and its sites passed to other workers. Uncommitted URLs are still queued.

    ``committed`` is true if the commit that raised this error took effect, and only its answer was lost.
    """

    def __init__(self, message: str, *, committed: bool = False) -> None:
        super().__init__(message)
        self.committed = committed


class NoStore(UsageError):
    """There is no store at the path or URL that the user gave."""


class StoreInUse(UsageError):
    """Another process is crawling into this store."""


class StoreVersionError(UsageError):
    """The store was written by another version of the crawler, with another schema."""


class Fault(Exception):
    """A bug in another process of the crawler. Its message is the line that :func:`fault` made there."""


def fault(error: Exception) -> str:
    """Describe a bug in one line: the exception, and the innermost line of this package in its traceback."""
    if isinstance(error, Fault):
        return str(error)
    from traceback import extract_tb

    home = os.path.dirname(__file__)
    places = [place for place in extract_tb(error.__traceback__) if place.filename.startswith(home)]
    where = f" ({os.path.relpath(places[-1].filename, home)}, line {places[-1].lineno})" if places else ""
    return f"{type(error).__name__}: {shown(' '.join(str(error).split()))}{where}"
