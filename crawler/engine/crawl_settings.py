"""The settings of a crawl itself: its limits, its sources of URLs, its updates."""

from __future__ import annotations

from dataclasses import dataclass

#: Response headers about language, rights and security; ``last_modified`` is a column of its own.
KEPT_HEADERS = (
    "content-language",
    "server",
    "x-robots-tag",
    "content-usage",
    "tdm-reservation",
    "tdm-policy",
    "content-security-policy",
    "strict-transport-security",
)


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """Limits of a crawl. ``None`` is no limit. Pages are counted over all runs on the store."""

    concurrency: int = 64
    max_pages: int | None = None
    max_pages_per_site: int | None = None
    max_time_s: float | None = None
    max_disk_bytes: int | None = None  # of the files of the crawl on this machine
    max_body_bytes: int = 10 * 1024 * 1024
    sitemaps: bool = False  # ask for the sitemaps that robots.txt names, or for /sitemap.xml
    claimed_groups: int = 2000
    headers: tuple[str, ...] = KEPT_HEADERS  # names of response headers that the store keeps of pages; "*": all
    resources: bool = False  # store the hosts of the scripts, images, styles and frames of pages


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Updates by the Remote Update Protocol."""

    rup: bool = False  # ask each site for its /rupinfo.txt
    cgi_elsewhere: bool = False  # talk to a RUP-CGI on another site than the /rupinfo.txt that names it
