"""JSON on standard output, for ``--json``."""

from __future__ import annotations

import json
import sys


def print_json(document: object) -> None:
    """Print a JSON document on one line of standard output."""
    print(to_json(document))


def to_json(document: object, *, indent: int | None = None) -> str:
    """``document`` as JSON, in ASCII if the encoding of standard output is not UTF-8."""
    utf8 = (getattr(sys.stdout, "encoding", None) or "").lower() in ("utf-8", "utf8")
    return json.dumps(document, default=str, ensure_ascii=not utf8, indent=indent)
