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
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<meta[\s/][^>]*?charset\s*=\s*[\"']?\s*([^\s\"'/>;]+)", re.IGNORECASE)


_PIECE_BYTES = 1 << 18


def encoding_of(label: str) -> str | None:
    """The name of a label in the Encoding Standard; ``None`` for an unknown label (4.2, "get an encoding")."""
    return _LABELS.get(label.strip("\t\n\f\r \"'").lower())


def to_utf8(body: bytes, declared: str | None) -> tuple[str, bytes]:
    """Returns the name of the page's encoding, and the page as valid UTF-8 without a byte order mark.

    ``declared`` is the charset of the Content-Type header. The order is: byte order mark, header, ``<meta>`` in the
    first 1,024 bytes, guess. Invalid bytes become U+FFFD. An unknown label is ignored. Never raises.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return name, _transcode(body[len(bom) :], name)
    label = (declared and encoding_of(declared)) or _from_meta(body[:PRESCAN_BYTES])
    if label is None:
        label = "utf-8" if _is_utf8(body) else "windows-1252"
    return label, _transcode(body, label)


def _from_meta(head: bytes) -> str | None:
    for label in _META.findall(_COMMENT.sub(b"", head)):
        name = encoding_of(label.decode("ascii", "replace"))
        if name:
            # The declaration was found in ASCII, so the page cannot be in UTF-16 (HTML Standard, 13.2.3.2).
            return "utf-8" if name.startswith("utf-16") else name
    return None


def _is_utf8(body: bytes, *, whole: bool = False) -> bool:
    """Whether ``body`` is valid UTF-8. Unless ``whole``, its last character may be cut."""
    if body.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _PIECE_BYTES):  # not at once, to save memory
            decoder.decode(body[start : start + _PIECE_BYTES])
        decoder.decode(b"", whole)
    except UnicodeDecodeError:
        return False
    return True


def _transcode(body: bytes, name: str) -> bytes:
    if name == "utf-8":
        return body if _is_utf8(body, whole=True) else body.decode("utf-8", "replace").encode()
    return body.decode(_CODECS[name], "replace").encode("utf-8", "replace")
