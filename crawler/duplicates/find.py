"""Finds clusters of near-duplicates: pages whose texts have a Jaccard similarity of at least 0.8 with another one.

Pages whose titles or main words differ are no near-duplicates, however similar their texts are
(:class:`crawler.page.shingles.Words`). Pages with equal titles and texts are joined first. Then texts that have a
key in common are compared, and joined if they are similar. No key costs quadratic work, however many texts have it: a
text is compared with a few texts at most, and not with texts of its own cluster. The clusters follow from the
signatures alone, so it does not matter in how many steps these were made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING

from crawler.duplicates.texts import KEY_BYTES, SQL, OnProgress, OwnText, OwnTexts, sign
from crawler.formatting import many
from crawler.page.shingles import ALIKE, BANDS, jaccard
from crawler.store.rows import NearDuplicate
from crawler.texts.reader import ReadsTexts

if TYPE_CHECKING:
    from crawler.store.sections import Store

_MOST_COMPARED = 8  # texts of a bucket that are not alike, with which its other texts are compared
_TEXTS_AT_ONCE = 50
_NUMBERS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class DuplicatesSummary:
    """The result of the search for near-duplicates.

    ``pages`` counts the pages that were compared, ``read`` those whose text was read because it or its site had
    changed, ``clusters`` the clusters, and ``duplicates`` the pages in clusters.
    """

    pages: int
    read: int
    clusters: int
    duplicates: int

    def __str__(self) -> str:
        found = f"{many(self.duplicates, 'near-duplicate')} in {many(self.clusters, 'cluster')}"
        return f"{many(self.pages, 'page')} compared, {self.read:,} read: {found}"


async def find_duplicates(
    store: Store, reader: ReadsTexts, on_progress: OnProgress = lambda what, done, total: None
) -> DuplicatesSummary:
    """Bring the view ``near_duplicates`` of a store that is open for writing up to date.

    ``reader`` reads the texts that the store does not keep yet. ``on_progress`` is called with the step at work, what
    is done of it, and its total.

    A cancellation keeps the signatures that were committed, and the old clusters. Raises
    :class:`crawler.errors.StoreError` if the store fails.
    """
    last_request = await store.last_request()
    pages, read = await sign(store, reader, on_progress)
    found = [row async for row in _Clustering(store, reader).clusters(on_progress)]
    await store.results.replace_near_duplicates(found, last_request)
    return DuplicatesSummary(pages, read, len({row.cluster_id for row in found}), len(found))


def are_near_duplicates(one: OwnText, other: OwnText) -> bool:
    """Whether two texts are similar, and no words of titles or subjects tell their pages apart."""
    return jaccard(one.shingles, other.shingles) >= ALIKE and not one.words.differ_from(other.words)


class DisjointSets:
    """Sets of numbers that can be joined. The lowest number of a set stands for it."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def __iter__(self) -> Iterator[int]:
        """The numbers that were joined with another one."""
        return iter(self._parents)

    def find(self, number: int) -> int:
        """The number that stands for the set of ``number``."""
        while (parent := self._parents.get(number, number)) != number:
            self._parents[number] = number = self._parents[parent]
        return number

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.find(one), self.find(other)))
        self._parents.setdefault(low, low)
        self._parents[high] = low


class _Clustering:
    def __init__(self, store: Store, reader: ReadsTexts) -> None:
        self._store = store
        self._texts = OwnTexts(store, reader)
        self._equal = DisjointSets()  # pages with equal titles and texts
        self._alike = DisjointSets()  # of these, one for each text
        self._compared: dict[tuple[int, int], float] = {}

    async def clusters(self, on_progress: OnProgress) -> AsyncIterator[NearDuplicate]:
        """All pages of clusters, with the page that represents their cluster."""
        async with aclosing(_buckets(self._store, 0)) as buckets:
            async for first, *others in buckets:
                for other in others:
                    self._equal.join(first, other)
        for band in range(1, BANDS + 1):
            on_progress("parts of the signatures compared", band - 1, BANDS)
            async with aclosing(_buckets(self._store, band)) as buckets:
                async for bucket in buckets:
                    await self._compare(sorted(set(map(self._equal.find, bucket))))
        members = defaultdict[int, list[int]](list)
        for number in {*self._equal, *self._alike}:
            members[self._alike.find(self._equal.find(number))].append(number)
        for done, numbers in enumerate(members.values()):
            on_progress("clusters described", done, len(members))
            async for row in self._described(numbers):
                yield row

    async def _compare(self, bucket: Sequence[int]) -> None:
        """Join the texts of a bucket that are alike: of few texts all pairs are compared, of many texts not all."""
        if len(bucket) > _MOST_COMPARED:
            await self._compare_with_first(sorted({self._alike.find(text): text for text in bucket}.values()))
            return
        unknown = [pair for pair in combinations(bucket, 2) if pair not in self._compared and not self._joined(*pair)]
        if unknown:
            texts = await self._texts.read(bucket)
            for one, other in unknown:
                if {one, other} <= texts.keys() and not self._joined(one, other):
                    self._join_if_alike(one, other, texts[one], texts[other])

    async def _compare_with_first(self, bucket: Sequence[int]) -> None:
        """Compare each text of a bucket with the first ones that are not alike."""
        firsts: dict[int, OwnText] = {}
        for part in _parts(bucket if len(bucket) > 1 else (), _TEXTS_AT_ONCE):
            for number, text in (await self._texts.read(part)).items():
                joined = any(self._join_if_alike(first, number, its_text, text) for first, its_text in firsts.items())
                if not joined and len(firsts) < _MOST_COMPARED:
                    firsts[number] = text

    def _joined(self, one: int, other: int) -> bool:
        return self._alike.find(one) == self._alike.find(other)

    def _join_if_alike(self, low: int, high: int, its_text: OwnText, other_text: OwnText) -> bool:
        self._compared[low, high] = jaccard(its_text.shingles, other_text.shingles)
        is_alike = are_near_duplicates(its_text, other_text)
        if is_alike:
            self._alike.join(low, high)
        return is_alike

    async def _described(self, numbers: Sequence[int]) -> AsyncIterator[NearDuplicate]:
        """The pages of one cluster."""
        best = await self._best(numbers)
        its_text = self._equal.find(best)
        similar = {its_text: 1.0}
        others = {self._equal.find(number) for number in numbers} - {its_text}
        for other in others:
            pair = (its_text, other) if its_text < other else (other, its_text)
            if pair in self._compared:
                similar[other] = self._compared[pair]
        if unknown := sorted(others - similar.keys()):
            text = (await self._texts.read([its_text]))[its_text]
            for part in _parts(unknown, _TEXTS_AT_ONCE):
                texts = await self._texts.read(part)
                similar |= {number: jaccard(text.shingles, other.shingles) for number, other in texts.items()}
        for number in numbers:
            yield NearDuplicate(number, best, similar[self._equal.find(number)])

    async def _best(self, numbers: Sequence[int]) -> int:
        best: tuple[int, ...] = ()
        for part in _parts(numbers, _NUMBERS_AT_ONCE):
            rows = await self._store.query(SQL["best_first"].format(numbers=", ".join(map(str, part))))
            best = min([*(tuple(row.values()) for row in rows), *([best] if best else [])])
        return best[-1]


async def _buckets(store: Store, key: int) -> AsyncGenerator[list[int], None]:
    """The pages that have a key in common, by number."""
    value, bucket = None, list[int]()
    async with aclosing(store.rows(SQL["buckets"], {"at": key * KEY_BYTES + 1})) as rows:
        async for row in rows:
            if row.value != value and bucket:
                yield bucket
                bucket = []
            value = row.value
            bucket.append(row.url_id)
    if bucket:
        yield bucket


def _parts(numbers: Iterable[int], size: int) -> Iterator[list[int]]:
    rest = iter(numbers)
    while part := list(islice(rest, size)):
        yield part
