"""Parse a robots.txt file into a neutral model of its lines, without interpreting them.

Sources: the 1996 draft, 3.2, 3.3 and 4.2; RFC 9309, 2.2 and 2.5; ``docs/protocols.md``, section 1.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from crawler.model import Reading
from crawler.robots.fields import KNOWN_FIELDS, USER_AGENT, Names, is_clear_value, without_colon
from crawler.terminal_text import shown

#: The octets of a body that are read (``docs/protocols.md``, section 1; RFC 9309, 2.5 requires at least 500 KiB).
MAX_BYTES = 512 * 1024

#: The octets that ``strict`` reads: an owner who writes so much means to close it.
STRICT_MAX_BYTES = 5 * 1024 * 1024

#: The size of a file that the event loop reads itself, in bytes: it takes at most 20 ms. Larger files are read in a
#: parser process, and claims leave their text in the store.
SMALL_BYTES = 32 << 10

#: The lines that are read behind the first :data:`MAX_BYTES`, counted from the first line of the file, without blank
#: lines and lines that are a comment. Of 4,231 files of real sites, the longest has 31,853. More take seconds and
#: hundreds of megabytes, so strict closes such a site.
MAX_LINES = 250_000

#: The lines of unknown fields that are kept, for display. Lines of known fields are never dropped, because any of them
#: may close a path. ``MAX_BYTES`` bounds their number, and :mod:`crawler.robots.matching` bounds their cost.
MAX_EXTENSIONS = 1000

_WHITE = " \t\x0b\x0c"
#: A field within a line: the break before it was lost, as in ``User-agent: * Disallow: /``. A path may contain
#: ``*host:`` and ``;allow:``, so a blank or a written ``\n`` is required; ``*`` before a field counts only in agents.
_FIELD_WITHIN = re.compile(rf"(?:(?<=[\s*])|(?<=\\[nr]))(?:{'|'.join(sorted(KNOWN_FIELDS))})[ \t]*:", re.IGNORECASE)
_BETWEEN = f"{_WHITE};|,"
_MOST_ON_A_LINE = 1_000
_AGENTS_EXAMINED, _MOST_INDENTED = 100, 200
_CONTENT = re.compile(rb"(?:\A|[\r\n])[ \t]*([^#\s])")  # of a line that is neither blank nor a comment
_BOM = b"\xef\xbb\xbf"
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")

#: Characters that an editor shows as a blank, or not at all. (U+200C and U+200D shape letters and belong to words.)
_BLANKS = re.compile("[\x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\udca0]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]+"
)
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Line(NamedTuple):
    """One line with a field, or a blank line (``text`` is empty), which ends a record in the draft reading.

    ``text`` is the line without its comment and outer white space. Octets outside UTF-8 are surrogate escapes in the
    strings: ``value.encode("utf-8", "surrogateescape")`` returns the file's octets.
    """

    number: int  # from 1, as an editor shows it
    field: str  # lower case
    value: str
    text: str

    @property
    def shown(self) -> str:
        """``text`` for display: printable and short. A reader finds the whole line by its number."""
        return _shown(self.text)


@lru_cache(4_096)  # each URL of a site has its verdict from one of a few lines
def _shown(text: str) -> str:
    return shown(text.replace("\t", " "))


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """A parsed file: its lines in order, without comments and without lines that lack a colon.

    ``seen`` holds the lines as an editor displays them, if the file contains invisible or blank-like characters.
    ``meant`` holds the displayed lines with their misspelt fields mended, if there are such. ``split`` also has the
    lost line breaks, if there are such.
    ``closes``: the file has more lines than are read, and any of them may close a path.
    """

    lines: tuple[Line, ...] = ()
    seen: tuple[Line, ...] = ()
    meant: tuple[Line, ...] = ()
    split: tuple[Line, ...] = ()
    truncated: bool = False
    html: bool = False
    closes: bool = False
    notes: tuple[str, ...] = ()

    @property
    def extensions(self) -> list[Line]:
        """The lines whose field no reading knows."""
        return [line for line in self.lines if line.text and line.field not in KNOWN_FIELDS]


def octets_read(reading: Reading) -> int:
    """The octets of a body that a reading reads."""
    return STRICT_MAX_BYTES if reading is Reading.STRICT else MAX_BYTES


def parse(body: bytes, *, max_bytes: int = MAX_BYTES) -> RobotsFile:
    """Parse any bytes as robots.txt. Never raises; time and memory are linear in ``max_bytes``.

    Lines end in CR, LF or CRLF, mixed (1996 draft, 4.2). Octets past ``max_bytes`` are ignored, and the file is
    marked ``truncated``. Lines past :data:`MAX_LINES` and past :data:`MAX_BYTES` are ignored, and the file is marked
    ``closes``. Lines of unknown fields are dropped after the first :data:`MAX_EXTENSIONS`.
    """
    whole = whole_lines(body, max_bytes)
    kept = _first_lines(whole)
    text = decoded(kept)
    lines, extensions = _lines(text)
    shown = as_seen(text)
    seen = () if shown == text else _lines(shown)[0]
    html = is_html(whole)
    spelt, parts = ({}, {}) if html else _mended(shown)
    meant = _lines(shown, spelt)[0] if spelt else ()
    split = _lines(shown, spelt | parts)[0] if parts else ()
    said = list(notes(whole))
    truncated, closes = len(whole) < len(body), len(kept) < len(whole)
    if truncated:
        said.append(cut_note(kept, max_bytes))
    if closes:
        said.append(f"more than {MAX_LINES:,} lines: strict closes the whole site")
    if extensions > MAX_EXTENSIONS:
        said.append(f"{extensions} lines of unknown fields, of which {MAX_EXTENSIONS} are kept")
    return RobotsFile(lines, seen, meant, split, truncated, html, closes, tuple(said))


def _first_lines(whole: bytes) -> bytes:
    """The lines of a body that are read: those up to :data:`MAX_LINES`, and those within :data:`MAX_BYTES`."""
    if len(whole) <= MAX_BYTES or whole.count(b"\n") + whole.count(b"\r") < MAX_LINES:
        return whole
    first_unread = next(islice(_CONTENT.finditer(whole), MAX_LINES, None), None)
    return whole if first_unread is None else whole_lines(whole, max(first_unread.start(1), MAX_BYTES))


_NONE: Mapping[int, list[Line]] = {}


def _lines(text: str, mended: Mapping[int, list[Line]] = _NONE) -> tuple[tuple[Line, ...], int]:
    """The lines to keep, and the number of lines with unknown fields. ``mended`` has lines to use instead."""
    lines: list[Line] = []
    extensions = 0
    for number, content, commented in contents(text):
        if number in mended:
            lines += mended[number]
        elif content:
            line = line_of(number, content)
            if line is None:
                continue
            if line.field not in KNOWN_FIELDS:
                extensions += 1
                if extensions > MAX_EXTENSIONS:
                    continue
            lines.append(line)
        elif not commented and lines and lines[-1].text:
            lines.append(Line(number, "", "", ""))  # one blank line stands for several
    return tuple(lines), extensions


def _mended(text: str) -> tuple[dict[int, list[Line]], dict[int, list[Line]]]:
    """What a person reads by the number of the line: a line that is misspelt, and the lines that lack a break."""
    names = Names()
    spelt: dict[int, list[Line]] = {}
    parts: dict[int, list[Line]] = {}
    for number, content, _ in contents(text):
        if (line := _meant_line(number, content, names)) is not None:
            spelt[number] = [line]
        if content.count(":") > 1 and (found := _parts(number, content, names)):
            parts[number] = found
    return spelt, parts


def _parts(number: int, content: str, names: Names) -> list[Line]:
    """The lines that ``content`` clearly means, if the breaks between them are missing; else none."""
    starts = [0]
    for match in islice(_FIELD_WITHIN.finditer(content), _MOST_ON_A_LINE):
        at, last = match.start(), starts[-1]
        if content[at - 1] != "*" or content[last : last + len(USER_AGENT)].lower() == USER_AGENT:
            starts.append(at)
    parts = [_without_break(content[start:end]) for start, end in pairwise((*starts, len(content)))]
    lines = [_meant_line(number, part, names) or line_of(number, part) for part in parts]
    if len(lines) == 1 or lines[0] is None or lines[0].field not in KNOWN_FIELDS:
        return []
    return [line for line in lines if line is not None]


def _without_break(part: str) -> str:
    """``part`` without what stands for the lost line break behind it: a separator, or a written ``\\n``."""
    return part.rstrip(_BETWEEN).removesuffix(r"\n").removesuffix(r"\r").rstrip(_BETWEEN)


def _meant_line(number: int, content: str, names: Names) -> Line | None:
    """The line that ``content`` means, if its field is misspelt or its colon is missing; None if that is unclear."""
    line = line_of(number, content)
    if line is not None and line.field in KNOWN_FIELDS:
        return None
    if line is not None and (field := names.meant(line.field)) is not None:
        return Line(number, field, line.value, content)
    found = without_colon(content)
    if found is not None and is_clear_value(*found):
        return Line(number, *found, content)
    return None


def contents(text: str) -> Iterator[tuple[int, str, bool]]:
    """Each line as (number, text without comment and outer white space, whether the line has a comment)."""
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        said, mark, _ = raw.partition("#")
        yield number, said.strip(_WHITE), bool(mark)


def line_of(number: int, content: str) -> Line | None:
    """``content`` as a field and its value; None if it has no colon."""
    field, colon, value = content.partition(":")
    return Line(number, field.rstrip(_WHITE).lower(), value.lstrip(_WHITE), content) if colon else None


def as_seen(text: str) -> str:
    """``text`` as an editor shows it: a no-break space as a blank, a zero-width space or a NUL as nothing.

    UTF-16 without a BOM becomes its ASCII characters.
    """
    return _UNSEEN.sub("", _BLANKS.sub(" ", text))


def decoded(body: bytes) -> str:
    """Decode as UTF-8, which robots.txt requires. A file with a UTF-16 BOM is decoded as UTF-16 and obeyed too."""
    if body.startswith(_UTF16_BOMS):
        return body.decode("utf-16", "replace")
    return body.removeprefix(_BOM).decode("utf-8", "surrogateescape")


def whole_lines(body: bytes, max_bytes: int, *, cut: bool = False) -> bytes:
    """``body`` up to its last whole line within ``max_bytes``. ``cut``: the fetcher has cut it already.

    Half a line is dropped: ``Allow: /a/b`` cut to ``Allow: /`` would open what the owner closed. In UTF-16 a line's
    end has two octets, and each of them also occurs in other characters.
    """
    if len(body) <= max_bytes and not cut:
        return body
    kept = body[:max_bytes]
    if body.startswith(_UTF16_BOMS):
        coding = "utf-16-le" if body.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        text = kept[: len(kept) & ~1].decode(coding, "surrogatepass")
        whole = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
        return whole.encode(coding, "surrogatepass")
    return kept[: max(kept.rfind(b"\n"), kept.rfind(b"\r")) + 1]


def cut_note(whole: bytes, max_bytes: int) -> str:
    """The remark on a file of which only ``whole`` is read: where the last whole group ends."""
    last = _last_agent(decoded(whole).replace("\r\n", "\n").replace("\r", "\n"))
    read = f"longer than {max_bytes} bytes; the rest is ignored"
    if last is None:
        return read
    return f"{read}, and the group that begins in line {last.number} ({last.shown}) may be incomplete"


def _last_agent(text: str) -> Line | None:
    """The last line that names an agent, searched from the end: the event loop does this for files of any size."""
    lower, end = text.lower(), len(text)
    if len(lower) != len(text):  # a character whose lower case is longer
        lower = text
    for _ in range(_AGENTS_EXAMINED):
        at = lower.rfind(USER_AGENT, 0, end)
        if at < 0:
            return None
        before = text[max(0, at - _MOST_INDENTED) : at].rstrip(_WHITE)
        if before.endswith("\n") or (not before and at <= _MOST_INDENTED):
            line_end = text.find("\n", at)
            content = text[at : line_end if line_end >= 0 else None].partition("#")[0].strip(_WHITE)
            line = line_of(text.count("\n", 0, at) + 1, content)
            if line is not None and line.field == USER_AGENT:
                return line
        end = at
    return None


def is_html(body: bytes) -> bool:
    """Whether the body is an HTML page."""
    return body[:1024].removeprefix(_BOM).lstrip().lower().startswith(_HTML_STARTS)


def notes(body: bytes) -> tuple[str, ...]:
    """Remarks on a body served as robots.txt. Its lines are read nevertheless."""
    if is_html(body):
        return ("HTML served as robots.txt",)
    if body.startswith(_UTF16_BOMS):
        return ("UTF-16 served as robots.txt instead of UTF-8; read nevertheless",)
    return ()
