"""Copies of records with changed fields, whether they are structs of msgspec or dataclasses."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import msgspec

R = TypeVar("R")


def replace(record: R, **changes: Any) -> R:
    """A copy of ``record`` with other values in these fields."""
    if isinstance(record, msgspec.Struct):
        return msgspec.structs.replace(record, **changes)
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]
