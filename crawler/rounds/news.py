"""The URLs that other buckets offer to one, as far as they are news to it. Most of them are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from crawler.dataset.records import Dataset, Task, part
from crawler.errors import StoreError
from crawler.frontier.offers import KnownUrl, Offer, weigh
from crawler.model import Kind, State
from crawler.parquet import load_arrow
from crawler.reasons import ReasonCode, StoredReason
from crawler.store.location import shown

_OFFERS_AT_ONCE = 10_000
#: In the order of the file.
_KNOWN = ("url", "state", "reason_code", "depth", "hops")


def news_of(dataset: Dataset, task: Task) -> Iterator[list[Offer]]:
    """The offers that may change the store of the bucket, some thousand at a time; no list is empty.

    They are compared with the Parquet file of its URLs: to read its store takes much longer. A sitemap may bring facts
    that the file has not.
    """
    content = dataset.objects.get(part("urls", task.store, task.bucket)) if task.offers and task.store else None
    for key in task.offers:
        if (offered := dataset.objects.get(key)) is None:
            raise StoreError(f"{shown(dataset.objects.location)}: {key}: there is no such object")
        for rows in _rows(offered, _OFFERS_AT_ONCE):
            offers = [msgspec.convert(row, Offer, strict=False) for row in rows.to_pylist()]
            known = _known(content, {offer.url for offer in offers})
            news = [
                offer
                for offer in offers
                if offer.url not in known
                or offer.kind is not Kind.PAGE
                or offer.lastmod is not None
                or weigh(known[offer.url], offer) is not None
            ]
            if news:
                yield news


def _known(content: bytes | None, urls: set[str]) -> dict[str, KnownUrl]:
    """What the rows of a bucket say of these URLs."""
    return {
        url: KnownUrl(State(state), StoredReason(ReasonCode(code), ""), depth, hops)
        for rows in _rows(content, _OFFERS_AT_ONCE, columns=_KNOWN)
        for url, state, code, depth, hops in zip(*(column.to_pylist() for column in rows.columns), strict=True)
        if url in urls
    }


def _rows(content: bytes | None, at_once: int, **which: Any) -> Iterator[Any]:
    arrow, parquet = load_arrow("rounds", "a dataset")
    if content is not None:
        yield from parquet.ParquetFile(arrow.BufferReader(content)).iter_batches(at_once, **which)
