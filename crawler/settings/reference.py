"""Writes settings as a TOML file with comments, from the table of keys."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from crawler.settings.keys import SECTIONS, Key

_WIDTH = 118


def commented_toml(head: str, values: Iterable[tuple[Key, Any]]) -> str:
    """A TOML file with comments that begins with ``head``. ``values`` are keys with their values, by section."""
    return "\n".join([*_comment(head), *_toml_lines(values)]) + "\n"


def _toml_lines(values: Iterable[tuple[Key, Any]]) -> Iterator[str]:
    for section, keys in groupby(values, key=lambda each: each[0].section):
        yield from ("", *_comment(SECTIONS[section]), f"[{section}]")
        for key, value in keys:
            option = f"({key.option})" if key.option else ""
            yield from _comment(" ".join(filter(None, (key.help, key.more, option))))
            yield f"{key.word} = {key.kind.toml(value)}"


def _comment(text: str) -> list[str]:
    lines = [line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, _WIDTH - 2) or [""]]
    return [f"# {line}".rstrip() for line in lines]
