"""Protects cells of CSV files against spreadsheets, which read some texts as formulas (OWASP, "CSV Injection")."""

from __future__ import annotations

import re

# With or without apostrophes before it. Full-width signs are read as the plain ones.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def protected(text: str) -> str:
    """``text`` as a cell: ``=1`` becomes ``'=1``, and ``'=1`` becomes ``''=1``. :func:`unprotected` undoes it."""
    return f"'{text}" if _FORMULA.match(text) else text


def unprotected(cell: str) -> str:
    """The text of which :func:`protected` made ``cell``."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
