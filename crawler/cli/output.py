"""Everything that the commands write to a terminal passes through here.

Pages, headers, mails and addresses hold text of strangers. A control character in it could move the cursor, write to
the clipboard (OSC 52) or reverse the direction of writing. So no character that is not printable leaves through this
module, apart from the escape sequences that Rich makes for styles.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
from collections.abc import Iterable
from typing import IO, Any, BinaryIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from crawler.terminal_text import escaped_json, printable_lines


class PrintableConsole(Console):
    """A console that shows text as it is: no highlighting, no mark-up, and U+FFFD for what is not printable."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is to be printed; Rich calls this for everything that it prints."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable_lines(text), style)

    def on_broken_pipe(self) -> None:
        """Rich calls this when the reader has closed the pipe."""
        raise BrokenPipeError


class _Trimmed(io.TextIOBase):
    """The current standard output, without the blanks that tables leave at the ends of lines."""

    def write(self, text: str) -> int:
        return sys.stdout.write(re.sub(r" +(?=\n)", "", text))

    def flush(self) -> None:
        stream = getattr(sys, "stdout", None)  # at the end of the process, neither may exist
        if stream is not None:
            stream.flush()


def _standard_output() -> PrintableConsole:
    made = PrintableConsole()
    if made.is_terminal:
        return made
    made = PrintableConsole(file=cast(IO[str], _Trimmed()))
    if "COLUMNS" not in os.environ:
        made.width = 1000  # a file or another program gets unwrapped lines
    return made


#: The console of standard output.
console = _standard_output()


def say(message: str) -> None:
    """Print a line of results on standard output."""
    print(printable_lines(message))  # noqa: T201  here the text is printable


def tell(message: str) -> None:
    """Print a message for the user on standard error."""
    print(f"crawler: {printable_lines(message)}", file=sys.stderr)  # noqa: T201  here the text is printable


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
