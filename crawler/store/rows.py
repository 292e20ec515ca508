"""The parameters and the rows of a query, both by name."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

#: The values of a statement: by name for ``:name``, in order for ``?``.
Parameters = Sequence[object] | Mapping[str, object]


@lru_cache(maxsize=200)
def row_class(columns: tuple[str, ...]) -> Any:
    """The class of named tuples for rows with these columns.

    A column without a usable name is called by its position: ``_0``, ``_1`` and so on.
    """
    return namedtuple("Row", columns, rename=True)
