"""The texts of a page as the index keeps them: for excerpts, and to take the page out of the index."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from crawler.page.main_text import clean
from crawler.page.texts import MainText, Section
from crawler.search.tokenizer import for_tokenizer
from crawler.store.bodies import compress, decompress

_LEVEL = 3  # of zstd


class Document(NamedTuple):
    """A page. ``anchors`` has the anchors of links to the page, one a line, the most frequent first.

    ``headings`` has its description and its keywords, too.
    """

    title: str
    anchors: str
    headings: str
    text: str
    sections: tuple[Section, ...]

    @classmethod
    def of(cls, row: Any, anchors: str, text: MainText) -> Document:
        """The document of a page: ``row`` has its title, description and keywords."""
        headings = "\n".join(filter(None, (text.headings, row["description"], row["keywords"])))
        return cls(row["title"] or "", anchors, headings, text.text, text.sections)

    def columns(self) -> list[str]:
        """The values of the columns of the index. The same document always has the same ones."""
        return [*map(for_tokenizer, map(clean, (self.title, self.anchors, self.headings))), for_tokenizer(self.text)]


def packed(document: Document) -> bytes:
    """The stored form of a document."""
    return compress(msgspec.json.encode(document), _LEVEL)


def unpacked(data: bytes) -> Document:
    """The document of which ``data`` is the stored form."""
    return msgspec.json.decode(decompress(data), type=Document)
