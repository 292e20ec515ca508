"""Variables of the user: an SQL expression over the view ``pages``, a Python function of a page, or hand codes.

In a text, ``@FILE.py`` names a Python file with a function that is called like the variable, and ``@FILE.csv`` a table
of hand codes (:mod:`crawler.sampling.hand_codes`).
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.errors import StatementError, UsageError
from crawler.model import MISSING, Missing
from crawler.page.directives import asked_of
from crawler.sampling.hand_codes import HandCodes, read_codes
from crawler.store.statements import UserSql, load_statements
from crawler.stored_pages import Page, stored_pages

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: A value of a page: a number, a truth value, or a label. ``None``: the variable is not about the page. ``MISSING``:
#: its value is not known.
Value = float | bool | str | Missing | None


class NullIsMissing(str):
    """An SQL expression whose NULL says that the value is missing, and not that the variable is not about the page."""

    __slots__ = ()


#: An SQL expression over the columns of ``pages``, a function of a page, or ``@FILE``.
Variable = str | Callable[[Page], Value]

_AT_ONCE = 500

_SQL = load_statements("crawler.sampling")


def variable_of(text: str) -> tuple[str, str]:
    """The name and the expression of ``NAME=EXPRESSION``, or of ``NAME?=EXPRESSION``, whose NULL is missing.

    Raises :class:`UsageError` for any other text.
    """
    name, sign, expression = (part.strip() for part in text.partition("="))
    plain = name.removesuffix("?").rstrip()
    if not (sign and plain and expression):
        raise UsageError(f"{text!r} is no variable; write NAME=EXPRESSION, as in chars=length(title), or NAME=@FILE")
    return plain, expression if plain == name else NullIsMissing(expression)


def file_of(variable: Variable) -> Path | None:
    """The file that a variable names as ``@FILE``; ``None`` if it names none."""
    return Path(variable[1:].strip()) if isinstance(variable, str) and variable.startswith("@") else None


def opened(variable: Variable, name: str) -> Variable | HandCodes:
    """A variable whose file has been read. Raises :class:`UsageError` for a file that is no variable."""
    file = file_of(variable)
    if file is None:
        return variable
    if file.suffix == ".csv":
        return read_codes(file, name)
    if file.suffix != ".py":
        raise UsageError(f"variable {name}: {file} is no file of hand codes (.csv) and no Python file (.py)")
    try:
        function = runpy.run_path(str(file)).get(name)
    except Exception as error:
        raise UsageError(f"variable {name}: {file}: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise UsageError(f"variable {name}: {file} has no function {name}")
    made: Variable = function
    return made


async def values_of(
    store: Store, variable: Variable, name: str, pages: Sequence[int], now: float
) -> Mapping[int, Value]:
    """The values of pages, by their numbers. A page whose ``unavailable_after`` has passed has none.

    Raises :class:`UsageError` for an expression that the database rejects, and for a value of another type.
    """
    found: dict[int, Value] = {}
    left = iter(sorted(set(pages)))
    while some := list(islice(left, _AT_ONCE)):
        numbers = ", ".join(map(str, some))
        if isinstance(variable, str):
            found |= await _selected(store, variable, name, numbers, now)
        else:
            async with aclosing(stored_pages(store, f"url_id IN ({numbers})", now)) as read:
                values = {page.url: _called(variable, page, name) async for page in read}
            rows = await store.query(UserSql(_SQL["variable"].format(expression="url", numbers=numbers)))
            found |= {row["url_id"]: values[row["value"]] for row in rows if row["value"] in values}
    for value in found.values():
        if not (value is None or isinstance(value, str | Real | Missing)):
            raise UsageError(f"variable {name}: {value!r} is no number, no truth value and no text")
    return found


def _called(function: Callable[[Page], Value], page: Page, name: str) -> Value:
    try:
        return function(page)
    except Exception as error:
        raise UsageError(f"variable {name}: {page.url}: {type(error).__name__}: {error}") from error


async def _selected(store: Store, expression: str, name: str, numbers: str, now: float) -> dict[int, Value]:
    try:
        rows = await store.query(UserSql(_SQL["variable"].format(expression=expression, numbers=numbers)))
    except StatementError as error:
        raise UsageError(f"variable {name} = {expression!r}: {error.__cause__}") from None
    except UsageError as error:  # it does not stay within its brackets
        raise UsageError(f"variable {name} = {expression!r}: {error}") from None
    null = MISSING if isinstance(expression, NullIsMissing) else None
    return {
        row["url_id"]: null if row["value"] is None else row["value"]
        for row in rows
        if asked_of(row["directives"]).until > now
    }
