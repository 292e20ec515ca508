"""The design of a sample by which it can be registered: the settings and seeds that decide which URLs are drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crawler.frontier.sample_design import Design, digest_of_seeds
from crawler.reasons import ReasonCode
from crawler.sampling.drawable import of_list
from crawler.settings.keys import KEYS, Key
from crawler.settings.settings import Settings

_OF_THE_MACHINE = ("seeds.file", "identity.contact")  # these may change without another sample


def is_of_design(key: Key) -> bool:
    """Whether a setting decides which URLs a sample is drawn from, or which are drawn."""
    return key.name == "seeds.file" or ReasonCode.FRAME in key.decides


def design_of_settings(settings: Settings, seeds: Collection[str], strata: Mapping[str, str]) -> Design:
    """The design that ``settings`` and a list of seeds make. An empty list is a design that does not name its seeds.

    ``strata`` has the stratum of each seed, if the sample is stratified.
    """
    decided = of_list(settings)
    values = {
        key.name: key.value(decided) for key in KEYS.values() if is_of_design(key) and key.name not in _OF_THE_MACHINE
    }
    if settings.sample.is_of_list:
        return Design(values, digest_of_seeds(strata) if strata else None)
    return Design(values, digest_of_seeds(dict.fromkeys(seeds, "")) if seeds else None)
