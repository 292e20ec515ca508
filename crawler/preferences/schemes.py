"""One parser for each scheme in which a site states preferences about use.

Sources: draft-ietf-aipref-vocab, section 6; contentsignals.org; TDM Reservation Protocol (W3C Community Group, 2024),
"TDM properties"; RSL 1.0, "robots.txt"; draft-kelley-aipref-training-preference-signal; for ``noai`` and ``noimageai``,
the meta tags of DeviantArt (2022).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from crawler.model import Preference
from crawler.terminal_text import shown
from crawler.url import NotCrawlable, canonicalise


class Scheme(StrEnum):
    """The scheme of a preference, as the view ``preferences`` shows it."""

    CONTENT_USAGE = "content-usage"
    CONTENT_SIGNAL = "content-signal"
    TDMREP = "tdmrep"
    RSL = "rsl"
    NOAI = "noai"
    POLICY_TOKEN = "policy-token"


#: The two values of a preference about a use. A preference that names a document has its URL as value.
ALLOWED, DISALLOWED = "y", "n"

#: The categories of ``Content-Usage`` that have a meaning here, by their labels (draft-ietf-aipref-vocab-08, 4).
_USAGE = {"train-ai": "train-ai", "ai-use": "ai-input", "search": "search"}
#: Other labels of one statement that are recorded.
_MAX_UNKNOWN = 10
#: The category of the Content Signal ``use``, and its levels with the most restrictive first.
USE = "use"
IMMEDIATE_USE, REFERENCE_USE, FULL_USE = USE_LEVELS = ("immediate", "reference", "full")
#: The categories of Content Signals, by their names there.
_SIGNALS = {"search": "search", "ai-input": "ai-input", "ai-train": "train-ai"}
_SIGNAL_VALUES = {"yes": ALLOWED, "no": DISALLOWED}
_RESERVATIONS = {"0": ALLOWED, "1": DISALLOWED}
#: The category of ``tdm-reservation``.
_TDM = "tdm"
#: The category of a preference that names a licence of RSL.
LICENSE = "license"
#: The category of uses for which RSL has no word but ``all``.
OTHER_USE = "other-use"
#: The categories that the robots term ``noai`` refuses, and ``noimageai`` of an image.
_AI = ("train-ai", "ai-input")

#: The statement of each scheme that refuses a category.
REFUSALS: Mapping[Scheme, Mapping[str, str]] = {
    Scheme.CONTENT_USAGE: {category: f"Content-Usage: {label}={DISALLOWED}" for label, category in _USAGE.items()},
    Scheme.CONTENT_SIGNAL: {category: f"Content-Signal: {name}=no" for name, category in _SIGNALS.items()},
    Scheme.TDMREP: {_TDM: "tdm-reservation: 1"},
    Scheme.NOAI: dict.fromkeys(_AI, "noai"),
}

_TERM = re.compile(r"[\s,;]+")
_MAX_URL_CHARS = 1_000  # a longer URL of a licence or of conditions says nothing
_MAX_STATEMENT_CHARS = 4_000  # a longer statement is void; http-sf takes 8 µs a hundred characters


def content_usage(statement: str, source: str, *, line: int | None = None, text: str = "") -> list[Preference] | None:
    """The preferences of a ``Content-Usage`` statement, a Dictionary of RFC 9651; ``None`` if it is void.

    A value other than the Tokens ``y`` and ``n`` leaves its category unknown; the last of several values counts;
    parameters are ignored. Unknown labels are recorded and say nothing (6.4). A key with an upper-case letter, as any
    other error of syntax, voids the statement (draft-ietf-aipref-vocab, 6.5).
    """
    if len(statement) > _MAX_STATEMENT_CHARS:
        return None
    from http_sf import Token, parse  # rarely needed, and large

    try:
        values: Any = parse(statement.encode("utf-8", "surrogateescape"), tltype="dictionary")
    except ValueError:
        return None
    found = []
    known = [label for label in _USAGE if label in values]
    for label in [*known, *[label for label in values if label not in _USAGE][:_MAX_UNKNOWN]]:
        value = values[label][0]
        if isinstance(value, Token) and str(value) in (ALLOWED, DISALLOWED):
            category = _USAGE.get(label, label)
            found.append(_preference(Scheme.CONTENT_USAGE, category, str(value), source, line, text or statement))
    return found


def content_signal(statement: str, source: str, *, line: int | None = None, text: str = "") -> list[Preference]:
    """The preferences of a ``Content-Signal`` statement: ``search=yes, ai-train=no``. Names and values in any case.

    ``use=reference`` has one of :data:`USE_LEVELS`. A part with another name or value is ignored. If a signal is given
    twice, ``no`` counts, or the more restrictive level.
    """
    found: dict[str, str] = {}
    for part in statement[:_MAX_STATEMENT_CHARS].split(","):
        name, _, said = part.partition("=")
        level = said.strip().lower()
        if name.strip().lower() == USE and level in USE_LEVELS:
            found[USE] = min(level, found.get(USE, level), key=USE_LEVELS.index)
        category, value = _SIGNALS.get(name.strip().lower()), _SIGNAL_VALUES.get(said.strip().lower())
        if category is not None and value is not None and found.get(category) != DISALLOWED:
            found[category] = value
    text = text or statement
    return [_preference(Scheme.CONTENT_SIGNAL, name, value, source, line, text) for name, value in found.items()]


def tdm_reservation(value: str, source: str, text: str) -> list[Preference]:
    """``tdm-reservation``: 1 reserves the rights of text and data mining, 0 does not. Another value says nothing."""
    said = _RESERVATIONS.get(value.strip())
    return [] if said is None else [_preference(Scheme.TDMREP, _TDM, said, source, None, text)]


def tdm_policy(value: str, source: str, text: str, base: str) -> list[Preference]:
    """``tdm-policy``: the URL of the conditions for text and data mining, resolved against ``base``."""
    url = _url(value, base)
    return [] if url is None else [_preference(Scheme.TDMREP, "tdm-policy", url, source, None, text)]


def rsl_license(value: str, source: str, line: int | None, text: str, *, base: str | None = None) -> list[Preference]:
    """A licence (RSL 1.0). ``License`` in robots.txt has an absolute URL; another URL is resolved against ``base``."""
    url = _url(value, base)
    return [] if url is None else [_preference(Scheme.RSL, LICENSE, url, source, line, text)]


def policy_token(category: str, token: str, source: str, line: int, text: str, *, allows: bool) -> Preference:
    """A rule of the group for a policy token (draft-kelley-aipref-training-preference-signal)."""
    value = ALLOWED if allows else DISALLOWED
    return _preference(Scheme.POLICY_TOKEN, category, value, source, line, f"{text.strip()} for {token}")


def robots_terms(content: str, source: str, text: str, *, is_image: bool = False) -> list[Preference]:
    """The terms ``noai`` and ``noimageai`` of a META ROBOTS or X-Robots-Tag.

    ``noimageai`` is about the images of a page. It refuses the same uses as ``noai`` if the document is an image, and
    is only recorded for a page.
    """
    if "ai" not in (content := content.lower()):
        return []
    terms = frozenset(_TERM.split(content))
    if "noai" in terms or (is_image and "noimageai" in terms):
        categories: Iterable[str] = _AI
    else:
        categories = ()
    if "noimageai" in terms and not is_image:
        categories = (*categories, "train-ai-images")
    return [_preference(Scheme.NOAI, category, DISALLOWED, source, None, text) for category in categories]


def _preference(scheme: Scheme, category: str, value: str, source: str, line: int | None, text: str) -> Preference:
    return Preference(scheme.value, category, value, source, line, shown(" ".join(text.split())))


def _url(value: str, base: str | None) -> str | None:
    try:
        return canonicalise(value, base, max_chars=_MAX_URL_CHARS)
    except NotCrawlable:
        return None
