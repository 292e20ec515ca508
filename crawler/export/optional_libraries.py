"""The libraries of the extra ``export``, loaded when a format needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crawler.errors import UsageError


def load(module: str) -> Any:
    """A module, or :class:`UsageError` that says what to install."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise UsageError(
            f"this format needs {package}, which is not installed: pip install 'polite-crawler[export]'"
        ) from None
