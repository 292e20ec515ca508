"""The settings of the engine: its limits, its sources of URLs, its updates."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawler.fields.declaration import Of, setting
from crawler.fields.kinds import (
    COUNT_OR_NO_LIMIT,
    DEPTH,
    FLAG,
    SECONDS_OR_NO_LIMIT,
    SIZE_OR_NO_LIMIT,
    Form,
    ValueKind,
    read_text,
    whole,
)
from crawler.reasons import FRAME_CODES, ReasonCode

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


#: The value of a setting in :class:`HookSettings` that says: call no function, though the last run did.
NO_HOOK = "none"
_FUNCTION = re.compile(r"[\w.<>]+:[\w.<>]+")


def _function(value: object) -> str:
    text = read_text(value)
    if text not in ("", NO_HOOK) and not _FUNCTION.fullmatch(text):
        raise ValueError(f'must be MODULE:FUNCTION, such as "shop:no_sorted_views", or "{NO_HOOK}"')
    return text


FUNCTION = ValueKind("MODULE:FUNCTION", Form.TEXT, _function)


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The functions of the user that choose links and pages (:mod:`crawler.engine.hooks`), by importable names."""

    follow: str = setting(
        "follow",
        "",
        FUNCTION,
        "Ask this function of yours whether to follow a link: MODULE:FUNCTION, in a file MODULE.py or a package.",
        'Each worker imports it. A crawl that was begun with one is continued with it only if the run names it; "none" '
        "goes on without. docs/python.md describes it.",
        option="--follow",
        of=Of.RUN,
    )
    keep: str = setting(
        "keep",
        "",
        FUNCTION,
        "Ask this function of yours whether to keep a page: MODULE:FUNCTION.",
        "As with hooks.follow.",
        option="--keep",
        of=Of.RUN,
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits of a crawl. ``None`` is no limit. Pages are counted over all runs on the store."""

    max_pages: int | None = setting(
        "max_pages",
        None,
        COUNT_OR_NO_LIMIT,
        "Stop when the store holds this many pages; 0 is no limit.",
        "Pages of earlier runs count.",
        option="--max-pages",
        option_help="Stop at this many pages in the store.",
    )
    max_pages_per_site: int | None = setting(
        "max_pages_per_site",
        None,
        COUNT_OR_NO_LIMIT,
        "Take at most this many pages of each site; 0 is no limit.",
        "A site is a scheme, a host and a port. Set this limit if sites may be endless: calendars, shops, session ids.",
        option="--max-pages-per-site",
        option_help="Take at most so many pages of each site.",
        decides=FRAME_CODES,
    )
    max_depth: int | None = setting(
        "max_depth",
        None,
        DEPTH,
        "Follow at most this many links from a seed; -1 is no limit.",
        "A seed has depth 0.",
        option="--max-depth",
        option_help="Follow at most so many links from a seed.",
        decides=(
            ReasonCode.SCOPE,
            ReasonCode.PATTERN,
            ReasonCode.DEPTH,
            ReasonCode.MIRROR,
            ReasonCode.MIRROR_CYCLE,
            *FRAME_CODES,
        ),
    )
    max_time_s: float | None = setting(
        "max_time",
        None,
        SECONDS_OR_NO_LIMIT,
        "End the run after this time; 0 is no limit.",
        "The next run continues the crawl.",
        option="--max-time",
        option_help="End the run after this time, such as 2h.",
        of=Of.RUN,
    )
    max_disk_bytes: int | None = setting(
        "max_disk",
        None,
        SIZE_OR_NO_LIMIT,
        "End the run when the files of the crawl take more than this; 0 is no limit.",
        "The SQLite file with its write-ahead log, the folder of bodies and the WARC folder count. They grow a "
        "little beyond it: requests in flight are still stored. A PostgreSQL database and S3 do not count.",
        option="--max-disk",
    )
    concurrency: int = setting(
        "concurrency",
        64,
        whole(1),
        "Requests in flight over all sites together.",
        "One site gets one request at a time in any case, and one registered domain a quarter of them at most, at "
        "the pace of that many hosts. Raise the number for a crawl of thousands of sites, if memory and bandwidth "
        "allow.",
        option="--concurrency",
        option_help="Requests in flight in all.",
        of=Of.WORKER,
    )
    claimed_groups: int = 2000


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    """Sources of URLs other than links."""

    sitemaps: bool = setting(
        "sitemaps",
        False,
        FLAG,
        "Ask each site for its sitemaps, and queue the URLs that they list.",
        "The sitemaps are those that robots.txt names, or else /sitemap.xml. This finds pages that no link leads "
        "to. Scope, robots.txt and pace hold for the listed URLs as for any other. With revisits, the crawler also "
        "reads the RSS and Atom feeds that pages name, and the dates in all of these tell it what has changed.",
        decides=FRAME_CODES,
    )
    soft_404: bool = setting(
        "soft_404",
        False,
        FLAG,
        "Mark pages that are like the answer of their site to a path that cannot exist: the column soft_404.",
        "Each site gets one request more, before its first page. Nothing else follows from the mark. A crawl for a "
        "sample does so in any case.",
    )


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Updates by the Remote Update Protocol."""

    rup: bool = setting(
        "rup",
        False,
        FLAG,
        "Ask each site once for /rupinfo.txt, to learn whether it offers updates by RUP.",
        "`crawler rup info SITE` and the view rup_offers show the answer.",
    )
    cgi_elsewhere: bool = setting(
        "cgi_elsewhere",
        False,
        FLAG,
        "Talk to a RUP server on another site than the /rupinfo.txt that names it.",
        "Such a file can name the server of any third party.",
    )
