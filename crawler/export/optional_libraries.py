"""Loads the libraries of extras when an export needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crawler.errors import requiring


def load(module: str, extra: str = "export") -> Any:
    """Import a module. Raises :class:`UsageError` that says what to install if its package is missing."""
    with requiring(extra, "this export", module.partition(".")[0], "jinja2"):
        return import_module(module)
