"""Excerpts are as short as a person reads them, whatever a page holds."""

from __future__ import annotations

from crawler.search.excerpt import EXCERPT_CHARS, Marked, mark, within


def _excerpt(long: str) -> tuple[str, list[str]]:
    ((_, excerpt),) = mark("elf", [("", long)])
    excerpt = within(excerpt, EXCERPT_CHARS)
    return excerpt.text, [excerpt.text[start:end] for start, end in excerpt.marks]


def test_the_excerpt_of_a_long_text_has_the_most_and_rarest_words() -> None:
    long = "a tale of trees " * 2000 + "a tale of an elf " + "a tale of trees " * 2000
    ((_, excerpt),) = mark('"tale" OR "elf"', [("", long)])
    assert "elf" in {excerpt.text[start:end] for start, end in excerpt.marks}


def test_a_short_text_is_shown_whole() -> None:
    assert _excerpt("an elf and another Elf") == ("an elf and another Elf", ["elf", "Elf"])


def test_an_excerpt_without_blanks_is_around_the_first_mark() -> None:
    text, marked = _excerpt("A" * 3000 + " elf " + "B" * 300 + " elf " + "C" * 3000)
    assert len(text) == EXCERPT_CHARS
    assert marked == ["elf", "elf"]


def test_without_a_match_the_beginning_is_shown() -> None:
    text, marked = _excerpt("A" * 3000)
    assert marked == []
    assert len(text) <= EXCERPT_CHARS + 1


def test_a_page_may_bound_its_excerpt() -> None:
    excerpt = Marked("a long text with an elf in it", ((20, 23),))
    assert within(excerpt, 29) == excerpt
    assert within(excerpt, 5) == Marked(" elf ", ((1, 4),))
    assert within(excerpt, 2) == Marked("el", ((0, 2),)), "a mark is cut"
    assert within(excerpt, 12) == Marked(" an elf in i", ((4, 7),))
    assert within(excerpt, 0) == Marked("", ())
