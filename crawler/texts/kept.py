"""Keeps the texts of bodies in the store. A text goes with its body, so nothing is kept of a page that forbids it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from crawler.engine.text_messages import TextUnread
from crawler.page.texts import Content, MainText
from crawler.store.bodies import compress, decompress
from crawler.store.rows import KeptText
from crawler.store.statements import load_statements

if TYPE_CHECKING:  # a search, which reads no text, loads no parser pool
    from crawler.store.sections import Store
    from crawler.texts.reader import ReadsTexts

#: The version of the reading. Increase it when a document would get another text: it is then read again.
VERSION = 6
_LEVEL = 6  # of zstd: a seventh less than level 1, in 0.2 ms more
_SQL = load_statements("crawler.texts")


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A stored body, and what its reading depends on. ``site`` is that of the page."""

    body_id: int
    charset: str | None
    content_type: str
    site: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> StoredDocument:
        """The document of a row with these columns."""
        return cls(row["body_id"], row["charset"], row["content_type"], row["site"])

    @property
    def read_as(self) -> str:
        return json.dumps([VERSION, self.charset, self.content_type])


async def texts_of(
    store: Store, reader: ReadsTexts, documents: Iterable[StoredDocument], *, keeps: bool = True
) -> dict[StoredDocument, MainText]:
    """The texts of documents. Those that the store does not keep yet are read, and kept from then on if it ``keeps``.

    A document beyond the bounds has an empty text with a note. A document whose body was deleted is left out. All texts
    are in memory at once.
    """
    wanted = set(documents)
    kept = await _kept(store, {document.body_id for document in wanted})
    texts, unknown = dict[StoredDocument, MainText](), list[StoredDocument]()
    for document in wanted:
        read_as, data = kept.get(document.body_id, ("", b""))
        text = await asyncio.to_thread(_unpacked, data) if read_as == document.read_as else None
        if text is None:
            unknown.append(document)
        else:
            texts[document] = text
    if unknown:
        read = await _read(store, reader, unknown)
        if keeps:
            await store.results.keep_texts(
                [KeptText(document.body_id, document.read_as, _packed(text)) for document, text in read.items()]
            )
        texts |= read
    return texts


async def content_of(store: Store, reader: ReadsTexts, document: StoredDocument) -> Content | None:
    """The content of a document. It is not kept: to read it takes up to twenty times as long as to read the text.

    A document beyond the bounds has an empty content with a note. ``None`` if the body was deleted, if its type has no
    content, or if a library is missing.
    """
    for body in (await store.bodies.get([document.body_id])).values():
        try:
            return await reader.content(document.site, body, document.charset, document.content_type)
        except TextUnread as unread:
            return Content("", "", note=str(unread))
    return None


async def _kept(store: Store, bodies: set[int]) -> dict[int, tuple[str, bytes]]:
    if not bodies:
        return {}
    rows = await store.query(_SQL["kept"].format(numbers=", ".join(map(str, sorted(bodies)))))
    return {row["body_id"]: (row["read_as"], row["data"]) for row in rows}


async def _read(
    store: Store, reader: ReadsTexts, documents: Sequence[StoredDocument]
) -> dict[StoredDocument, MainText]:
    bodies = await store.bodies.get(document.body_id for document in documents)

    async def read(document: StoredDocument) -> MainText:
        try:
            return await reader.main_text(
                document.site, bodies[document.body_id], document.charset, document.content_type
            )
        except TextUnread as unread:
            return MainText("", "", note=str(unread))

    there = [document for document in documents if document.body_id in bodies]
    async with asyncio.TaskGroup() as tasks:
        reading = [tasks.create_task(read(document)) for document in there]
    return {document: task.result() for document, task in zip(there, reading, strict=True)}


def _packed(text: MainText) -> bytes:
    return compress(msgspec.json.encode(text), _LEVEL)


def _unpacked(data: bytes) -> MainText:
    return msgspec.json.decode(decompress(data), type=MainText)
