"""Reads the texts of pages as shingles, and keeps a signature of each text in the store.

A signature has the keys under which similar texts are found: a hash of the title and all words, and the bands of a
sketch of the text. Both are without the template of the site: what many of the first pages of the site have in common.
Pages are numbered by a hash of their paths, so the first ones are a random sample. If one of these pages changes, they
are all read again, and the other pages of the site only if the template has become another one.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xxhash

from crawler.page.shingles import (
    LEAST_SHINGLES,
    VERSION,
    Words,
    bands,
    shingles,
    subject,
    template,
    title_words,
    vocabulary,
    words,
)
from crawler.page.texts import MainText
from crawler.store.rows import SiteTemplate, TextSignature
from crawler.store.statements import load_statements
from crawler.texts import kept
from crawler.texts.kept import StoredDocument
from crawler.texts.reader import ReadsTexts

if TYPE_CHECKING:
    from crawler.store.sections import Store

KEY_BYTES = 8

_SAMPLE = 100  # pages of a site from which its template is read
_PAGES_AT_ONCE = 500
_BYTES_AT_ONCE = 4_000_000  # of documents in memory
_TEMPLATES_IN_MEMORY = 64

#: Called with how many pages have been processed, and how many there are.
OnProgress = Callable[[str, int, int], None]


def _statements() -> Mapping[str, str]:
    statements = load_statements("crawler.duplicates")
    return {name: sql.replace("{compared}", statements["compared"]) for name, sql in statements.items()}


SQL = _statements()


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a page: its words, its language, and its shingles and the words of its title in ascending order."""

    words: Sequence[str]
    shingles: array[int]
    title: array[int]
    language: str | None

    def keys(self, of_site: set[int]) -> bytes:
        """The keys of its signature, given the template of its site; no bytes for a text that is not compared."""
        if len(self.shingles) < LEAST_SHINGLES:
            return b""
        title = _packed(set(self.title) - of_site)
        said = " ".join(self.words).encode(errors="replace")
        return xxhash.xxh3_64_digest(title + said) + bands(set(self.shingles) - of_site)

    def own(self, of_site: set[int]) -> OwnText:
        """The text without the template of the site."""
        return OwnText(
            set(self.shingles) - of_site,
            Words(set(self.title) - of_site, subject(self.words), vocabulary(self.words), self.language),
        )


@dataclass(frozen=True, slots=True)
class OwnText:
    """The text of a page without the template of its site."""

    shingles: set[int]
    words: Words


async def sign(store: Store, reader: ReadsTexts, on_progress: OnProgress) -> tuple[int, int]:
    """Bring the signatures up to date. Returns how many pages are compared, and how many were read for that.

    A cancellation keeps what was committed, and the next call continues there.
    """
    await store.results.drop_signatures([row["url_id"] for row in await store.query(SQL["outdated"])])
    (counted,) = await store.query(SQL["count_pages"])
    signing, done = _Signing(store, reader), 0
    async for rows, is_sample in _parts(store):
        await signing.sign(rows, is_sample=is_sample)
        done += len(rows)
        on_progress("pages checked", done, counted["pages"])
    await signing.commit()
    return done, signing.pages_read


class _Signing:
    """Signs the pages of one site after the other; ``template`` is that of the current one."""

    def __init__(self, store: Store, reader: ReadsTexts) -> None:
        self._store, self._reader = store, reader
        self._template: set[int] | None = None
        self._new: list[TextSignature] = []
        self._templates: list[SiteTemplate] = []
        self.pages_read = 0

    async def sign(self, rows: Sequence[Any], *, is_sample: bool) -> None:
        """Sign the pages of a site that changed; ``is_sample`` says that these are its first pages."""
        site_id = rows[0]["site_id"]
        if is_sample:
            self._template = None
        elif self._template is None:
            self._template = await _stored_template(self._store, site_id)
        # The template follows from all of the first pages, and the other pages depend on the template only.
        common = map(_content, rows) if self._template is None else [_packed(self._template)]
        seed = xxhash.xxh3_64_intdigest(b"".join(common))
        digests = [xxhash.xxh3_64_intdigest(_content(row), seed) - (1 << 63) for row in rows]
        changed = [(row, digest) for row, digest in zip(rows, digests, strict=True) if row["digest"] != digest]
        if not changed:
            return
        texts = await texts_of(self._store, self._reader, rows if is_sample else [row for row, _ in changed])
        if self._template is None:
            self._template = await asyncio.to_thread(template_of, list(texts.values()))
            self._templates.append(SiteTemplate(site_id, _packed(self._template)))
        self.pages_read += len(texts)
        self._new += await asyncio.to_thread(_signatures, changed, texts, self._template)
        if len(self._new) >= _PAGES_AT_ONCE:
            await self.commit()

    async def commit(self) -> None:
        """Commit the new signatures, with the templates that they are made with."""
        await self._store.results.keep_signatures(self._new, self._templates)
        self._new, self._templates = [], []


def _signatures(
    changed: Iterable[tuple[Any, int]], texts: Mapping[int, Text], of_site: set[int]
) -> list[TextSignature]:
    return [
        TextSignature(row["url_id"], digest, texts[row["url_id"]].keys(of_site))
        for row, digest in changed
        if row["url_id"] in texts
    ]


def template_of(texts: Sequence[Text]) -> set[int]:
    """What the texts and the titles of a site have in common, from a random sample."""
    return template(text.shingles for text in texts) | template(text.title for text in texts)


def _content(row: Any) -> bytes:
    """All that the text of a page depends on."""
    return json.dumps([VERSION, row["title"], row["body_id"], row["charset"], row["content_type"]]).encode()


async def _parts(store: Store) -> AsyncIterator[tuple[list[Any], bool]]:
    """The pages of one site after the other, in parts, each with whether it is the first part of its site."""
    after, site, part, is_first = -1, None, list[Any](), True
    while rows := await store.query(SQL["next_pages"], {"after": after, "limit": _PAGES_AT_ONCE}):
        after = rows[-1]["url_id"]
        for row in rows:
            if row["site_id"] != site or len(part) == _SAMPLE:
                if part:
                    yield part, is_first
                is_first, site, part = row["site_id"] != site, row["site_id"], []
            part.append(row)
    if part:
        yield part, is_first


async def texts_of(store: Store, reader: ReadsTexts, rows: Sequence[Any]) -> dict[int, Text]:
    """The texts of pages by number. A page whose body has been deleted meanwhile is left out."""
    texts: dict[int, Text] = {}
    for batch in _batches(rows):
        documents = {row["url_id"]: StoredDocument.of(row) for row in batch}
        read = await kept.texts_of(store, reader, documents.values())
        titles = {row["url_id"]: row["title"] for row in batch}
        said = {n: (titles[n], read[document]) for n, document in documents.items() if document in read}
        texts |= await asyncio.to_thread(lambda: {n: text_of(*each) for n, each in said.items()})  # noqa: B023
    return texts


def _batches(rows: Iterable[Any]) -> Iterable[list[Any]]:
    batch, size = list[Any](), 0
    for row in rows:
        if batch and size + row["body_bytes"] > _BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row["body_bytes"]
    if batch:
        yield batch


def text_of(title: str | None, text: MainText) -> Text:
    """The text of a page with a title."""
    said = words(text.text)
    return Text(said, array("Q", sorted(shingles(said))), array("Q", sorted(title_words(title))), text.language)


def _packed(hashes: Iterable[int]) -> bytes:
    return array("Q", sorted(hashes)).tobytes()


async def _stored_template(store: Store, site_id: int) -> set[int]:
    found: array[int] = array("Q")
    for row in await store.query(SQL["template"], {"site_id": site_id}):
        found.frombytes(row["shingles"])
    return set(found)


class OwnTexts:
    """Reads the texts of pages without the templates of their sites. The last templates stay in memory."""

    def __init__(self, store: Store, reader: ReadsTexts) -> None:
        self._store, self._reader = store, reader
        self._templates: OrderedDict[int, set[int]] = OrderedDict()

    async def read(self, numbers: Iterable[int]) -> dict[int, OwnText]:
        """The texts of pages, by the numbers of the pages."""
        rows = await self._store.query(SQL["pages"].format(numbers=", ".join(map(str, numbers))))
        sites = {row["url_id"]: row["site_id"] for row in rows}
        texts = await texts_of(self._store, self._reader, rows)
        return {number: text.own(await self._template(sites[number])) for number, text in texts.items()}

    async def _template(self, site_id: int) -> set[int]:
        found = self._templates.pop(site_id, None)
        if found is None:
            found = await _stored_template(self._store, site_id)
            if len(self._templates) >= _TEMPLATES_IN_MEMORY:
                self._templates.popitem(last=False)
        self._templates[site_id] = found
        return found
