"""Samples of a crawl, all but the rules of the draw (:mod:`crawler.frontier.sample_design`).

Design: ``drawable``, ``design_file``. Draw: ``draw``, ``random_walk``. Estimates: ``estimators``, ``variables``,
``survey``, ``rendering``. Cost and precision beforehand: ``plan``, ``pilot``, ``forecast``. :class:`Sample` and
:class:`Estimate` are public (docs/samples.md). Needs the extra ``sample``.
"""

from typing import TYPE_CHECKING, Any

from crawler.errors import require
from crawler.sampling.drawable import draw_seeds, of_list, require_drawable, without_strata
from crawler.sampling.registration import design_of_settings

if TYPE_CHECKING:
    from crawler.sampling.estimators import Estimate, Sample
    from crawler.sampling.survey import Survey

__all__ = [
    "Estimate",
    "Sample",
    "Survey",
    "design_of_settings",
    "draw_seeds",
    "load",
    "of_list",
    "require_drawable",
    "without_strata",
]


def load(name: str) -> Any:
    """A module of this package, by name. Raises :class:`UsageError` if the extra is not installed."""
    return require("sample", "a sample", f"crawler.sampling.{name}")


def __getattr__(name: str) -> Any:
    if name in ("Estimate", "Sample"):  # they need scipy, which other users of this package may lack
        return getattr(load("estimators"), name)
    raise AttributeError(name)
