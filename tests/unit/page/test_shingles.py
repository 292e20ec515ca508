"""Shingles, templates and sketches."""

from __future__ import annotations

import random
from array import array

import pytest

from crawler.page.shingles import (
    BANDS,
    LEAST_SHINGLES,
    MAX_CHARS,
    ROWS,
    bands,
    jaccard,
    shingles,
    sketch,
    template,
    title_words,
    words,
)


def sets_at(chance: random.Random, similarity: float, size: int) -> tuple[set[int], set[int]]:
    """Two sets with a Jaccard similarity and about this size."""
    both = round(size * similarity)
    numbers = [chance.getrandbits(64) for _ in range(size)]
    rest = size - both
    return set(numbers[: both + rest // 2]), set(numbers[:both] + numbers[both + rest // 2 :])


def in_common(one: set[int], other: set[int]) -> bool:
    """Whether a band is equal in both."""
    first, second = bands(one), bands(other)
    return any(first[n : n + 8] == second[n : n + 8] for n in range(0, 8 * BANDS, 8))


@pytest.mark.parametrize("size", [40, 200, 2000])
@pytest.mark.parametrize("similarity", [0.4, 0.85, 0.9])
def test_a_value_is_equal_with_the_probability_of_the_similarity(similarity: float, size: int) -> None:
    chance = random.Random(size)
    equal = 0
    for _ in range(40):
        one, other = map(sketch, sets_at(chance, similarity, size))
        equal += sum(a == b for a, b in zip(one, other, strict=True))
    assert equal / (40 * BANDS * ROWS) == pytest.approx(similarity, abs=0.03)


@pytest.mark.parametrize("size", [20, 60, 300, 1500])
def test_pairs_at_085_have_a_band_in_common(size: int) -> None:
    chance = random.Random(size)
    pairs = [sets_at(chance, 0.85, size) for _ in range(150)]
    pairs = [pair for pair in pairs if jaccard(*pair) >= 0.85]
    assert len(pairs) == 150
    assert sum(in_common(*pair) for pair in pairs) >= 0.95 * len(pairs)


def test_pairs_that_have_little_in_common_are_rarely_compared() -> None:
    chance = random.Random(1)
    assert sum(in_common(*sets_at(chance, 0.3, 200)) for _ in range(300)) <= 3


def test_small_sets_have_no_bands() -> None:
    assert bands(set(range(LEAST_SHINGLES - 1))) == b""
    assert len(bands(set(range(LEAST_SHINGLES)))) == 8 * BANDS


def test_words_have_no_case_and_no_punctuation() -> None:
    assert words("Don’t STOP: it’s v1.2!") == ["don", "t", "stop", "it", "s", "v1", "2"]
    assert words("日本語 text ไทย") == ["日", "本", "語", "text", "ไ", "ท", "ย"]
    assert len(words("a " * MAX_CHARS)) == MAX_CHARS / 2


def test_the_number_of_a_section_is_no_word_of_its_title_but_a_version_is_one() -> None:
    for number in ("1.2. ", "Chapter\xa03.\xa0", "E.3. "):
        assert title_words(f"{number}Types") == title_words("Types"), number
    for one, other in (("0.1 Changelog", "0.2 Changelog"), ("E.3. Release 15.2", "E.4. Release 15.1"), ("A.1", "A.2")):
        assert title_words(one) != title_words(other)


def test_shingles_are_runs_of_five_words() -> None:
    text = ["one", "two", "three", "four", "five", "six"]
    assert len(shingles(text)) == 2
    assert shingles(text[1:]) < shingles(text)
    assert shingles(text[:4]) == set()
    assert shingles(["ab", "c", "d", "e", "f"]) != shingles(["a", "bc", "d", "e", "f"])


def test_jaccard_of_nothing_is_nothing() -> None:
    assert jaccard(set(), set()) == 0
    assert jaccard({1, 2, 3}, {2, 3, 4}) == 0.5


def texts_of(*texts: set[int]) -> list[array[int]]:
    return [array("Q", sorted(text)) for text in texts]


def test_the_template_is_what_more_than_a_tenth_of_the_texts_have() -> None:
    texts = [{n, 1000, 1000 + n % 9, 2000 + n % 12} for n in range(100)]
    assert template(texts_of(*texts)) == {1000, *range(1000, 1009)}


def test_up_to_five_texts_have_no_template() -> None:
    assert template(texts_of(*({7, n} for n in range(5)))) == set()
    assert template(texts_of(*({7, 10 + n} for n in range(6)))) == {7}


def test_equal_texts_count_once_in_a_template() -> None:
    assert template(texts_of(*({1, 2, 3} for _ in range(50)), {1, 4})) == set()
