"""Sites that answer by walls or refusals: what becomes of each, and what an operator may do (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crawler.clock import brief_time
from crawler.model import RobotsAction
from crawler.reasons import ErrorKind
from crawler.store.location import db_argument


def is_refusing(site: Mapping[str, Any]) -> bool:
    """Whether a row of the view ``sites`` is of a site that rests or is closed."""
    return bool(site["rest_count"]) or site["robots_status"] == ErrorKind.WALL


def refusal_sentence(site: Mapping[str, Any], now: float) -> str:
    """What a refusing site answers by, and until when it rests. ``now`` is in seconds since the epoch."""
    what = "a wall in place of robots.txt" if site["robots_status"] == ErrorKind.WALL else "walls or refusals"
    one = "/robots.txt" if site["robots_status"] == ErrorKind.WALL else "one URL"
    if site["closed_at"] is not None or site["robots_action"] == RobotsAction.GIVEN_UP:
        fate = "it is closed: nothing of it is requested any more"
    elif site["next_at"] > now:
        fate = f"it rests until {brief_time(site['next_at'], now)}, then {one} is requested"
    else:
        fate = f"its rest is over: {one} is requested next"
    return f"{site['site']} answers by {what}; {fate}"


def refusal_advice(db: str, site: str = "SITE") -> str:
    """What an operator may do about a refusing site of the crawl on the store ``db``."""
    return (
        "write to its owner, sign requests and publish a page about the crawler (`crawler identity`); "
        f"`crawler run --refresh {site}{db_argument(db)}` asks it again"
    )
