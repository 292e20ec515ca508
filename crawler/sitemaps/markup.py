"""Sitemaps and feeds in XML, read by expat as a stream.

Sources: https://www.sitemaps.org/protocol.html; RSS 0.9x, 1.0, 2.0; RFC 4287 (Atom). Namespaces are not looked at: an
element is known by its name without prefix and by its place, for prefixes that were never declared are common.

What an attacker could write is not read at all: a DOCTYPE with declarations of its own ends the reading, so no entity
is ever defined (nor, as expat leaves external ones alone, fetched).
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.parsers import expat

from crawler.sitemaps.findings import Findings, Kind, Stop
from crawler.url import MAX_URL_CHARS, NotCrawlable, canonicalise

#: Longest tag, comment or instruction, in bytes. It keeps the attributes of one tag few, and, as expat
#: begins an unfinished token anew with each piece, the time linear.
_MAX_TOKEN_BYTES = 262_144

_ROOTS = {
    "urlset": (Kind.URLSET, "url"),
    "sitemapindex": (Kind.INDEX, "sitemap"),
    "rss": (Kind.RSS, "item"),
    "rdf": (Kind.RSS, "item"),
    "feed": (Kind.ATOM, "entry"),
}
_FIELDS = {
    Kind.URLSET: ("loc", "lastmod"),
    Kind.INDEX: ("loc", "lastmod"),
    Kind.RSS: ("link", "guid", "pubdate", "date"),
    Kind.ATOM: ("updated", "modified", "published"),
}


def read_markup(pieces: Iterable[str], *, url: str, findings: Findings) -> tuple[Kind, str]:
    """Gather the entries of the XML in ``pieces``; relative URLs are resolved against ``url``.

    Returns what kind of document it is, and why reading ended early (``""``: it did not). Of XML that is broken,
    the entries before the break are kept.
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
    """Where the parser is in one document. An entry is open where ``_entry_depth`` is not 0."""

    def __init__(self, url: str, findings: Findings) -> None:
        self.kind = Kind.UNKNOWN
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
            raise Stop("a DOCTYPE with declarations in it, which are not read")

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
        elif name == "link" and self.kind is Kind.ATOM and attributes.get("rel", "alternate") == "alternate":
            self._fields.setdefault("link", attributes.get("href", "").strip())

    def _characters(self, text: str) -> None:
        if self._text_chars <= MAX_URL_CHARS:  # one more than a URL may have, so that it is refused as too long
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
        if self.kind is Kind.RSS:
            date = fields.get("pubdate") or fields.get("date", "")
            link = fields.get("link", "")
            if not link:  # a guid that is a link is a whole one (RSS 2.0, "guid")
                link, base = fields.get("guid", ""), None
        elif self.kind is Kind.ATOM:
            date = fields.get("updated") or fields.get("modified") or fields.get("published", "")
            link = fields.get("link", "")
        else:
            date, link = fields.get("lastmod", ""), fields.get("loc", "")
        self._findings.add(link, base, date)
        fields.clear()
        self._entry_depth = 0


def _joined(base: str, attributes: dict[str, str]) -> str:
    """The base that an element sets for itself (XML Base), else the one around it."""
    own = attributes.get("xml:base")
    if own is None:
        return base
    try:
        return canonicalise(own, base)
    except NotCrawlable:
        return base
