"""Shingles of texts, their Jaccard similarity, and sketches that find similar texts without comparing all pairs (pure).

A. Broder: On the resemblance and containment of documents (1997), with shingles of five words. The sketch is that of
S. Dahlgaard, M. B. T. Knudsen, M. Thorup: Fast Similarity Sketching (FOCS 2017): like MinHash, each of its values is
equal in two sketches with the probability of the Jaccard similarity, but it takes one hash for each shingle, not one
for each shingle and value.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from struct import pack
from typing import NamedTuple

import xxhash

#: The version of the signatures. Increase it when the same text would get another one: all pages are then read again.
VERSION = 3
#: Two texts are near-duplicates from this Jaccard similarity on.
ALIKE = 0.8
#: Words in a shingle.
WORDS = 5
#: A text is about a word that it has this often, and as this share of its words.
SUBJECT_TIMES, SUBJECT_SHARE = 3, 0.01
#: A text with fewer shingles is not compared: such texts are alike by chance.
LEAST_SHINGLES = 16
#: The shingles of a page that are kept: the smallest ones, which are a random sample of them.
MOST_SHINGLES = 2_000
#: The beginning of a longer text is compared.
MAX_CHARS = 200_000

#: Values of a sketch, and how they are cut into bands. Two texts are compared if one band is equal in both. That is so
#: with the probability 1 - (1 - J^ROWS)^BANDS: 0.99 at J = 0.85, 0.95 at 0.8, 0.24 at 0.6, 0.01 at 0.4.
BANDS, ROWS = 16, 8
_VALUES = BANDS * ROWS

#: A shingle belongs to the template of a site if more of the sampled texts have it than this number, and than this
#: share of them.
TEMPLATE_TEXTS, TEMPLATE_SHARE = 5, 0.1
_MOST_COUNTED = 500_000  # shingles, which bounds the memory

_MASK = (1 << 64) - 1
_VALUE_BITS = 64 - (_VALUES - 1).bit_length()
# Odd factors permute the numbers of 64 bits. The first round takes the hashes as they are.
_FACTORS = (1, *(xxhash.xxh3_64_intdigest(pack("<I", n)) | 1 for n in range(1, _VALUES)))
# Thai to Khmer and Chinese to Japanese texts have no blanks between words: each character is a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+"
# The number of a chapter or section before its title, as in "Chapter 3. Types" or "E.3. Types". A version has no full
# stop after it: "0.2 Changelog".
_SECTION = re.compile(r"^\s*(\w+\s)?([a-z]\.)?(\d+\.)+\s")

Shingles = Set[int]


class Words(NamedTuple):
    """Words as hashes: those of a title, those that a text is about, and all of it. And the language of the text."""

    title: Set[int]
    subject: Set[int]
    all: Set[int]
    language: str | None

    def differ_from(self, other: Words) -> bool:
        """Whether each title has a word that the other lacks, or each text is about a word that the other lacks.

        The titles of pages in two languages are not compared: of a page whose text is not translated, only they differ.
        """
        is_one_language = self.language == other.language or not (self.language and other.language)
        return bool(
            (is_one_language and self.title - other.title and other.title - self.title)
            or (self.subject - other.all and other.subject - self.all)
        )


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return re.findall(_WORD, text[:MAX_CHARS].lower())


def title_words(title: str | None) -> set[int]:
    """The parts of a title without its number, between blanks, with their marks: ``operator+`` is not ``operator-``."""
    return {_hash(f"title {part}") for part in _SECTION.sub("", (title or "").lower()).split()}


def subject(sequence: Sequence[str]) -> set[int]:
    """The words that a text is about. Numbers are none: they are dates, or count something."""
    least = max(SUBJECT_TIMES, SUBJECT_SHARE * len(sequence))
    return {_hash(word) for word, count in Counter(sequence).items() if count >= least and not word.isdigit()}


def vocabulary(sequence: Sequence[str]) -> set[int]:
    """All words of a text."""
    return set(map(_hash, set(sequence)))


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode(errors="replace"))


def shingles(sequence: Sequence[str]) -> set[int]:
    """The hashes of all sequences of :data:`WORDS` words, as numbers of 64 bits."""
    runs = zip(*(sequence[n:] for n in range(WORDS)), strict=False)
    return {_hash(" ".join(run)) for run in runs}


def jaccard(one: Shingles, other: Shingles) -> float:
    """The share of the shingles of either that both have; 0 if there are none."""
    both = len(one & other)
    return both / (len(one) + len(other) - both or 1)


def template(texts: Iterable[array[int]]) -> set[int]:
    """The shingles that many texts of a site have: navigation and other parts that belong to the site.

    ``texts`` are the shingles of a random sample of its texts. Equal texts count once. Shingles that are first seen
    after half a million others are not found.
    """
    counts: dict[int, int] = {}
    distinct = {text.tobytes(): text for text in texts}
    for text in distinct.values():
        for shingle in text:
            if shingle in counts:
                counts[shingle] += 1
            elif len(counts) < _MOST_COUNTED:
                counts[shingle] = 1
    most = max(TEMPLATE_TEXTS, TEMPLATE_SHARE * len(distinct))
    return {shingle for shingle, count in counts.items() if count > most}


def sketch(of: Shingles) -> list[int]:
    """The values of the sketch of a set that is not empty.

    In each round the hashes fall into as many bins as there are values, and the smallest hash of a bin is its value. A
    bin that remains empty is filled by a later round, in which the hashes are other ones.
    """
    bins: dict[int, int] = {}
    for number, factor in enumerate(_FACTORS):
        hashes = sorted([shingle * factor & _MASK for shingle in of], reverse=True)
        bins = {value >> _VALUE_BITS: value ^ number for value in hashes} | bins
        if len(bins) == _VALUES:
            break
    return [bins.get(n, 0) for n in range(_VALUES)]


def bands(of: Shingles) -> bytes:
    """The bands of the sketch of a set, eight bytes each; no bytes for a set that is too small to be compared."""
    if len(of) < LEAST_SHINGLES:
        return b""
    values = sketch(of)
    parts = (pack(f"<{ROWS}Q", *values[n : n + ROWS]) for n in range(0, _VALUES, ROWS))
    return b"".join(map(xxhash.xxh3_64_digest, parts))
