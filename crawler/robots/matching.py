"""The first of many patterns that matches a path, at a price that no file can drive up.

A file of 512 KiB holds some 25,000 rules such as ``/*abc*xyz``, and a URL thousands of octets: comparing each of the
rules with all of the URL takes the better part of a second. So

* patterns are found by their literal start, of which few belong to any one path;
* where many of them remain, those are passed over that ask for a piece which the path does not have (the path's short
  substrings are listed once; a piece is there only if both its ends are);
* and what is left has a bound (:data:`MAX_WORK`). Beyond it there is no answer, and no leave to fetch.

The first two change nothing of what matches. The bound is out of reach of a file whose rules ask for different things:
at 200 octets, 20,000 rules may have all their pieces in the path and still not match.

Source: the 1996 draft, section 5; ``docs/protocols.md``, section 1, "The file".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crawler.robots.paths import Pattern, Tail

#: What one search may cost, in comparisons of an octet: some hundredths of a second.
MAX_WORK = 2**22

_MANY = 256  # patterns with "*" or "$": from so many on, their pieces are looked up first
_SIZES = (1, 2, 4, 8, 16, 32, 64)  # of the substrings listed


class TooCostly(Exception):
    """The search was given up when it had come to the pattern ``index``."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


@dataclass(frozen=True, slots=True)
class PatternIndex:
    """Patterns in order of precedence, to be asked for the first one that matches."""

    tails: tuple[Tail | None, ...]
    by_start: dict[str, tuple[int, ...]]  # literal start -> the patterns that have it, in order
    lengths: tuple[int, ...]  # of the literal starts, each once, rising
    needs: tuple[tuple[str, ...], ...]  # by pattern, what a path must contain; empty where patterns are few

    def first(self, form: str, before: int) -> int:
        """The index of the first pattern that matches a path in its reading's form; ``before`` where none does sooner.

        Raises :class:`TooCostly` where that is more work than :data:`MAX_WORK`.
        """
        candidates = self._candidates(form)
        present = None
        if self.needs and len(candidates) >= _MANY:
            present = _substrings(form)
        work = 0
        for index in candidates:
            if index >= before:
                break
            tail = self.tails[index]
            if tail is None:
                return index
            if present is not None and not present.issuperset(self.needs[index]):
                continue
            work += _work(tail, len(form))
            if work > MAX_WORK:
                raise TooCostly(index)
            if tail.matches(form):
                return index
        return before

    def _candidates(self, form: str) -> list[int]:
        """The patterns whose literal start is that of the path, in order."""
        found: list[int] = []
        for length in self.lengths:
            if length > len(form):
                break
            found += self.by_start.get(form[:length], ())
        found.sort()
        return found


def index_of(patterns: Iterable[Pattern]) -> PatternIndex:
    """Index ``patterns``, given in their order of precedence."""
    tails: list[Tail | None] = []
    by_start: dict[str, list[int]] = {}
    plain: set[str] = set()  # starts that match by themselves: no pattern after them is reached
    for number, pattern in enumerate(patterns):
        tails.append(pattern.tail)
        if pattern.prefix not in plain:
            by_start.setdefault(pattern.prefix, []).append(number)
            if pattern.tail is None:
                plain.add(pattern.prefix)
    if not tails:
        return _NO_PATTERNS
    many = len(tails) >= _MANY and sum(tail is not None for tail in tails) >= _MANY
    return PatternIndex(
        tails=tuple(tails),
        by_start={start: tuple(numbers) for start, numbers in by_start.items()},
        lengths=tuple(sorted({len(start) for start in by_start})),
        needs=tuple(_needs(tail) for tail in tails) if many else (),
    )


_NO_PATTERNS = PatternIndex((), {}, (), ())


def _needs(tail: Tail | None) -> tuple[str, ...]:
    """Substrings, all of a size that :func:`_substrings` lists, that a path must have for ``tail`` to match."""
    if tail is None:
        return ()
    needs: dict[str, None] = {}
    for piece in {*tail.pieces, tail.end or ""} - {""}:
        size = min(1 << (len(piece).bit_length() - 1), _SIZES[-1])
        needs[piece[:size]] = needs[piece[-size:]] = None
    return tuple(needs)


def _work(tail: Tail, octets: int) -> int:
    """What comparing ``tail`` with a path of so many octets costs at worst, in comparisons of an octet.

    ``str.find`` compares up to a piece's length at each place of a short text; in a long one, pieces of 100 and more
    are looked for in linear time. Measured, each 8 octets of a piece cost as much again as the first.
    """
    return octets * (1 + (tail.longest if octets < 2500 else min(tail.longest, 100)) // 8)


def _substrings(form: str) -> set[str]:
    return {form[at : at + size] for size in _SIZES for at in range(len(form) - size + 1)}
