"""The policy of a crawl: its limits, and all that the rules need to know of its settings."""

from __future__ import annotations

import msgspec

from crawler.engine.crawl_settings import KEPT_HEADERS, DiscoverySettings, LimitSettings, UpdateSettings
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.revisit import RevisitSettings
from crawler.preferences.purposes import UsePurpose
from crawler.robots.response import RobotsSettings


class RobotsPolicy(msgspec.Struct, frozen=True):
    """All that the requests for robots.txt and their reading need to know of the settings."""

    settings: RobotsSettings
    token: str
    known_hosts: tuple[str, ...] = ()  # patterns: a Host line may name such a host without a dot


class CrawlPolicy(msgspec.Struct, frozen=True):
    """All that the engine needs to know of the settings."""

    limits: LimitSettings
    politeness: PolitenessSettings
    fetch: RequestSettings
    robots: RobotsPolicy
    revisit: RevisitSettings = msgspec.field(default_factory=RevisitSettings)
    updates: UpdateSettings = msgspec.field(default_factory=UpdateSettings)
    discovery: DiscoverySettings = msgspec.field(default_factory=DiscoverySettings)
    kept_headers: tuple[str, ...] = KEPT_HEADERS  # names of response headers; "*": all
    purposes: tuple[UsePurpose, ...] = ()
