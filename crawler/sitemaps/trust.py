"""For which URLs a sitemap may speak (https://www.sitemaps.org/protocol.html, "Sitemap file location" and
"Sitemaps & Cross Submits").

Without it, anybody's sitemap could fill the frontier with URLs of somebody else. A URL is taken

* if the robots.txt of its own site names this sitemap (or the index, or the redirect, that led to it): whoever
  writes that file speaks for the whole site;
* else if it is on the sitemap's own site, in its directory or below.

The sitemaps that an index lists are judged by the same rule. Where the protocol is silent or too narrow: ``http`` and
``https`` of one host, at their default ports, are one site here, since sites that moved to https often list what
they were. ``www.a.example`` and ``a.example`` are two.
"""

from __future__ import annotations

from collections.abc import Callable

from crawler.url import split

SitemapsOf = Callable[[str], tuple[str, ...] | None]
"""The sitemaps that a site's robots.txt names, as canonical URLs; ``None`` where that file is not known (yet)."""


class Trust:
    """The rule for one sitemap, asked for every URL in it.

    ``via`` has the canonical URLs that led to ``sitemap``: indexes that list it, redirects to it. What
    ``sitemaps_of`` said of a site is kept for all of its URLs.
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
        """Why the sitemap's word on the canonical ``url`` does not count; ``None`` where it does."""
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
    """Host, and port where it is not the scheme's own."""
    return site.partition("://")[2]
