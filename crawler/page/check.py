"""Answers one case of ``crawler page check --jsonl``, without network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crawler.model import Headers, PageFacts, Preference, Reading
from crawler.page.directives import asked_of
from crawler.url import NotCrawlable, canonicalise, split

_ANSWERED = ("index", "follow", "title", "description", "keywords", "document_state", "canonical_url", "base_url")
#: The preferences of a page, the text of the licence that it names, that of the one in it, and its URL: what these say.
Licensed = Callable[[Sequence[Preference], str, str, str], tuple[Preference, ...]]
#: The preferences of a page, the text of a tdmrep.json, the site and the path: the preferences with those of the file.
WithFiled = Callable[[Sequence[Preference], str, str, str], tuple[Preference, ...]]

_PRODUCT_TOKEN = re.compile(r"\s*([A-Za-z0-9_-]*)")


def check_case(
    case: Mapping[str, Any],
    *,
    read: Callable[..., PageFacts],
    with_filed: WithFiled,
    licensed: Licensed,
    now: float = 0.0,
) -> dict[str, Any]:
    """Answer one case.

    The keys of a case are ``url``, ``html`` (text, so no charset is guessed), ``headers`` (pairs of name and value),
    ``agent`` (a product token or a whole ``User-Agent``), ``reading`` (default ``strict``), ``now`` (epoch seconds;
    default: the argument), ``tdmrep`` (the text of the site's tdmrep.json) and ``license`` (that of the licence which
    the page names). ``read`` reads the page:
    :func:`crawler.page.html.read_page`, or a function with the same arguments that bounds its time and memory.
    ``with_filed`` is :func:`crawler.robots.tdmrep.with_filed`, and ``licensed`` is
    :func:`crawler.robots.rsl.licensed_page`.

    The answer has ``index, follow, title, description, keywords, document_state, canonical_url, base_url, links``,
    ``preferences`` if the page states some, ``archive`` (false) if no copy may be handed out, and ``note`` if part of
    the page was not read. Raises :class:`ValueError`
    that names the key that is missing or wrong.
    """
    try:
        url = canonicalise(_text(case, "url"))
    except NotCrawlable as error:
        raise ValueError(f"url: {error}") from None
    facts = read(
        _text(case, "html").encode("utf-8", "replace"),
        url=url,
        headers=_headers(case.get("headers")),
        charset="utf-8",
        token=_token(_text(case, "agent", "")),
        reading=_reading(_text(case, "reading", Reading.STRICT.value)),
        now=_now(now if case.get("now") is None else case["now"]),
    )
    answer: dict[str, Any] = {name: getattr(facts, name) for name in _ANSWERED}
    answer["document_state"] = facts.document_state or "STATIC"  # the default (the FAQ's META tags)
    answer["links"] = [
        {"url": link.url, "anchor": link.anchor, "rel": link.rel, "follow": link.follow} for link in facts.links
    ]
    preferences, filed = facts.preferences, _text(case, "tdmrep", "")
    if filed:
        preferences = with_filed(preferences, filed, *split(url))
    preferences = (*preferences, *licensed(preferences, _text(case, "license", ""), facts.inline_licence, url))
    if preferences:
        answer["preferences"] = [one._asdict() for one in preferences]
    if not asked_of(json.dumps(facts.directives)).archive:
        answer["archive"] = False
    if facts.note:
        answer["note"] = facts.note
    return answer


def _text(case: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = case.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise ValueError(f"{key}: must be text, not {'missing' if value is None else type(value).__name__}")
    return value


def _token(agent: str) -> str:
    found = _PRODUCT_TOKEN.match(agent)
    return found[1] if found else ""


def _headers(value: object) -> Headers:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise ValueError('headers: must be a list of [name, value] pairs, such as [["Link", "…"]]')
    pairs = []
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise ValueError('headers: must be a list of [name, value] pairs, such as [["Link", "…"]]')
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _reading(value: str) -> Reading:
    try:
        return Reading(value)
    except ValueError:
        raise ValueError(f"reading: must be one of {', '.join(Reading)}, not {value[:50]!r}") from None


def _now(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise ValueError("now: must be a number of seconds since the epoch")
    return float(value)
