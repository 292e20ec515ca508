"""Read sitemaps and feeds in XML as a stream, with expat.

Sources: https://www.sitemaps.org/protocol.html; RSS 0.9x, 1.0, 2.0; RFC 4287 (Atom). Namespaces are ignored: the
reader recognises an element by its name without prefix and by its place, because undeclared prefixes are common.

A DOCTYPE with declarations of its own ends the reading. So a document never defines an entity. Expat fetches no
external entities.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.parsers import expat

from crawler.sitemaps.findings import Findings, SitemapKind, Stop
from crawler.url import MAX_URL_CHARS, NotCrawlable, canonicalise

#: The longest tag, comment or instruction, in bytes. It bounds the attributes of one tag. It also keeps the time
#: linear, because expat restarts an unfinished token with each piece.
_MAX_TOKEN_BYTES = 262_144

_ROOTS = {
    "urlset": (SitemapKind.URLSET, "url"),
    "sitemapindex": (SitemapKind.INDEX, "sitemap"),
    "rss": (SitemapKind.RSS, "item"),
    "rdf": (SitemapKind.RSS, "item"),
    "feed": (SitemapKind.ATOM, "entry"),
}
_FIELDS = {
    SitemapKind.URLSET: ("loc", "lastmod"),
    SitemapKind.INDEX: ("loc", "lastmod"),
    SitemapKind.RSS: ("link", "guid", "pubdate", "date"),
    SitemapKind.ATOM: ("updated", "modified", "published"),
}


def read_markup(pieces: Iterable[str], *, url: str, findings: Findings) -> tuple[SitemapKind, str]:
    """Collect the entries of the XML in ``pieces``. Relative URLs are resolved against ``url``.

    Returns the kind of document, and the reason why reading ended early (``""``: it did not). The entries before a
    syntax error are kept.
    """
    document = _Document(url, findings)
    parser = document.parser
    fed = 0
    try:
        for piece in pieces:
            octets = piece.encode()
            parser.Parse(octets, False)
            fed += len(octets)
            if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
                raise Stop(f"a tag of more than {_MAX_TOKEN_BYTES} bytes")
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        return document.kind, f"broken XML: {error}"
    except Stop as stop:
        return document.kind, str(stop)
    return document.kind, ""


class _Document:
    """The parser's position in one document. An entry is open while ``_entry_depth`` is not 0."""

    def __init__(self, url: str, findings: Findings) -> None:
        self.kind = SitemapKind.UNKNOWN
        self._findings = findings
        self._max_depth, self._max_elements = findings.limits.max_depth, findings.limits.max_elements
        self._base = self._entry_base = url
        self._depth = self._elements = self._entry_depth = 0
        self._entry_name = ""
        self._names: tuple[str, ...] = ()
        self._fields: dict[str, str] = {}
        self._field: str | None = None
        self._text: list[str] = []
        self._text_chars = 0
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype

    def _doctype(self, name: str, system_id: str | None, public_id: str | None, has_internal_subset: bool) -> None:
        if has_internal_subset:
            raise Stop("a DOCTYPE with declarations in it, which are refused")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > self._max_depth:
            raise Stop(f"elements nested more than {self._max_depth} deep")
        if self._elements > self._max_elements:
            raise Stop(f"more than {self._max_elements} elements")
        name = tag.rpartition(":")[2].lower()
        if self._entry_depth:
            if self._depth == self._entry_depth + 1:
                self._start_field(name, attributes)
        elif self._depth == 1:
            self._start_root(name, attributes)
        elif name == self._entry_name:
            self._entry_depth = self._depth
            self._entry_base = _joined(self._base, attributes)

    def _start_root(self, name: str, attributes: dict[str, str]) -> None:
        if name not in _ROOTS:
            raise Stop(f"the document is <{name[:40]}>")
        self.kind, self._entry_name = _ROOTS[name]
        self._names = _FIELDS[self.kind]
        self._base = _joined(self._base, attributes)

    def _start_field(self, name: str, attributes: dict[str, str]) -> None:
        if name in self._names:
            if name != "guid" or attributes.get("isPermaLink", "true") != "false":
                self._field = name
                self.parser.CharacterDataHandler = self._characters
        elif name == "link" and self.kind is SitemapKind.ATOM and attributes.get("rel", "alternate") == "alternate":
            self._fields.setdefault("link", attributes.get("href", "").strip())

    def _characters(self, text: str) -> None:
        if self._text_chars <= MAX_URL_CHARS:  # keep one character more than the limit, so the URL is refused
            self._text.append(text)
            self._text_chars += len(text)

    def _end(self, tag: str) -> None:
        if self._entry_depth:
            if self._depth == self._entry_depth:
                self._end_entry()
            elif self._field is not None and self._depth == self._entry_depth + 1:
                self._end_field(self._field)
        self._depth -= 1

    def _end_field(self, name: str) -> None:
        text = "".join(self._text).strip()
        if text:
            self._fields.setdefault(name, text)
        self._field = None
        self._text.clear()
        self._text_chars = 0
        self.parser.CharacterDataHandler = None

    def _end_entry(self) -> None:
        fields = self._fields
        base: str | None = self._entry_base
        if self.kind is SitemapKind.RSS:
            date = fields.get("pubdate") or fields.get("date", "")
            link = fields.get("link", "")
            if not link:  # a guid that is a link is an absolute URL (RSS 2.0, "guid")
                link, base = fields.get("guid", ""), None
        elif self.kind is SitemapKind.ATOM:
            date = fields.get("updated") or fields.get("modified") or fields.get("published", "")
            link = fields.get("link", "")
        else:
            date, link = fields.get("lastmod", ""), fields.get("loc", "")
        self._findings.add(link, base, date)
        fields.clear()
        self._entry_depth = 0


def _joined(base: str, attributes: dict[str, str]) -> str:
    """The base URL that an element sets (XML Base), else ``base``."""
    own = attributes.get("xml:base")
    if own is None:
        return base
    try:
        return canonicalise(own, base)
    except NotCrawlable:
        return base
