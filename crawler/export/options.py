"""What an export may be asked for, on the command line and from Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of an export beside its format.

    ``table`` is a view, ``where`` an SQL condition on its columns. ``bodies`` adds the bodies of pages. ``base_url`` is
    the address at which the folder of a sitemap in several files will be served. ``allowed_for`` leaves out pages, and
    links of pages, that refuse one of these uses (:class:`~crawler.preferences.purposes.UsePurpose`); an unknown
    preference allows. ``detect_language`` adds to the table of pages the languages that a classifier sees in them,
    ``main_text`` their texts without navigation and the like. ``chunk`` writes that text in chunks of at most this many
    characters instead of the table, one a line (JSON Lines).
    """

    table: str | None = None
    where: str | None = None
    bodies: bool = False
    base_url: str | None = None
    allowed_for: tuple[str, ...] = ()
    detect_language: bool = False
    main_text: bool = False
    chunk: int | None = None
