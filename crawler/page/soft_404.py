"""Soft 404s: pages that a server sends, with the status of success, in place of pages that do not exist (pure).

The answer of a site to one path that cannot exist is the example. A page that is like it is marked, and nothing else
follows. Z. Bar-Yossef and others, "Sic transit gloria telae" (WWW 2004), compare with such an example.
"""

from __future__ import annotations

from array import array
from hashlib import sha256
from typing import NamedTuple, Self

import msgspec

from crawler.model import Fetched, FetchResult, PageFacts, Purpose, Redirected, SiteFile
from crawler.page.shingles import ALIKE, LEAST_SHINGLES, MOST_SHINGLES, jaccard
from crawler.url import NotCrawlable, canonicalise


class NotFoundExample(NamedTuple):
    """The answer of a site to a path that cannot exist, in hashes: no text of it is kept.

    ``is_known`` is false without a usable answer. Then nothing is said of pages. An answer without ``text`` is no page.
    ``target`` is the URL that the answer redirects to.
    """

    is_known: bool = False
    text: bytes = b""
    title: bytes = b""
    shingles: bytes = b""
    target: str = ""

    def packed(self) -> bytes:
        """The example as octets."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        """The example in octets of :meth:`packed`."""
        return msgspec.msgpack.decode(packed, type=cls)

    def is_like(self, url: str, facts: PageFacts) -> bool | None:
        """Whether the page at ``url`` is like the example; ``None`` if that is not known.

        It has the same text, or the same title and nearly the same shingles, or it is where the answer redirects to.
        The front page is a page, although unknown paths redirect to it.
        """
        if not self.is_known or facts.text_sha256 is None:
            return None
        if self.target:
            return url == self.target
        if not self.text:
            return False
        if facts.text_sha256 == self.text:
            return True
        return _hashed(facts.title) == self.title and _alike(self.shingles, facts.shingles)


NO_EXAMPLE = NotFoundExample()


def example_path(site: str) -> str:
    """A path that cannot exist on ``site``: nobody has named it. It is the same in each crawl."""
    return f"/not-found-{sha256(site.encode()).hexdigest()[:24]}"


def example_of(answer: Fetched, facts: PageFacts, site: str) -> tuple[SiteFile, NotFoundExample]:
    """The row and the example that a page brings. A wall, and a page that could not be read, say nothing."""
    if facts.wall or not facts.is_read or facts.broken is not None:
        return _row(answer, site, NO_EXAMPLE, facts.wall or facts.note or "it could not be read")
    example = NotFoundExample(True, facts.text_sha256 or b"", _hashed(facts.title), facts.shingles)
    return _row(answer, site, example, "" if example.text else "no page that may be indexed")


def unknown_example(answer: FetchResult, site: str) -> tuple[SiteFile, NotFoundExample]:
    """The row and the example of an answer that is no page."""
    if isinstance(answer, Redirected):
        try:
            target = canonicalise(answer.location, answer.url)
        except NotCrawlable:
            return _row(answer, site, NO_EXAMPLE, "a redirect to nowhere")
        return _row(answer, site, NotFoundExample(True, target="" if target == f"{site}/" else target), "a redirect")
    is_known = answer.status in (404, 410)
    return _row(answer, site, NotFoundExample(is_known), "" if is_known else "it says nothing of pages")


def _row(answer: FetchResult, site: str, example: NotFoundExample, note: str) -> tuple[SiteFile, NotFoundExample]:
    status = str(answer.status or "no answer")
    path = example_path(site)
    return SiteFile(path, Purpose.SOFT_404, answer.finished_at, status, example.packed(), note), example


def _hashed(title: str | None) -> bytes:
    return sha256((title or "").encode("utf-8", "replace")).digest()


def _alike(one: bytes, other: bytes) -> bool:
    """Whether two samples of shingles come from texts that are nearly the same. Short texts are alike by chance."""
    ours, theirs = set(array("Q", one)), set(array("Q", other))
    if min(len(ours), len(theirs)) < LEAST_SHINGLES:
        return False
    # The smallest hashes of the union are a random sample of it (A. Broder, 1997).
    union = set(sorted(ours | theirs)[:MOST_SHINGLES])
    return jaccard(ours & union, theirs & union) >= ALIKE
