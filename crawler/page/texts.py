"""The texts of a document, as its readers return them. Importing this module loads no parser."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what follows it, up to the next heading.

    ``start`` is the position of the heading in the text of the page, in characters. ``level`` is 1 to 6. ``anchor`` is
    the fragment that leads there, empty if the page names no element near the heading.
    """

    start: int
    level: int
    heading: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Content:
    """The main content of a page. ``markdown`` names the addresses of links by their numbers in ``links``."""

    markdown: str
    plain: str
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MainText:
    """The main text of a page. The text includes the headings; ``language`` is the one that the page states.

    ``content`` is ``None`` without the libraries that read it. ``note`` says why the text was not read, if that took
    more than a parser process may take.
    """

    headings: str
    text: str
    sections: tuple[Section, ...] = ()
    language: str | None = None
    note: str = ""
    content: Content | None = None
