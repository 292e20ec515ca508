"""Lines and JSON documents on a terminal. Everything that commands print passes here or :mod:`crawler.cli.console`.

Pages, headers, mails and addresses hold text of strangers. A control character in it could move the cursor, write to
the clipboard (OSC 52) or reverse the direction of writing. So no character that is not printable leaves through these
two modules, apart from the escape sequences that Rich makes for styles.
"""

from __future__ import annotations

import codecs
import io
import json
import logging
import sys
from collections.abc import Callable, Container
from contextlib import redirect_stdout
from typing import Any, BinaryIO

from crawler.terminal_text import escaped_json, printable_lines


def say(message: str) -> None:
    """Print a line of results on standard output."""
    print(printable_lines(message))  # noqa: T201  here the text is printable


def tell(message: str, level: int = logging.INFO) -> None:
    """Print a message for the user on standard error; as a record of ``level`` if that has nothing but records."""
    _writers[-1](message, level)


def _print(message: str, level: int) -> None:
    print(f"crawler: {printable_lines(message)}", file=sys.stderr)  # noqa: T201  here the text is printable


_writers: list[Callable[[str, int], object]] = [_print]  # the last is in use


def tell_by(write: Callable[[str, int], object] | None) -> None:
    """Have :func:`tell` call ``write`` from now on; with ``None`` it prints."""
    _writers[:] = [_print] if write is None else [_print, write]


def quietly(work: Callable[[], int], quiet_codes: Container[int]) -> int:
    """The exit code of ``work``. What it prints and tells is shown only if the code is none of ``quiet_codes``.

    An error counts as such a code. Log records are written as they come.
    """
    printed, messages, before = io.StringIO(), list[tuple[str, int]](), _writers[-1]

    def keep(message: str, level: int) -> None:
        messages.append((message, level))

    if before is _print:
        tell_by(keep)
    code: int | None = None
    try:
        with redirect_stdout(printed):
            code = work()
            return code
    finally:
        if _writers[-1] is keep:
            tell_by(None)
        if code is None or code not in quiet_codes:
            print(printed.getvalue(), end="")  # noqa: T201  what is in it was printed by this module
            for message in messages:
                tell(*message)


def print_json(document: object, *, indent: int | None = None) -> None:
    """Print a JSON document on standard output."""
    print(to_json(document, indent=indent))  # noqa: T201  to_json has escaped what is not printable


def to_json(document: object, *, indent: int | None = None) -> str:
    """``document`` as printable JSON, in ASCII if the encoding of standard output is not UTF-8."""
    utf8 = (getattr(sys.stdout, "encoding", None) or "").lower() in ("utf-8", "utf8")
    return escaped_json(json.dumps(document, default=str, ensure_ascii=not utf8, indent=indent))


class PrintableBytes(io.RawIOBase):
    """A binary stream to a terminal: takes text in UTF-8, and passes it on with U+FFFD for what is not printable."""

    def __init__(self, terminal: BinaryIO) -> None:
        super().__init__()
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any) -> int:
        """Write all of ``data``."""
        octets = bytes(data)
        lines = self._decoder.decode(octets).split("\t")
        self._terminal.write("\t".join(map(printable_lines, lines)).encode("utf-8", "replace"))
        return len(octets)

    def flush(self) -> None:
        """Flush the terminal."""
        self._terminal.flush()
