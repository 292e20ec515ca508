"""The pages that a crawl of a web of files must find, from a walk over the files without code of the crawler."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

FRONT_PAGE = "__index.html"
"""The file that a host serves for `/`. Packages have their own pages named index.html."""

DISALLOWED = "/private/"


def file_of(root: Path, url: str) -> Path | None:
    """The file that answers `url`: `root`/HOST/PATH, or None if there is none."""
    parts = urlsplit(url)
    host = root / (parts.hostname or "")
    path = unquote(parts.path)
    if path in ("", "/"):
        path = FRONT_PAGE
    elif path.endswith("/"):
        path += "index.html"
    file = (host / path.lstrip("/")).resolve()
    return file if file.is_relative_to(host.resolve()) and file.is_file() else None


class Anchors(HTMLParser):
    """Collects each `href` of `<a>` and `<area>`, and that of the first `<base>`."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("a", "area", "base"):
            href = (dict(attrs).get("href") or "").strip()
            if tag == "base":
                self.base = self.base or href
            elif href:
                self.hrefs.append(href)


def links(url: str, html: str) -> set[str]:
    """The absolute URLs that a page links to, without fragments."""
    anchors = Anchors()
    anchors.feed(html)
    anchors.close()
    base = urljoin(url, anchors.base)
    found = set()
    for href in anchors.hrefs:
        try:
            found.add(quote(urldefrag(urljoin(base, href)).url, safe="%/:=&?~+!$,;'@()*[]"))
        except ValueError:  # not a URL at all, such as http://[
            continue
    return found


def walk(root: Path, seeds: Iterable[str], rule: str) -> set[str]:
    """The URLs of the pages that links from `seeds` lead to, as far as `rule` and robots.txt allow them."""
    follows = re.compile(rule)
    seen = set(seeds)
    todo = list(seen)
    pages = set()
    while todo:
        url = todo.pop()
        file = file_of(root, url)
        if file is None:
            continue
        pages.add(url)
        for link in links(url, file.read_text(encoding="utf-8", errors="replace")) - seen:
            if follows.match(link) and not urlsplit(link).path.startswith(DISALLOWED):
                seen.add(link)
                todo.append(link)
    return pages
