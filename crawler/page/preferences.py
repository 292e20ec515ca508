"""The preferences about use in the headers and tags of a document.

Sources: draft-ietf-aipref-attach, section 2; contentsignals.org; TDM Reservation Protocol, "HTTP response headers" and
"HTML metadata"; ``docs/protocols.md``, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable

from crawler.model import Headers, Preference
from crawler.preferences.purposes import bounded
from crawler.preferences.schemes import (
    content_signal,
    content_usage,
    robots_terms,
    rsl_license,
    tdm_policy,
    tdm_reservation,
)

PREFERENCE_HEADERS = frozenset(("content-usage", "content-signal", "tdm-reservation", "tdm-policy"))
_METAS = frozenset(("tdm-reservation", "tdm-policy"))


def preferences_of(
    headers: Headers,
    robots_tags: Iterable[tuple[str, str]],
    metas: Iterable[tuple[str, str]] = (),
    licences: Iterable[tuple[str, str]] = (),
    *,
    url: str,
    content_type: str = "",
) -> tuple[Preference, ...]:
    """The preferences of a document at ``url``.

    ``robots_tags`` are the contents of META ROBOTS and X-Robots-Tag that address the crawler, each with its source;
    ``metas`` are all META tags, with their names in lower case. ``licences`` are the targets of links to licences of
    RSL, each with its source.
    """
    found: list[Preference] = []
    fields = [(name.lower(), value) for name, value in headers if name.lower() in PREFERENCE_HEADERS]
    if fields:
        # Several header lines with one name are one value (RFC 9110, 5.3).
        if usage := ", ".join(value for name, value in fields if name == "content-usage"):
            found += content_usage(usage, "header", text=f"Content-Usage: {usage}") or ()
        if signal := ", ".join(value for name, value in fields if name == "content-signal"):
            found += content_signal(signal, "header", text=f"Content-Signal: {signal}")
        for name, value in fields:
            found += _tdm(name, value, "header", url)
    for name, content in metas:
        if name in _METAS:
            found += _tdm(name, content, "META", url)
    is_image = content_type.startswith("image/")
    for source, content in robots_tags:
        where, field = _origin(source)
        found += robots_terms(content, where, f"{field}: {content}", is_image=is_image)
    for source, target in licences:
        found += rsl_license(target, source, None, f"license: {target}", base=url)
    return bounded(found)


def _origin(source: str) -> tuple[str, str]:
    """The source of a robots tag, and the name of its field; see :func:`crawler.page.directives.header_tags`."""
    if source == "robots.txt":
        return source, "Robots-Tag"
    return ("META", source.removeprefix("META ")) if source.startswith("META ") else ("header", source)


def _tdm(name: str, value: str, source: str, url: str) -> list[Preference]:
    text = f"{name}: {value}"
    if name == "tdm-reservation":
        return tdm_reservation(value, source, text)
    return tdm_policy(value, source, text, url) if name == "tdm-policy" else []
