"""Samples of a crawl, all but the rules of the draw (:mod:`crawler.frontier.sample_design`).

Design: ``drawable``, ``design_file``. Draw: ``draw``, ``random_walk``. Estimates: ``estimators``, ``variables``,
``survey``, ``terminal``. Cost and precision beforehand: ``plan``, ``pilot``, ``forecast``. :class:`Sample` and
:class:`Estimate` are public (docs/samples.md). Needs the extra ``sample``.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crawler.errors import requiring

if TYPE_CHECKING:
    from crawler.sampling.estimators import Estimate, Sample

__all__ = ["Estimate", "Sample", "load"]


def load(name: str) -> ModuleType:
    """A module of this package, by name. Raises :class:`UsageError` if the extra is not installed."""
    with requiring("sample", "a sample", "numpy", "scipy"):
        return import_module(f"crawler.sampling.{name}")


def __getattr__(name: str) -> Any:
    if name in ("Estimate", "Sample"):  # they need scipy, which other users of this package may lack
        return getattr(load("estimators"), name)
    raise AttributeError(name)
