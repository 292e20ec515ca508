"""Loads the libraries of extras when an export needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crawler.errors import missing_extra


def load(module: str, extra: str = "export") -> Any:
    """Import a module. Raises :class:`UsageError` that says what to install if its package is missing."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise missing_extra(f"this export needs {package}", extra) from None
