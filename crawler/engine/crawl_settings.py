"""The settings of the engine: its limits, its sources of URLs, its updates."""

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
class LimitSettings:
    """Limits of a crawl. ``None`` is no limit. Pages are counted over all runs on the store."""

    concurrency: int = 64
    max_pages: int | None = None
    max_pages_per_site: int | None = None
    max_depth: int | None = None  # links from a seed
    max_time_s: float | None = None
    max_disk_bytes: int | None = None  # of the files of the crawl on this machine
    claimed_groups: int = 2000


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    """Sources of URLs other than links."""

    sitemaps: bool = False  # ask for the sitemaps that robots.txt names, or for /sitemap.xml


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Updates by the Remote Update Protocol."""

    rup: bool = False  # ask each site for its /rupinfo.txt
    cgi_elsewhere: bool = False  # talk to a RUP-CGI on another site than the /rupinfo.txt that names it
