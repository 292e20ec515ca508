"""Keeps the texts of bodies in the store. A text goes with its body, so nothing is kept of a page that forbids it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

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
    store: Store, reader: ReadsTexts, documents: Iterable[StoredDocument], *, for_export: bool = False
) -> dict[StoredDocument, MainText]:
    """The texts of documents. Those that the store does not keep yet are read, and kept from then on.

    ``for_export`` reads a text again that was kept without its content, and keeps nothing: an export only reads.

    A document beyond the bounds has an empty text with a note, and so has its content, which has bounds of its own. A
    document whose body was deleted is left out. All texts are in memory at once.
    """
    wanted = set(documents)
    kept = await _kept(store, {document.body_id for document in wanted})
    texts, unknown = dict[StoredDocument, MainText](), list[StoredDocument]()
    for document in wanted:
        read_as, data = kept.get(document.body_id, ("", b""))
        text = await asyncio.to_thread(_unpacked, data) if read_as == document.read_as else None
        if text is None or (for_export and text.content is None):
            unknown.append(document)
        else:
            texts[document] = text
    if unknown:
        read = await _read(store, reader, unknown, contents=for_export or store.results.keeps_contents)
        if not for_export:
            await store.results.keep_texts(
                [KeptText(document.body_id, document.read_as, _packed(text)) for document, text in read.items()]
            )
        texts |= read
    return texts


async def _kept(store: Store, bodies: set[int]) -> dict[int, tuple[str, bytes]]:
    if not bodies:
        return {}
    rows = await store.query(_SQL["kept"].format(numbers=", ".join(map(str, sorted(bodies)))))
    return {row["body_id"]: (row["read_as"], row["data"]) for row in rows}


async def _read(
    store: Store, reader: ReadsTexts, documents: Sequence[StoredDocument], *, contents: bool
) -> dict[StoredDocument, MainText]:
    bodies = await store.bodies.get(document.body_id for document in documents)

    async def read(document: StoredDocument) -> MainText:
        question = document.site, bodies[document.body_id], document.charset, document.content_type
        try:
            text = await reader.main_text(*question)
        except TextUnread as unread:
            text = MainText("", "", note=str(unread))
        try:
            return replace(text, content=await reader.content(*question)) if contents else text
        except TextUnread as unread:
            return replace(text, content=Content("", "", note=str(unread)))

    there = [document for document in documents if document.body_id in bodies]
    async with asyncio.TaskGroup() as tasks:
        reading = [tasks.create_task(read(document)) for document in there]
    return {document: task.result() for document, task in zip(there, reading, strict=True)}


def _packed(text: MainText) -> bytes:
    return compress(msgspec.json.encode(text), _LEVEL)


def _unpacked(data: bytes) -> MainText:
    return msgspec.json.decode(decompress(data), type=MainText)
