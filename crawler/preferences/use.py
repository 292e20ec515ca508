"""``Content-Signal: use=…``: how far a page may be used at all, as terms of a robots tag (July 2026).

``immediate``: nothing is stored beyond the log of requests. ``reference``: index and link, and hand out no copies.
``full``: no limit. So the terms of robots tags have the meaning already, and all that obeys those obeys this signal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crawler.model import Preference
from crawler.preferences.schemes import FULL_USE, IMMEDIATE_USE, REFERENCE_USE, USE, USE_LEVELS

#: The terms for each level.
_TERMS: Mapping[str, str] = {
    IMMEDIATE_USE: "noindex, nofollow, noarchive",
    REFERENCE_USE: "noarchive",
    FULL_USE: "",
}
#: How the evidence of the most restrictive level reads.
IMMEDIATE = f"{USE}={IMMEDIATE_USE}"
assert set(_TERMS) == set(USE_LEVELS)


def use_terms(preferences: Iterable[Preference]) -> str:
    """The terms of a robots tag that follow from the most restrictive level; empty if none follows.

    The signal stands behind them as evidence. It is no term itself.
    """
    levels = {one.value for one in preferences if one.category == USE}
    level = next((level for level in USE_LEVELS if level in levels), FULL_USE)
    return f"{_TERMS[level]}, {USE}={level}" if _TERMS[level] else ""


def limits_use(preference: Preference) -> bool:
    """Whether a preference limits the use of the page."""
    return preference.category == USE and bool(_TERMS.get(preference.value))
