"""Excerpts are as short as a person reads them, whatever a page holds."""

from __future__ import annotations

from crawler.search.excerpt import EXCERPT_CHARS, mark


def _excerpt(long: str) -> tuple[str, list[str]]:
    ((_, excerpt),) = mark("elf", [("", long)])
    return excerpt.text, [excerpt.text[start:end] for start, end in excerpt.marks]


def test_a_short_text_is_shown_whole() -> None:
    assert _excerpt("an elf and another Elf") == ("an elf and another Elf", ["elf", "Elf"])


def test_an_excerpt_without_blanks_is_near_the_first_mark() -> None:
    text, marked = _excerpt("A" * 3000 + " elf " + "B" * 300 + " elf " + "C" * 3000)
    assert len(text) == EXCERPT_CHARS + 2
    assert (text[0], text[-1]) == ("…", "…")
    assert marked == ["elf", "elf"]


def test_a_mark_that_is_cut_is_marked_as_far_as_it_is_shown() -> None:
    text, marked = _excerpt("elf " + "B" * 592 + " elf " + "C" * 3000)
    assert text.startswith("elf B")
    assert marked == ["elf", text[-4:-1]] == ["elf", "elf"]


def test_without_a_match_the_beginning_is_shown() -> None:
    text, marked = _excerpt("A" * 3000)
    assert marked == []
    assert len(text) <= EXCERPT_CHARS + 1
