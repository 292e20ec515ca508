"""Whether a robots copy in force permits one request, for requests that no outcome of a URL decides (pure)."""

from __future__ import annotations

from typing import assert_never

import msgspec

from crawler.frontier.decide import Allowed
from crawler.model import RobotsAction, RobotsCopy
from crawler.robots.readings import SiteRules


class Closed(msgspec.Struct, frozen=True):
    """Nothing was sent, for the reason ``why``: the site may not be asked, or not now."""

    why: str


def permission(site: str, copy: RobotsCopy, rules: SiteRules | None, path: str) -> Allowed | Closed:
    """Whether robots.txt allows a request for ``path`` now. Pure."""
    match copy.action:
        case RobotsAction.FREE:
            return Allowed(None)
        case RobotsAction.PARSE:
            assert rules is not None, "a parsed robots.txt has rules"
            verdict = rules.verdict(path)
            if verdict.allowed:
                return Allowed(verdict)
            why = f"forbids {path.partition('?')[0]} (line {verdict.line}, {verdict.text.strip()}): it is not requested"
        case RobotsAction.RESTRICTED:
            why = f"forbids the whole site ({copy.status}): nothing is requested there"
        case RobotsAction.UNREACHABLE | RobotsAction.UNTRUSTED:
            return Closed(f"{site}: {copy.note or copy.status}")
        case RobotsAction.DEFER | RobotsAction.GIVEN_UP:
            why = f"could not be fetched ({copy.status}): nothing is requested there for now; try again later"
        case _:
            assert_never(copy.action)
    return Closed(f"{site}/robots.txt {why}")
