"""The policy of a crawl: its limits, and all that the rules need to know of its settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawler.engine.crawl_settings import CrawlSettings, UpdateSettings
from crawler.engine.robots_cache import RobotsNeeds
from crawler.frontier.decide import RetrySettings
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.revisit import RevisitSettings
from crawler.preferences.purposes import UsePurpose


@dataclass(frozen=True, slots=True)
class CrawlPolicy:
    """All that the engine needs to know of the settings. ``longest_request_s`` is the longest a request may take."""

    crawl: CrawlSettings
    politeness: PolitenessSettings
    retry: RetrySettings
    robots: RobotsNeeds
    revisit: RevisitSettings = field(default_factory=RevisitSettings)
    updates: UpdateSettings = field(default_factory=UpdateSettings)
    longest_request_s: float = 120.0
    purposes: tuple[UsePurpose, ...] = ()
