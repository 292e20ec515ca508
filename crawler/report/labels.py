"""The names that the report gives to states, answers, meanings of a robots.txt and reasons."""

from __future__ import annotations

from collections.abc import Mapping

from crawler.model import State
from crawler.report.geometry import Series

STATES: Mapping[State, Series] = {
    State.FETCHED: Series("fetched", "c2"),
    State.REDIRECTED: Series("redirected", "c1"),
    State.QUEUED: Series("queued", "c5"),
    State.EXCLUDED: Series("excluded", "c6"),
    State.FAILED: Series("failed", "c4"),
}

#: In the order of :data:`crawler.report.facts.ANSWERS`.
ANSWER_SERIES = (
    Series("2xx success", "c2"),
    Series("3xx redirect", "c1"),
    Series("4xx error", "c3"),
    Series("5xx error", "c4"),
    Series("no answer", "c6"),
)

#: By ``robots_action``: what the answer for a robots.txt means, and the tone (a class of the style sheet) of its badge.
ROBOTS = {
    "parse": ("a file: the crawler obeys it", "good"),
    "free": ("no file: nothing is closed", "good"),
    "restricted": ("access denied: the whole site is closed", "bad"),
    "defer": ("unavailable: the crawler waits for it", "mild"),
    "given_up": ("unavailable for so long that the crawler gave up the site", "bad"),
    "unreachable": ("at an address that the crawler may not connect to", "mild"),
}
