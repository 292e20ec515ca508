"""Find the first of many patterns that matches a path, within a bound on the work.

A file of 512 KiB holds about 25,000 rules such as ``/*abc*xyz``, and a URL has thousands of octets. Comparing every
rule with the URL takes most of a second. Three steps bound the work:

* The index looks patterns up by their literal start. Few patterns share the start of any one path.
* If many patterns remain, the search skips those that need a piece which the path does not contain. It lists the
  path's short substrings once; a piece can only be present if both of its ends are listed.
* The remaining comparisons are counted. Beyond :data:`MAX_WORK` the search stops, and the path is closed.

The first two steps never change the result. Ordinary files do not reach the bound: with a path of 200 octets, 20,000
rules may find all their pieces in the path and still not match.

Source: the 1996 draft, section 5; ``docs/protocols.md``, section 1, "The file".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crawler.robots.paths import Pattern, Tail

#: The bound on one search, in comparisons of an octet: a few hundredths of a second.
MAX_WORK = 2**22

_MANY = 256  # from this number of patterns with "*" or "$" on, the search looks up their pieces first
_SIZES = (1, 2, 4, 8, 16, 32, 64)  # sizes of the listed substrings


class TooCostly(Exception):
    """The search reached :data:`MAX_WORK` at the pattern ``index``."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


@dataclass(frozen=True, slots=True)
class PatternIndex:
    """Patterns in order of precedence, indexed by their literal starts."""

    tails: tuple[Tail | None, ...]
    by_start: dict[str, tuple[int, ...]]  # literal start -> its patterns, in order
    lengths: tuple[int, ...]  # the distinct lengths of the literal starts, ascending
    needs: tuple[tuple[str, ...], ...]  # by pattern: substrings that a path must contain; empty if patterns are few

    def first(self, form: str, before: int) -> int:
        """The index of the first pattern below ``before`` that matches ``form``; ``before`` if none matches.

        ``form`` is the path in the form of the reading. Raises :class:`TooCostly` after :data:`MAX_WORK` comparisons.
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
        """The patterns whose literal start begins the path, in order."""
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
    plain: set[str] = set()  # starts that match by themselves: the search reaches no later pattern with the same start
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
    """Substrings that a path must contain for ``tail`` to match. :func:`_substrings` lists their sizes."""
    if tail is None:
        return ()
    needs: dict[str, None] = {}
    for piece in {*tail.pieces, tail.end or ""} - {""}:
        size = min(1 << (len(piece).bit_length() - 1), _SIZES[-1])
        needs[piece[:size]] = needs[piece[-size:]] = None
    return tuple(needs)


def _work(tail: Tail, octets: int) -> int:
    """The worst cost of comparing ``tail`` with a path of ``octets`` octets, in comparisons of an octet.

    In a short text, ``str.find`` compares up to a piece's length at each position. In a long text it finds pieces of
    100 octets and more in linear time. Measured: every 8 octets of a piece add the cost of one comparison.
    """
    return octets * (1 + (tail.longest if octets < 2500 else min(tail.longest, 100)) // 8)


def _substrings(form: str) -> set[str]:
    return {form[at : at + size] for size in _SIZES for at in range(len(form) - size + 1)}
