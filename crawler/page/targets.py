"""Resolves the links of a page, once per distinct target."""

from __future__ import annotations

from collections.abc import Mapping

from crawler.model import Link
from crawler.page.charset import in_encoding
from crawler.url import Joiner, NotCrawlable, scheme_of

#: Characters joined for one page, base and link together. A base of 8,000 characters would make 80 MB of 10,000 links.
MAX_JOINED_CHARS = 20_000_000
MAX_REL_CHARS = 200
MAX_SCHEMES = 32
MAX_SCHEME_CHARS = 32


#: One link as written: its ``rel`` and its anchor text.
Use = tuple[str, str]


def rel_words(rel: str) -> list[str]:
    """The words of a ``rel``, in lower case. Blanks separate them (HTML, 2.3.7); commas and semicolons are accepted."""
    return rel.lower().replace(",", " ").replace(";", " ").split()


def may_follow(use: Use) -> bool:
    """Whether this use of a link may be followed."""
    return "nofollow" not in rel_words(use[0])


def resolve(
    written: Mapping[str, list[Use]], base: str, encoding: str = "utf-8"
) -> tuple[tuple[Link, ...], dict[str, int], str]:
    """Resolve links against the canonical URL ``base``; ``written`` has the uses of each target, without fragments.

    ``encoding`` is that of the page: a query is encoded in it.
    Returns one :class:`Link` per target, the number of links of each other scheme, and a note that is empty unless
    links were left out.
    """
    targets: dict[str, list[Use]] = {}
    schemes: dict[str, int] = {}
    note = ""
    budget = MAX_JOINED_CHARS
    join = Joiner(base)
    is_utf = encoding.startswith("utf-")
    for href, uses in written.items():
        budget -= len(base) + len(href)
        if budget < 0:
            note = "the links are too long to be joined all; the rest were left out"
            break
        try:
            url = join(href if is_utf else in_encoding(href, encoding))
        except NotCrawlable:
            _count_scheme(schemes, href, len(uses))
            continue
        known = targets.setdefault(url, uses)
        if known is not uses:
            targets[url] = known + uses
    return tuple([_link(url, uses) for url, uses in targets.items()]), schemes, note


def _count_scheme(schemes: dict[str, int], href: str, times: int) -> None:
    scheme = scheme_of(href)
    if scheme is None or scheme in ("http", "https"):
        return
    scheme = scheme[:MAX_SCHEME_CHARS]
    if scheme in schemes or len(schemes) < MAX_SCHEMES:
        schemes[scheme] = schemes.get(scheme, 0) + times


def _link(url: str, uses: list[Use]) -> Link:
    """One link for all uses of a target: the first that may be followed, else the first."""
    rel, anchor = uses[0]
    if len(uses) == 1 and not rel:
        return Link(url, anchor, "", True)
    chosen = next(filter(may_follow, uses), None)
    rel, anchor = chosen or uses[0]
    anchor = anchor or next((text for _, text in uses if text), "")
    return Link(url, anchor, " ".join(rel.lower().split())[:MAX_REL_CHARS], chosen is not None)
