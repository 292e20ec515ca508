"""Loads the modules of this package that need numpy and scipy."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from crawler.errors import requiring


def load(name: str) -> ModuleType:
    """A module of this package, by name. Raises :class:`UsageError` if the extra is not installed."""
    with requiring("sample", "a sample", "numpy", "scipy"):
        return import_module(f"crawler.sampling.{name}")
