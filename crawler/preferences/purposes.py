"""The purposes that a crawl declares, and the one rule that combines all preferences of a page for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from crawler.model import Preference
from crawler.preferences.schemes import DISALLOWED, LICENSE, OTHER_USE, REFUSALS, USE, Scheme


class UsePurpose(StrEnum):
    """A use of the pages that a crawl declares (setting ``identity.purpose``)."""

    SEARCH = "search"
    TRAIN_AI = "train-ai"
    AI_INPUT = "ai-input"
    ARCHIVE = "archive"
    RESEARCH = "research"


#: The purposes that a preference of each category is about. Preferences of other categories are recorded only.
#: A reservation of text and data mining (``tdm``) is about analysis by machines (Directive (EU) 2019/790, article 2).
COVERED: Mapping[str, frozenset[UsePurpose]] = {
    "search": frozenset({UsePurpose.SEARCH}),
    "train-ai": frozenset({UsePurpose.TRAIN_AI}),
    "ai-input": frozenset({UsePurpose.AI_INPUT}),
    OTHER_USE: frozenset({UsePurpose.ARCHIVE, UsePurpose.RESEARCH}),
    "tdm": frozenset({UsePurpose.TRAIN_AI, UsePurpose.AI_INPUT, UsePurpose.RESEARCH}),
}
_NONE = frozenset[UsePurpose]()


def first_refusal(preferences: Iterable[Preference], purposes: Collection[UsePurpose]) -> Preference | None:
    """The first preference that disallows one of the declared ``purposes``; ``None`` allows them all.

    One that disallows goes before all that allow, as in draft-ietf-aipref-vocab, 5.1, "Combining Preferences", applied
    to all schemes together. An unknown preference allows. Without declared purposes nothing is refused.
    """
    if not purposes:
        return None
    for one in preferences:
        if one.value == DISALLOWED and not COVERED.get(one.category, _NONE).isdisjoint(purposes):
            return one
    return None


def categories_for(purposes: Iterable[UsePurpose]) -> list[str]:
    """The categories whose preferences are about one of ``purposes``, in alphabetical order."""
    wanted = frozenset(purposes)
    return sorted(category for category, covered in COVERED.items() if not covered.isdisjoint(wanted))


def refusals_of(purpose: UsePurpose) -> dict[Scheme, str]:
    """The statement by which a site refuses ``purpose``, for each scheme that can."""
    return {
        scheme: statements[category]
        for scheme, statements in REFUSALS.items()
        for category in categories_for([purpose])
        if category in statements
    }


def sentence_of(preference: Preference) -> str:
    """The evidence for people: ``line 4 of robots.txt, Content-Usage: train-ai=n``."""
    if preference.line is None:
        return f"{preference.source} {preference.text}"
    return f"line {preference.line} of {preference.source}, {preference.text}"


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
