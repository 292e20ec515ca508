"""The search page as HTML: what a request asks for, and its results rendered. Needs the extra ``search``.

Jinja2 escapes every value that a template prints, so no text of a crawled site becomes markup. As a second defence the
page has a Content-Security-Policy that allows nothing but its own style sheet, its own script and its own form.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from math import ceil
from urllib.parse import urlencode

from jinja2 import Environment
from markupsafe import Markup, escape

from crawler.cli.templates import fit, template_environment
from crawler.clock import iso
from crawler.errors import UsageError
from crawler.formatting import many
from crawler.search.excerpt import Marked
from crawler.search.query import MAX_QUERY_CHARS
from crawler.search.results import Filters, SearchResult
from crawler.version import VERSION

#: Hits on one page, and how many pages of hits can be asked for.
PAGE_HITS = 10
MAX_PAGE = 50
_PAGES_AROUND = 4

_DAY_S = 86_400
#: The values of ``since``: their text, and the time before now in seconds.
SINCE = {
    "day": ("last 24 hours", _DAY_S),
    "week": ("last 7 days", 7 * _DAY_S),
    "month": ("last 30 days", 30 * _DAY_S),
    "year": ("last 365 days", 365 * _DAY_S),
}
_TITLES = {"site": "Site", "language": "Language", "depth": "Links from the seeds", "since": "Fetched"}
_MAX_DEPTH = 10**9
_NATURAL = re.compile("[0-9]{1,10}")

_STYLE = (files("crawler.search") / "style.css").read_text(encoding="utf-8")
_SCRIPT = (files("crawler.search") / "script.js").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


#: The Content-Security-Policy of the page (CSP Level 3).
POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, as the user wrote it."""

    words: str = ""
    page: int = 1
    site: str = ""
    language: str = ""
    depth: str = ""
    since: str = ""
    similar_to: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """What the query of a URL asks for. Raises :class:`UsageError` for a value that a parameter cannot have."""
        value = {name: query.get(name, "").strip() for name in ("q", "page", "similar_to", *_TITLES)}
        for name, least, most in (("page", 1, MAX_PAGE), ("depth", 0, _MAX_DEPTH)):
            if (text := value[name]) and not (_NATURAL.fullmatch(text) and least <= int(text) <= most):
                raise UsageError(f"the parameter {name} cannot be {text[:50]}: write a number from {least} to {most:,}")
        if value["since"] and value["since"] not in SINCE:
            raise UsageError(f"the parameter since cannot be {value['since'][:50]}: write one of {', '.join(SINCE)}")
        words, page, language = value.pop("q"), int(value.pop("page") or 1), value.pop("language").lower()
        return cls(words, page, language=language, **value)

    def filters(self, now: float) -> Filters:
        """The filters; ``now`` is in seconds since the epoch."""
        return Filters(
            site=self.site or None,
            language=self.language or None,
            depth=int(self.depth) if self.depth else None,
            since=now - SINCE[self.since][1] if self.since else None,
            similar_to=self.similar_to or None,
        )

    def active(self) -> list[tuple[str, str, str]]:
        """The filters that are set: name, value, and text."""
        said = {
            "site": self.site.partition("://")[2] or self.site,
            "language": f"language: {self.language}",
            "depth": f"links from the seeds: {self.depth}",
            "since": SINCE[self.since][0] if self.since else "",
            "similar_to": f"like {self.similar_to}",
        }
        return [(name, getattr(self, name), text) for name, text in said.items() if getattr(self, name)]

    def link(self, *, page: int = 1, without: str = "", changes: Mapping[str, str] | None = None) -> str:
        """A relative link to the same search with changes."""
        values = {"q": self.words} | {name: value for name, value, _ in self.active()} | dict(changes or {})
        values.pop(without, None)
        if page > 1:
            values["page"] = str(page)
        return f"?{urlencode(values)}"


def render(asked: Asked, result: SearchResult | None, *, name: str, pages: int, sites: int, error: str = "") -> str:
    """The page: the results, or without ``result`` the start page, or the ``error``.

    ``name`` is the title of the page; ``pages`` and ``sites`` are those in the index.
    """
    last_page = 0 if result is None else last_page_of(asked, result)
    around = range(max(1, asked.page - _PAGES_AROUND), min(last_page, asked.page + _PAGES_AROUND) + 1)
    return _ENVIRONMENT.get_template("search.html.j2").render(
        asked=asked,
        result=result,
        is_behind=bool(result and result.note),
        facets=[] if result is None else _facets(asked, result),
        first=(asked.page - 1) * PAGE_HITS + 1,
        last_page=last_page,
        shown_pages=list(around),
        name=name,
        pages=pages,
        sites=sites,
        error=error,
    )


def last_page_of(asked: Asked, result: SearchResult) -> int:
    """The number of the last page of hits, as far as this page tells; 0 if there are no hits at all.

    The counts of a result include near-duplicates that are not shown, so a page that is not full is the last one.
    """
    last = min(ceil((result.ranked + result.some) / PAGE_HITS), MAX_PAGE)
    return last if len(result.hits) == PAGE_HITS else min(last, asked.page)


def description(name: str, base_url: str) -> str:
    """The OpenSearch description (OpenSearch 1.1, draft 6) of the search page at ``base_url``."""
    return _ENVIRONMENT.get_template("opensearch.xml.j2").render(name=name, base_url=base_url)


def _facets(asked: Asked, result: SearchResult) -> list[tuple[str, list[tuple[str, int, str, bool]]]]:
    """The facets by title; each value with its text, its pages, the link that changes it, and whether it is set."""
    shown = []
    for facet, title in _TITLES.items():
        values = []
        for one in result.facets:
            if one.facet == facet:
                is_on = getattr(asked, facet) == one.value
                said = SINCE[one.value][0] if facet == "since" else one.value.removeprefix("https://")
                link = asked.link(without=facet) if is_on else asked.link(changes={facet: one.value})
                values.append((said, one.pages, link, is_on))
        if values:
            shown.append((title, values))
    return shown


def _marked(text: Marked) -> Markup:
    """A text with its matches in ``<mark>``, escaped."""
    html, end_before = Markup(""), 0
    for start, end in text.marks:
        html += escape(fit(text.text[end_before:start]))
        html += Markup("<mark>{}</mark>").format(fit(text.text[start:end]))
        end_before = end
    return html + escape(fit(text.text[end_before:]))


def _day(epoch_s: float) -> str:
    return iso(epoch_s)[:10]


def _environment() -> Environment:
    environment = template_environment("crawler.search", finalize=fit)
    environment.globals.update(
        marked=_marked,
        many=many,
        day=_day,
        style=Markup(_STYLE),
        script=Markup(_SCRIPT),
        version=VERSION,
        max_chars=MAX_QUERY_CHARS,
    )
    return environment


_ENVIRONMENT = _environment()
