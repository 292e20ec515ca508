"""What a crawl is told: its limits, and how it is to behave."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawler.engine.robots_cache import RobotsNeeds
from crawler.frontier.decide import RetrySettings
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.revisit import RevisitSettings


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """Limits of a crawl. ``None`` is no limit. Pages are counted over all runs on the store."""

    concurrency: int = 64
    max_pages: int | None = None
    max_pages_per_site: int | None = None
    max_time_s: float | None = None
    max_body_bytes: int = 10 * 1024 * 1024
    sitemaps: bool = False  # ask for the sitemaps that robots.txt names, or for /sitemap.xml
    claimed_groups: int = 2000


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """How updates by the Remote Update Protocol are had."""

    rup: bool = False  # ask each site crawled for its /rupinfo.txt
    cgi_elsewhere: bool = False  # talk to a RUP-CGI on another site than the /rupinfo.txt that names it


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
