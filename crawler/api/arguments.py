"""Checks the arguments of calls from Python.

Each function returns the argument, and raises :class:`UsageError` with its name if it has a wrong type or value.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, TypedDict, cast

from crawler.errors import Argument, UsageError
from crawler.frontier.site_settings import FIELD_NAME, OWN_HEADERS


class RunLimits(TypedDict, total=False):
    """The section ``limits`` of the settings. ``max_time`` is in seconds, or a text such as "2 hours".

    ``max_disk`` is in bytes, or a text such as "10 GB".
    """

    max_pages: int
    max_pages_per_site: int
    max_depth: int
    max_time: float | str
    max_disk: int | str
    concurrency: int


def path(name: str, value: object) -> str:
    """A path or the URL of a database, as text: a :class:`Path` would change the slashes of a URL."""
    if not isinstance(value, str | Path):
        raise _wrong(name, value, "a path, as text or Path")
    return str(value)


def text(name: str, value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def count(name: str, value: object) -> int:
    """A whole number, 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(name, value, "a whole number, 1 or more")
    return value


def urls(name: str, value: object) -> list[str]:
    """A list of URLs, from several texts, one text, or the keys of a mapping whose values are texts."""
    wanted = "URLs, each a text: a list of them, one alone, or a mapping to the stratum of each"
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise _wrong(name, value, wanted)
    found = list(value)
    for item in [*found, *(value.values() if isinstance(value, Mapping) else ())]:
        if not isinstance(item, str):
            raise _wrong(f"{name}, item", item, wanted)
    return found


def output(name: str, value: object) -> Path | BinaryIO:
    """A file's path, "-" for standard output, or a file open in binary."""
    if value == "-" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        return cast(BinaryIO, sys.stdout.buffer)
    if value == "-":
        raise UsageError(Argument(name, value), ": standard output takes no bytes here; name a file")
    if isinstance(value, str | Path):
        return Path(value)
    if isinstance(value, io.TextIOBase) or not hasattr(value, "write"):
        raise _wrong(name, value, 'a path, "-", or a file open in binary ("wb")')
    return cast(BinaryIO, value)


def function(name: str, value: object) -> None:
    """A function, its importable name, or ``None``."""
    if value is not None and not isinstance(value, str) and not callable(value):
        raise _wrong(name, value, "a function")


#: Headers with credentials: every site of the crawl would get them.
_SECRET_HEADERS = frozenset({"authorization", "cookie"})
_VALUE = re.compile(r"[\t\x20-\x7e]*")


def headers(name: str, value: object) -> tuple[tuple[str, str], ...]:
    """Request headers: a mapping of names to values that leaves out the headers that the crawler sets itself."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise _wrong(name, value, 'a mapping of names to values, like {"Accept-Language": "de"}')
    for field, content in value.items():
        if not isinstance(field, str) or not FIELD_NAME.fullmatch(field):
            raise _wrong(name, field, "a mapping whose keys are names of headers")
        if not isinstance(content, str) or not _VALUE.fullmatch(content):
            raise _wrong(f"{name}[{field!r}]", content, "one line of ASCII text")
        if field.lower() in OWN_HEADERS:
            raise UsageError(f"{name}: {field} is set by the crawler; the settings and robots.txt decide it")
        if field.lower() in _SECRET_HEADERS:
            raise UsageError(f"{name}: {field} would go to every site of the crawl; the crawler sends no credentials")
    return tuple(value.items())


def _wrong(name: str, value: object, wanted: str) -> UsageError:
    return UsageError(f"{name} = {f'{value!r}'[:100]}: must be {wanted}")
