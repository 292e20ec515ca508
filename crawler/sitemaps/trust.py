"""Decide which URLs of a sitemap count.

Source: https://www.sitemaps.org/protocol.html, "Sitemap file location" and "Sitemaps & Cross Submits".

Without this rule any sitemap could fill the frontier with another site's URLs. A URL counts if

* the robots.txt of the URL's own site names this sitemap, or the index or redirect that led to it; or
* the URL is on the sitemap's own site, in the sitemap's directory or below.

The same rule judges the sitemaps that an index lists. In one point the rule is wider than the protocol: ``http`` and
``https`` of one host at their default ports are one site, because a site that moved to https often lists its old
URLs. ``www.a.example`` and ``a.example`` are two sites.
"""

from __future__ import annotations

from collections.abc import Callable

from crawler.url import split

SitemapsOf = Callable[[str], tuple[str, ...] | None]
"""The sitemaps that a site's robots.txt names, as canonical URLs; None if the crawler does not know that file."""


class Trust:
    """The rule for one sitemap, asked for every URL in it.

    ``via`` holds the canonical URLs that led to ``sitemap``: indexes that list it, redirects to it. The answer of
    ``sitemaps_of`` for a site is cached for all of the site's URLs.
    """

    def __init__(self, sitemap: str, sitemaps_of: SitemapsOf, via: tuple[str, ...] = ()) -> None:
        site, path = split(sitemap)
        self._names = frozenset((sitemap, *via))
        self._sitemaps_of = sitemaps_of
        self._host = _host(site)
        self._directory = path.partition("?")[0].rpartition("/")[0] + "/"
        self._own_site = self._names_us(site) is True
        self._refusals: dict[str, str | None] = {}

    def refusal(self, url: str) -> str | None:
        """The reason why the canonical ``url`` does not count; None if it counts."""
        site, path = split(url)
        if site not in self._refusals:
            self._refusals[site] = self._refuse_site(site)
        refused = self._refusals[site]
        if refused is None or (_host(site) == self._host and path.startswith(self._directory)):
            return None
        return refused

    def _refuse_site(self, site: str) -> str | None:
        own = _host(site) == self._host
        named = self._names_us(site)
        if named or (own and self._own_site):
            return None
        if own:
            return f"sitemap: not below {self._directory}, and {site}/robots.txt does not name the sitemap"
        if named is None:
            return f"sitemap: on another site, and {site}/robots.txt is not known"
        return f"sitemap: on another site, and {site}/robots.txt does not name the sitemap"

    def _names_us(self, site: str) -> bool | None:
        sitemaps = self._sitemaps_of(site)
        return None if sitemaps is None else not self._names.isdisjoint(sitemaps)


def _host(site: str) -> str:
    """The host, with its port unless that is the scheme's default."""
    return site.partition("://")[2]
