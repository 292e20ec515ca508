"""Samples of a crawl: drawn from what the store knows (``draw``), and what they say (``estimate``, ``show``).

Needs the extra ``sample``.
"""

from importlib import import_module
from types import ModuleType

from crawler.errors import UsageError


def load(name: str) -> ModuleType:
    """The module of that name in this package. Raises :class:`UsageError` where the extra is not installed."""
    try:
        return import_module(f"crawler.sampling.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("numpy", "scipy"):
            raise
        raise UsageError("samples need scipy: pip install 'polite-crawler[sample]'") from None
