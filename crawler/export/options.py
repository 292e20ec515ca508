"""What an export may be asked for, on the command line and from Python."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Addition(StrEnum):
    """What an export adds to each row of the table of pages, as the values of ``add``."""

    BODY = "body"
    TEXT = "text"
    LANGUAGE = "language"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of an export beside its format.

    ``table`` is a view, ``where`` an SQL condition on its columns. ``add`` adds to the table of pages their bodies
    ("body"), their texts without navigation and the like ("text"), and the languages that a classifier sees in them
    ("language"). ``base_url`` is the address at which the folder of a sitemap in several files will be served.
    ``allowed_for`` leaves out pages, and links of pages, that refuse one of these uses
    (:class:`~crawler.preferences.purposes.UsePurpose`); an unknown preference allows. ``chunk`` writes the texts in
    chunks of at most this many characters instead of the table, one a line (JSON Lines). ``since`` is the number of a
    run: the file, in a folder, gets the rows that later runs have added.
    """

    table: str | None = None
    where: str | None = None
    add: tuple[str, ...] = ()
    base_url: str | None = None
    allowed_for: tuple[str, ...] = ()
    chunk: int | None = None
    since: int | None = None
