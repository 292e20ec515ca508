"""JSON on standard output, for ``--json``."""

from __future__ import annotations

import json
import sys


def print_json(document: object) -> None:
    """One JSON document on a line of standard output."""
    print(to_json(document))


def to_json(document: object, *, indent: int | None = None) -> str:
    """JSON that standard output can take, whatever its encoding."""
    utf8 = (getattr(sys.stdout, "encoding", None) or "").lower() in ("utf-8", "utf8")
    return json.dumps(document, default=str, ensure_ascii=not utf8, indent=indent)
