"""Pages with planted near-duplicates: random texts within templates of several kinds."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

from crawler.page.shingles import jaccard, shingles, words

_SYLLABLES = ("ba", "ko", "mu", "ri", "te"), "dfglnrst", ("an", "eb", "io", "us")
_VOCABULARY = ["".join(parts) for parts in product(*_SYLLABLES)]


def random_text(chance: random.Random, count: int) -> list[str]:
    return chance.choices(_VOCABULARY, k=count)


def edited(chance: random.Random, text: list[str], edits: int) -> list[str]:
    """The text with some words replaced, left out or put in."""
    made = list(text)
    for _ in range(edits):
        at = chance.randrange(len(made))
        made[at : at + chance.choice((0, 1, 1))] = random_text(chance, chance.choice((0, 1)))
    return made


def similarity(one: list[str], other: list[str]) -> float:
    return jaccard(shingles(words(" ".join(one))), shingles(words(" ".join(other))))


def plain(title: str, text: str) -> str:
    return f"<h1>{title}</h1><p>{text}"


def manual(title: str, text: str) -> str:
    """Navigation and footer in elements that say so."""
    items = "".join(f"<li><a href=/{n}>Chapter {n}: {_VOCABULARY[n]}</a>" for n in range(60))
    before, after = f"<header>The manual</header><nav><ul>{items}</ul></nav>", "<footer>End</footer>"
    return f"{before}<main><h1>{title}</h1><p>{text}</main>{after}"


def forum(title: str, text: str) -> str:
    """No element says what is navigation, and the rules of the forum are longer than most posts."""
    rules = " ".join(_VOCABULARY[:120])
    menu = "".join(f"<div class=m><a href=/f{n}>Forum {_VOCABULARY[-n]}</a></div>" for n in range(1, 40))
    return f"<div>Welcome, guest</div><div>{menu}</div><table><tr><td>{title}<td>{text}</table><div>{rules}</div>"


def shop(title: str, text: str) -> str:
    """The template is within the main element, around the text."""
    terms = " ".join(_VOCABULARY[40:140])
    return f"<main><div>All offers {' '.join(_VOCABULARY[60:90])}</div><h1>{title}</h1><p>{text}<p>{terms}</main>"


TEMPLATES: dict[str, Callable[[str, str], str]] = {"plain": plain, "manual": manual, "forum": forum, "shop": shop}
