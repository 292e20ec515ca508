"""The texts of the demonstration web: the books, goods, news and sights of the town of Aldermere."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple


class Item(NamedTuple):
    """One page: its name in the URL, its title, a second line and a text."""

    name: str
    title: str
    note: str
    text: str


def _items() -> dict[str, tuple[Item, ...]]:
    _, *parts = (files("crawler.demo") / "texts.txt").read_text(encoding="utf-8").strip().split("\n\n")
    groups = (part.split("\n") for part in parts)
    return {name: tuple(Item(*line.strip().split(" | ")) for line in lines) for name, *lines in groups}


#: The pages of each kind: town, books, goods, news, exhibits, doctors, poems.
ITEMS = _items()
