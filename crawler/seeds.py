"""Seed lists: a URL a line, ``#`` comments; what cannot be used is named with its line number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crawler.errors import SeedError
from crawler.url import NotCrawlable, canonicalise

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class BadSeed:
    """A line that is no seed, and why. ``line`` counts from 1."""

    line: int
    text: str
    reason: str


def read_seeds(lines: Iterable[bytes]) -> tuple[list[str], list[BadSeed]]:
    """The canonical URLs of a seed list, in order and each once, and the lines that are none.

    A line that names a host without a scheme is not guessed at: ``http`` and ``https`` are different sites.
    """
    seeds: dict[str, None] = {}
    bad: list[BadSeed] = []
    for number, raw in enumerate(lines, 1):
        text = raw.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        text = text.partition(" #")[0].rstrip()
        try:
            if "\ufffd" in text or any(ord(c) < 32 for c in text):
                raise NotCrawlable("not text in UTF-8")
            seeds[canonicalise(text)] = None
        except NotCrawlable as error:
            bad.append(BadSeed(number, text[:100], _remedy(text, str(error))))
    return list(seeds), bad


def require_good(bad: list[BadSeed], source: str) -> None:
    """Raise :class:`SeedError` that lists the bad lines, where there are any."""
    if not bad:
        return
    shown = "\n".join(f"  line {seed.line}: {seed.reason}" for seed in bad[:_SHOWN])
    more = f"\n  … and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    raise SeedError(
        f"{source}: {len(bad)} bad line{'s' if len(bad) > 1 else ''}, nothing was fetched; "
        f"mend them, or pass over them with --skip-bad-seeds\n{shown}{more}"
    )


def _remedy(text: str, reason: str) -> str:
    if "://" not in text and "." in text and " " not in text:
        return f"{reason} (did you mean https://{text} ?)"
    return reason
