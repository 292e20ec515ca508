"""Determines the character encoding of a page and converts the page to UTF-8, which the parser reads.

Source: HTML Standard, 13.2.3.2 "Determining the character encoding", and Encoding Standard, 4.2 "Names and labels"
(https://encoding.spec.whatwg.org/). One rule differs: a page that declares nothing is UTF-8 if its bytes are valid
UTF-8, and windows-1252 if not.
"""

from __future__ import annotations

import codecs
import re

#: The bytes of a page in which a declaration is searched.
PRESCAN_BYTES = 1024

# WHATWG name, Python's codec for it, labels besides the name; more labels on a further line of the same name.
_ENCODINGS = """
utf-8 utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866 cp866 866 cp866 csibm866
iso-8859-2 iso8859-2 csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 iso8859-3 csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 iso8859-4 csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 iso8859-5 csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 iso8859-6 arabic asmo-708 csisolatinarabic csiso88596e csiso88596i ecma-114 iso-8859-6-e
iso-8859-6 iso8859-6 iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597
iso-8859-7 iso8859-7 iso_8859-7 iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso8859-8 csisolatinhebrew hebrew iso-8859-8-e iso-8859-8-i iso-ir-138 iso8859-8 iso88598
iso-8859-8 iso8859-8 iso_8859-8 iso_8859-8:1988 logical visual
iso-8859-10 iso8859-10 csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso8859-13 iso8859-13 iso885913
iso-8859-14 iso8859-14 iso8859-14 iso885914
iso-8859-15 iso8859-15 csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso8859-16
koi8-r koi8-r cskoi8r koi koi8 koi8_r
koi8-u koi8-u koi8-ru
macintosh mac-roman csmacintosh mac x-mac-roman
windows-874 cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250 cp1250 cp1250 x-cp1250
windows-1251 cp1251 cp1251 x-cp1251
windows-1252 cp1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1
windows-1252 cp1252 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252 x-user-defined
windows-1253 cp1253 cp1253 x-cp1253
windows-1254 cp1254 cp1254 csisolatin5 iso-8859-9
windows-1254 cp1254 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 x-cp1254
windows-1255 cp1255 cp1255 x-cp1255
windows-1256 cp1256 cp1256 x-cp1256
windows-1257 cp1257 cp1257 x-cp1257
windows-1258 cp1258 cp1258 x-cp1258
x-mac-cyrillic mac-cyrillic x-mac-ukrainian
gbk gb18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030 gb18030
big5 big5hkscs big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc_jp cseucpkdfmtjapanese x-euc-jp
iso-2022-jp iso2022_jp csiso2022jp
shift_jis cp932 csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr cp949 cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16be utf-16-be unicodefffe
utf-16le utf-16-le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
"""
_ROWS = [line.split() for line in _ENCODINGS.split("\n") if line]
_CODECS = {name: codec for name, codec, *_ in _ROWS}
_LABELS = {label: name for name, _, *labels in _ROWS for label in (name, *labels)}

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16be"), (codecs.BOM_UTF16_LE, "utf-16le"))
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_WHITE = frozenset(b"\t\n\x0c\r ")
_BLANKS = "\t\n\x0c\r "
_CHARSET = re.compile(r"charset[\t\n\x0c\r ]*=[\t\n\x0c\r ]*", re.IGNORECASE)
_UNQUOTED = re.compile(r"[^\t\n\x0c\r ;]*")
_XML = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*([\"'])([^\"'\x00-\x20>]*)\1")

_PIECE_BYTES = 1 << 14


def encoding_of(label: str) -> str | None:
    """The name of a label in the Encoding Standard; ``None`` for an unknown label (4.2, "get an encoding")."""
    return _LABELS.get(label.strip("\t\n\f\r \"'").lower())


def to_utf8(body: bytes, declared: str | None) -> tuple[str, bytes]:
    """Returns the name of the page's encoding, and the page as valid UTF-8 without a byte order mark.

    ``declared`` is the charset of the Content-Type header. Invalid bytes become U+FFFD. Never raises.
    """
    name, _ = sniffed(body, declared)
    return name, in_utf8(body, name)


def sniffed(body: bytes, declared: str | None) -> tuple[str, bool]:
    """The encoding with which the parser begins, and whether a ``<meta>`` in the tree cannot change it.

    The order is: byte order mark, header, prescan of the first 1,024 bytes, guess. An unknown label is ignored. The
    first two are certain (HTML Standard, 13.2.3.2).
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return name, True
    if declared and (label := encoding_of(declared)):
        return label, True
    label = prescanned(body[:PRESCAN_BYTES])
    if label is None:
        label = "utf-8" if _is_utf8(body) else "windows-1252"
    return label, False


def changed(current: str, declared: str | None) -> str:
    """The encoding after the parser has met a ``<meta>`` that declares another one (13.2.3.5)."""
    return current if declared is None or current.startswith("utf-16") else declared


def in_utf8(body: bytes, name: str) -> bytes:
    """``body`` in the encoding ``name``, as UTF-8 without a byte order mark."""
    for bom, of in _BOMS:
        if of == name and body.startswith(bom):
            body = body[len(bom) :]
    return _transcode(body, name)


def meta_encoding(charset: str | None, http_equiv: str | None, content: str | None) -> str | None:
    """The encoding that the attributes of a ``<meta>`` declare; None if they declare none (13.2.6.4.4)."""
    if charset is not None:
        return _of_meta(_labelled(charset))
    if http_equiv is not None and http_equiv.lower() == "content-type" and content is not None:
        return _of_meta(_in_content(content))
    return None


def _labelled(label: str) -> str | None:
    """As :func:`encoding_of`, but quotes are no part of a label."""
    return _LABELS.get(label.strip(_BLANKS).lower())


def _of_meta(name: str | None) -> str | None:
    """A declaration that was read as ASCII cannot mean UTF-16 (13.2.3.2)."""
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def _in_content(content: str) -> str | None:
    """The encoding in the content of a ``<meta>``: "extracting a character encoding from a meta element" (2.4.4)."""
    found = _CHARSET.search(content)
    if found is None:
        return None
    rest = content[found.end() :]
    if rest[:1] in ('"', "'"):
        label, end, _ = rest[1:].partition(rest[0])
        return _labelled(label) if end else None
    unquoted = _UNQUOTED.match(rest)
    return _labelled(unquoted[0]) if unquoted else None


def prescanned(head: bytes) -> str | None:
    """The encoding that the first bytes declare (13.2.3.2, "prescan a byte stream to determine its encoding")."""
    if head.startswith((b"<\0?\0x\0", b"\0<\0?\0x")):
        return "utf-16le" if head[0] else "utf-16be"
    try:
        return _Prescan(head).run()
    except IndexError:  # the bytes have ended
        xml = _XML.match(head)
        return _of_meta(_labelled(xml[2].decode("latin-1"))) if xml else None


class _Prescan:
    """The steps of the prescan. Each raises :class:`IndexError` at the end of the bytes."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._at = 0

    def run(self) -> str:
        head = self._head
        while True:
            at = self._at = self._find(b"<", self._at)
            if head.startswith(b"<!--", at):
                self._at = self._find(b"-->", at + 2) + 2
            elif head[at : at + 5].lower() == b"<meta" and head[at + 5] in b"\t\n\x0c\r /":
                self._at = at + 5
                if (name := self._meta()) is not None:
                    return name
            elif head[at + 1 + (head[at + 1] == ord("/"))] in _LETTERS:
                while head[self._at] not in b"\t\n\x0c\r >":
                    self._at += 1
                while self._attribute() is not None:
                    pass
            elif head[at + 1] in b"!/?":
                self._at = self._find(b">", at)
            self._at += 1

    def _find(self, what: bytes, start: int) -> int:
        found = self._head.find(what, start)
        if found < 0:
            raise IndexError
        return found

    def _meta(self) -> str | None:
        got: dict[str, str] = {}
        charset, need_pragma = None, None
        while (attribute := self._attribute()) is not None:
            name, value = attribute
            if name in got:
                continue
            got[name] = value
            if name == "content" and charset is None and (found := _in_content(value)) is not None:
                charset, need_pragma = found, True
            elif name == "charset":
                charset, need_pragma = _labelled(value), False
        if need_pragma is None or (need_pragma and got.get("http-equiv") != "content-type"):
            return None
        return _of_meta(charset)

    def _attribute(self) -> tuple[str, str] | None:
        """The next attribute in lower case; None at the end of the tag ("get an attribute")."""
        head = self._head
        while head[self._at] in b"\t\n\x0c\r /":
            self._at += 1
        if head[self._at] == ord(">"):
            return None
        start = self._at
        while head[self._at] not in b"\t\n\x0c\r />" and not (head[self._at] == ord("=") and self._at > start):
            self._at += 1
        name = head[start : self._at].decode("latin-1").lower()
        while head[self._at] in _WHITE:
            self._at += 1
        if head[self._at] != ord("="):
            return name, ""
        self._at += 1
        while head[self._at] in _WHITE:
            self._at += 1
        quote = head[self._at]
        if quote in b"\"'":
            start, end = self._at + 1, self._find(bytes([quote]), self._at + 1)
            self._at = end + 1
        else:
            start = self._at
            while head[self._at] not in b"\t\n\x0c\r >":
                self._at += 1
            end = self._at
        return name, head[start:end].decode("latin-1").lower()


def in_encoding(href: str, encoding: str) -> str:
    """A URL as written, with its query percent-encoded in the page's ``encoding``.

    Characters that the encoding lacks become ``%26%23NNN%3B``. UTF-8 is left to the URL parser, and stands for UTF-16
    (URL Standard, 4.4 "query state" and 1.3 "percent-encode after encoding").
    """
    if encoding.startswith("utf-") or href.isascii():
        return href
    head, mark, query = href.strip(_TRIMMED).partition("?")
    if query.isascii():
        return href
    octets = query.translate(_NOT_IN_URLS).encode(_CODECS[encoding], _QUERY_ERRORS)
    return f"{head}{mark}{''.join(_QUERY_OCTETS[octet] for octet in octets)}"


_TRIMMED = "".join(map(chr, range(0x21)))
_NOT_IN_URLS = str.maketrans("", "", "\t\n\r")
_QUERY_OCTETS = [chr(o) if 0x20 < o < 0x7F and chr(o) not in "\"#<>'" else f"%{o:02X}" for o in range(256)]
_QUERY_ERRORS = "crawler.query"


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(f"%26%23{ord(char)}%3B" for char in error.object[error.start : error.end]), error.end


codecs.register_error(_QUERY_ERRORS, _escaped)


def _is_utf8(body: bytes, *, whole: bool = False) -> bool:
    """Whether ``body`` is valid UTF-8. Unless ``whole``, its last character may be cut."""
    if body.isascii():
        return True
    rest = memoryview(body)
    try:
        while len(rest) > _PIECE_BYTES:  # not at once, to save memory
            rest = rest[codecs.utf_8_decode(rest[:_PIECE_BYTES])[1] :]
        codecs.utf_8_decode(rest, "strict", whole)
    except UnicodeDecodeError:
        return False
    return True


def _transcode(body: bytes, name: str) -> bytes:
    if name == "utf-8":
        return body if _is_utf8(body, whole=True) else body.decode("utf-8", "replace").encode()
    return body.decode(_CODECS[name], "replace").encode("utf-8", "replace")
