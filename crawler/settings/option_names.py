"""What errors call by its name on the command line, called by its name in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from crawler.errors import CrawlerError

#: Where messages name an option of the command line: what does the same here. Those of exports have the same names.
_OPTIONS = {
    "--agent": "identity.agent",
    "--contact": "identity.contact",
    "--db": "crawler.open(db)",
    "--max-depth": "limits.max_depth",
    "--max-pages": "limits.max_pages",
    "--method": "sample.method",
    "--per": "sample.per",
    "--sample": "sample.size",
    "--seeds": "run(seeds=…) or seeds.file",
    "--skip-bad-seeds": "seeds.skip_bad",
    "--warc": "output.warc",
}
_OPTION = re.compile(r"--[a-z][a-z-]*\b(?! \(in Python)")
#: What is done by a command, which stays as it can be typed.
_COMMAND_OR_OPTION = re.compile(rf"`crawler run (?P<options>[^`]*)`(?! \(in Python)|`[^`]*`|{_OPTION.pattern}")


@contextmanager
def named_for_python() -> Iterator[None]:
    """What an error calls by its option, it also calls by what that is in Python."""
    try:
        yield
    except CrawlerError as error:
        error.args = (_COMMAND_OR_OPTION.sub(_both_names, str(error)),)
        raise


def _both_names(found: re.Match[str]) -> str:
    if found["options"] is None:
        name = _OPTIONS.get(found[0])
    else:
        told = [
            _OPTIONS[option] for option in _OPTION.findall(found["options"]) if option in _OPTIONS and option != "--db"
        ]
        name = ", ".join(told) or "run()"
    return found[0] if name is None else f"{found[0]} (in Python: {name})"
