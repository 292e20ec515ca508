"""The bound on the preferences that are kept of one page."""

from __future__ import annotations

from collections.abc import Sequence

from crawler.model import Preference
from crawler.preferences.purposes import COVERED
from crawler.preferences.schemes import DISALLOWED, LICENSE, USE

#: The preferences of a document that are kept, and likewise those of its robots.txt. More than there are kinds to keep.
MAX_PREFERENCES = 50
_KNOWN = frozenset({*COVERED, USE, "train-ai-images", "tdm-policy", LICENSE})


def bounded(found: Sequence[Preference]) -> tuple[Preference, ...]:
    """At most :data:`MAX_PREFERENCES` of ``found``, in their order.

    The combined preference for each purpose stays the same.

    The first refusal and the first other preference of each scheme and category are kept before all others, and
    refusals before what is left. Labels without a meaning here come last: a site may invent any number.
    """
    if len(found) <= MAX_PREFERENCES:
        return tuple(found)
    firsts: dict[tuple[str, str, bool], int] = {}
    for number, one in enumerate(found):
        firsts.setdefault((one.scheme, one.category, one.value == DISALLOWED), number)
    needed = frozenset(firsts.values())
    ranked = sorted(
        range(len(found)),
        key=lambda number: (
            found[number].category not in _KNOWN,
            number not in needed,
            found[number].value != DISALLOWED,
        ),
    )
    return tuple(found[number] for number in sorted(ranked[:MAX_PREFERENCES]))
