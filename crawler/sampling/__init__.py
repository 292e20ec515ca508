"""Samples of a crawl: drawing (``draw``, ``random_walk``), estimates (``estimators``, ``survey``), and their display.

Needs the extra ``sample``.
"""

from importlib import import_module
from types import ModuleType

from crawler.errors import missing_extra


def load(name: str) -> ModuleType:
    """A module of this package, by name. Raises :class:`UsageError` if the extra is not installed."""
    try:
        return import_module(f"crawler.sampling.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("numpy", "scipy"):
            raise
        raise missing_extra("samples need scipy", "sample") from None
