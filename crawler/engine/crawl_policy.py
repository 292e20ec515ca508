"""What a crawl is told: its limits, and how it is to behave."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawler.engine.crawl_settings import CrawlSettings, UpdateSettings
from crawler.engine.robots_cache import RobotsNeeds
from crawler.frontier.decide import RetrySettings
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.revisit import RevisitSettings


@dataclass(frozen=True, slots=True)
class CrawlPolicy:
    """Everything the rules need to know of this crawl."""

    crawl: CrawlSettings
    politeness: PolitenessSettings
    retry: RetrySettings
    robots: RobotsNeeds
    revisit: RevisitSettings = field(default_factory=RevisitSettings)
    updates: UpdateSettings = field(default_factory=UpdateSettings)
    longest_request_s: float = 120.0
