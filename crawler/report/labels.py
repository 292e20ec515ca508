"""The names and colours that the report gives to states, answers and robots.txt."""

from __future__ import annotations

from collections.abc import Mapping

from crawler.model import RobotsAction, State
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

#: The tone of a site's badge (a class of the style sheet), by ``robots_action``.
ROBOTS_TONES: Mapping[str, str] = {
    RobotsAction.PARSE: "good",
    RobotsAction.FREE: "good",
    RobotsAction.RESTRICTED: "bad",
    RobotsAction.DEFER: "mild",
    RobotsAction.GIVEN_UP: "bad",
    RobotsAction.UNREACHABLE: "mild",
    RobotsAction.UNTRUSTED: "bad",
    RobotsAction.ELSEWHERE: "bad",
}
