"""The texts of a document, as its readers return them, and as the store keeps them: the order of the fields matters."""

from __future__ import annotations

import msgspec


class Section(msgspec.Struct, frozen=True, array_like=True):
    """A heading and what follows it, up to the next heading.

    ``start`` is the position of the heading in the text of the page, in characters. ``level`` is 1 to 6. ``anchor`` is
    the fragment that leads there, empty if the page names no element near the heading.
    """

    start: int
    level: int
    heading: str
    anchor: str


class Content(msgspec.Struct, frozen=True, array_like=True):
    """The main content of a page. ``markdown`` names the addresses of links by their numbers in ``links``.

    ``note`` says why the content was not read, if that took more than a parser process may take.
    """

    markdown: str
    plain: str
    links: tuple[str, ...] = ()
    note: str = ""


class MainText(msgspec.Struct, frozen=True, array_like=True):
    """The main text of a page. The text includes the headings; ``language`` is the one that the page states.

    ``note`` says why the text was not read, if that took more than a parser process may take.
    """

    headings: str
    text: str
    sections: tuple[Section, ...] = ()
    language: str | None = None
    note: str = ""
