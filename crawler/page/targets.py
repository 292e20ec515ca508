"""The links of a page, gathered as written, resolved once per distinct target."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crawler.model import Headers, Link, header_values
from crawler.page.links import Use, Uses, may_follow, rel_words
from crawler.url import Joiner, NotCrawlable, canonicalise, scheme_of

#: Characters joined for one page, base and link together: a base of 8,000 characters would make 80 MB of 10,000 links.
MAX_JOINED_CHARS = 20_000_000
MAX_REL_CHARS = 200
MAX_SCHEMES = 32
MAX_SCHEME_CHARS = 32

_HEADER_LINK = re.compile(
    r"<([^<>]*)>((?:\s*;\s*[^\s;,=<>\"]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s;,\"]*))?)*)", re.DOTALL
)
_PARAMETER = re.compile(r";\s*([^\s;,=\"]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;,\"]*))", re.DOTALL)


def resolve(written: Mapping[str, Uses], base: str) -> tuple[tuple[Link, ...], dict[str, int], str]:
    """One :class:`Link` per target, how many links each other scheme had, and in words whether some were left out."""
    targets: dict[str, list[Use]] = {}
    schemes: dict[str, int] = {}
    note = ""
    budget = MAX_JOINED_CHARS
    join = Joiner(base)
    for href, (times, uses) in written.items():
        budget -= len(base) + len(href)
        if budget < 0:
            note = "the links are too long to be joined all; the rest were left out"
            break
        try:
            url = join(href)
        except NotCrawlable:
            _count_scheme(schemes, href, times)
            continue
        known = targets.get(url)
        if known is None:
            targets[url] = uses
        else:
            known += uses
    return tuple([_link(url, uses) for url, uses in targets.items()]), schemes, note


def _count_scheme(schemes: dict[str, int], href: str, times: int) -> None:
    scheme = scheme_of(href)
    if scheme is None or scheme in ("http", "https"):
        return
    scheme = scheme[:MAX_SCHEME_CHARS]
    if scheme in schemes or len(schemes) < MAX_SCHEMES:
        schemes[scheme] = schemes.get(scheme, 0) + times


def _link(url: str, uses: list[Use]) -> Link:
    rel, anchor = uses[0]
    if len(uses) == 1 and not rel:
        return Link(url, anchor, "", True)
    chosen = next(filter(may_follow, uses), None)
    rel, anchor = chosen or uses[0]
    # That use's own text, else the first that there is.
    anchor = anchor or next((text for _, text in uses if text), "")
    return Link(url, anchor, " ".join(rel.lower().split())[:MAX_REL_CHARS], chosen is not None)


def canonical_in_headers(headers: Headers, url: str) -> str | None:
    """The first valid ``Link: <…>; rel="canonical"`` (RFC 8288, 3; RFC 6596), resolved against ``url``."""
    for value in header_values(headers, "link"):
        for target, parameters in _HEADER_LINK.findall(value):
            given: dict[str, str] = {}
            for name, quoted, single, bare in _PARAMETER.findall(parameters):
                given.setdefault(name.lower(), quoted or single or bare)
            # With an anchor parameter the link is about another resource (RFC 8288, 3.2).
            if "anchor" in given or "canonical" not in rel_words(given.get("rel", "")):
                continue
            try:
                return canonicalise(target, url)
            except NotCrawlable:
                continue
    return None
